"""A folder of `LANGUAGE.csv` files → past questions with their answers."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import TextsError
from .manual import LANGUAGES

COLUMNS = ("id", "answered_on", "topic", "question", "answer")


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question that a customer asked, and what the help desk answered; `file` is the name shown to readers."""

    language: str
    file: str
    id: str
    answered_on: str
    topic: str
    question: str
    answer: str


def answer_files(folder: Path) -> list[Path]:
    files = [file for language in LANGUAGES if (file := folder / f"{language}.csv").is_file()]
    if not files:
        names = " nor ".join(f"{language}.csv" for language in LANGUAGES)
        raise TextsError(f"The past questions are missing: the folder '{folder.name}' contains neither {names}.")
    return files


def read_answers(folder: Path) -> list[AnsweredQuestion]:
    return [answered for file in answer_files(folder) for answered in _read_file(file, f"{folder.name}/{file.name}")]


def _read_file(file: Path, name: str) -> Iterator[AnsweredQuestion]:
    ids: set[str] = set()
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:  # spreadsheets put a byte order mark first
            rows = csv.DictReader(text, strict=True)
            if missing := [column for column in COLUMNS if column not in (rows.fieldnames or ())]:
                raise TextsError(f"{name}: the first line lacks the column {', '.join(missing)}.")
            for row in rows:
                answered = _read_row(row, file.stem, name, rows.line_num)
                if answered.id in ids:
                    raise TextsError(f"{name}, line {rows.line_num}: the id {answered.id} is used twice.")
                ids.add(answered.id)
                yield answered
    except UnicodeDecodeError as error:
        raise TextsError(f"{name}: byte {error.start} is not UTF-8; save the file as UTF-8.") from error
    except csv.Error as error:
        raise TextsError(f"{name}: not valid CSV: {error}.") from error
    if not ids:
        raise TextsError(f"{name}: the file contains no questions.")


def _read_row(row: dict[str, str | None], language: str, name: str, line: int) -> AnsweredQuestion:
    values = {column: (row[column] or "").strip() for column in COLUMNS}
    if empty := [column for column, value in values.items() if not value]:
        raise TextsError(f"{name}, line {line}: {', '.join(empty)} must not be empty.")
    return AnsweredQuestion(language, name, **values)
