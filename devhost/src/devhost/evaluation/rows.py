"""Reads cases from a file of rows. Each row of a CSV file or line of a JSON Lines file is a case."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from devhost.errors import SuiteError, naming
from devhost.models.scripted.script import ScriptModel
from devhost.protocol.wire import JsonObject
from devhost.reach import within_reach
from devhost.text import read_file, worded
from devhost.words import counted

MOST_BYTES = 64 * 1024 * 1024
"""The size limit of a file of rows, in bytes."""
LONGEST_FIELD = 1024 * 1024
"""The length limit of a CSV field, in characters."""
SUFFIXES = frozenset({".csv", ".jsonl"})
IN_TEXTS = frozenset({"name", "query", "reference"})
"""Keys that take a CSV field as text, even if the field looks like JSON."""
TEXT_ENDINGS = (".equals", ".to")
"""Endings of keys that take a CSV field as text, even if the field looks like JSON."""


class _Written(ScriptModel):
    rows: Path
    columns: dict[str, str | None] | None = None


@dataclass(frozen=True)
class Rows:
    """An entry of `cases` that names a file of rows."""

    file: Path
    columns: Mapping[str, str | None] | None
    """The key of a case for each column, such as `expect.text.contains`, or `None` if the columns' names are keys."""
    others: JsonObject = field(default_factory=dict)
    """The values that a case has unless its row overrides them."""

    @classmethod
    def of(cls, entry: object, folder: Path) -> "Rows | None":
        """Returns the rows that an entry of `cases` names, or `None` if the entry is itself a case."""
        match entry:
            case str() if Path(entry).suffix in SUFFIXES:
                return cls(within_reach(folder / entry, folder), None)
            case {"rows": file, **written}:
                others = {str(name): value for name, value in written.items()}
                columns = others.pop("columns", None)
                with worded(lambda why: SuiteError(f"rows {file}: {why}")):
                    read = _Written.model_validate({"rows": file, "columns": columns})
                if read.rows.suffix not in SUFFIXES:
                    raise SuiteError(f"rows {file}: a file of rows is named *.csv or *.jsonl")
                return cls(within_reach(folder / read.rows, folder), read.columns, others)
        return None

    def cases(self) -> Iterator[tuple[str, JsonObject]]:
        """Yields each case as it would be written by hand, after its place, such as `questions.csv, row 2`."""
        try:
            text = read_file(self.file, MOST_BYTES).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            words = f"{self.file} is not UTF-8, as its byte {error.start + 1} shows: save it as UTF-8"
            raise SuiteError(words) from error
        except OSError as error:
            raise SuiteError(f"{self.file} cannot be read: {error.strerror}") from error
        if self.file.suffix == ".csv":
            yield from self._of_csv(text)
        else:
            yield from self._of_json_lines(text)

    def _of_csv(self, text: str) -> Iterator[tuple[str, JsonObject]]:
        rows = self._records(text)
        header = [name.strip() for name in next(rows, [])]
        keys = self._keys(header)
        for number, row in zip(count(2), rows, strict=False):
            place = f"{self.file.name}, row {number}"
            if not any(row):
                continue
            if len(row) > len(header):
                raise SuiteError(f"{self.file}, row {number}: {counted(len(row), 'field')}, but {len(header)} columns")
            given = {name: _value(keys[name], text) for name, text in zip(header, row, strict=False) if text.strip()}
            yield place, self._case(number, keys, given)

    def _records(self, text: str) -> Iterator[list[str]]:
        first = text.partition("\n")[0]
        separator = max(",;\t", key=first.count)
        before = csv.field_size_limit(LONGEST_FIELD)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        number = 0
        try:
            for row in reader:
                number += 1
                yield row
        except csv.Error as error:
            raise SuiteError(f"{self.file}, row {number + 1}: not valid CSV: {error}") from error
        finally:
            csv.field_size_limit(before)

    def _of_json_lines(self, text: str) -> Iterator[tuple[str, JsonObject]]:
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                given = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise SuiteError(f"{self.file}, row {number}: not JSON: {error}") from error
            if not isinstance(given, dict):
                raise SuiteError(f'{self.file}, row {number}: should be an object, such as {{"query": "Hello"}}')
            known = {name: value for name, value in given.items() if value not in (None, "")}
            yield f"{self.file.name}, row {number}", self._case(number, self._keys(list(known)), known)

    def _keys(self, header: Sequence[str]) -> Mapping[str, str]:
        """Returns the key for each column; empty for a column that is not used."""
        if doubled := {name for name in header if name and header.count(name) > 1}:
            raise SuiteError(f"{self.file}: several columns are named {', '.join(sorted(doubled))}")
        if self.columns is None:
            return {name: name for name in header}
        if self.file.suffix == ".csv" and (missing := [name for name in self.columns if name not in header]):
            raise SuiteError(f"{self.file} has no column {missing[0]!r}; {naming(header)}")
        return {name: self.columns.get(name) or "" for name in header}

    def _case(self, number: int, keys: Mapping[str, str], given: Mapping[str, object]) -> JsonObject:
        case: JsonObject = {"name": f"{self.file.stem} {number}", **_copied(self.others)}
        for name, value in given.items():
            if keys[name]:
                _set(case, keys[name], value)
        return case


def _copied(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    return value


def _value(key: str, text: str) -> object:
    """Returns a CSV field as a value of a case. A JSON list or object is parsed, unless the key takes only text."""
    if key in IN_TEXTS or key.endswith(TEXT_ENDINGS):
        return text
    if text.lstrip()[:1] in {"[", "{"}:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    if key == "files":
        return [text]
    if key == "turns":
        return [{"text": text}]
    return text


def _set(case: JsonObject, path: str, value: object) -> None:
    """Sets a value of a case by its path, such as `expect.text.contains`.

    A name after `variables.` is not split, because the name of a variable contains a dot.
    """
    first, _, rest = path.partition(".")
    if not rest:
        case[first] = value
    elif first == "variables":
        case.setdefault(first, {})[rest] = value
    else:
        inside = case.get(first)
        if not isinstance(inside, dict):
            inside = {}
            case[first] = inside
        _set(inside, rest, value)
