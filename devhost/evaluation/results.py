"""The results of an evaluation in a file of JSON lines, so that an interrupted one goes on where it was.

In: a header with the plan, then a result as each run ends. Out: an `Evaluation`. A line that was cut off when devhost
was killed is removed before the next one is written. A finished evaluation is kept beside the new one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from devhost.errors import SuiteError
from devhost.evaluation.checks.check import Check
from devhost.evaluation.checks.observed import Observed
from devhost.text.secrets import Secrets
from devhost.text.user_file import open_file
from devhost.text.yaml_file import describe

PREVIOUS = ".previous"
"""Before the suffix of the file in which the evaluation before the last one is kept."""


class Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


@dataclass(frozen=True)
class PlannedCase:
    name: str
    question: str
    rate: float
    """The share of the repeats that must fit."""


class Header(Line):
    devhost_evaluation: Literal[1] = 1
    file: str
    description: str
    scripted: bool
    columns: dict[str, dict[str, Any]]
    """By name, the settings of each."""
    cases: tuple[PlannedCase, ...]
    plan: tuple[str, ...]
    """The keys of all runs."""


class Result(Line):
    key: str
    case: str
    column: str
    repeat: int
    case_digest: str
    observed: Observed
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


@dataclass(frozen=True)
class Evaluation:
    header: Header
    results: Mapping[str, Result] = field(default_factory=dict)
    """By key, in the order of the plan; of an interrupted evaluation some are missing."""

    @property
    def is_finished(self) -> bool:
        return len(self.results) == len(self.header.plan)


def read_evaluation(file: Path) -> Evaluation:
    """The last evaluation that the file has, as far as it came."""
    header = None
    results: dict[str, Result] = {}
    try:
        with open_file(file) as written:
            lines = written.read().split(b"\n")
    except OSError as error:
        raise SuiteError(f"{file} cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines[:-1], start=1):  # what stands behind the last line break was cut off
        read = read_line(file, number, line)
        if isinstance(read, Header):
            header = read
        else:
            results[read.key] = read
    if header is None:
        raise no_evaluation(file)
    return in_order(header, results)


def read_line(file: Path, number: int, line: bytes) -> Header | Result:
    """SuiteError for a line that is neither."""
    try:
        read: Any = json.loads(line)
        is_header = isinstance(read, dict) and "devhost_evaluation" in read
        return Header.model_validate(read) if is_header else Result.model_validate(read)
    except (ValueError, RecursionError) as error:
        why = describe(error) if isinstance(error, ValidationError) else str(error)
        raise SuiteError(f"{file}, line {number}: not a line of an evaluation: {why}") from error


def no_evaluation(file: Path) -> SuiteError:
    return SuiteError(f"{file} has no evaluation: its first line must be a header")


def in_order(header: Header, results: Mapping[str, Result]) -> Evaluation:
    """Of the plan; `results` by key."""
    return Evaluation(header, {key: results[key] for key in header.plan if key in results})


class ResultsFile:
    """A context manager. `done` has the results of an interrupted evaluation that the plan still asks for."""

    def __init__(self, file: Path, header: Header, secrets: Secrets, done: Mapping[str, Result]) -> None:
        self.done = {key: done[key] for key in header.plan if key in done}
        self._header = header
        self._secrets = secrets
        self._file = file.open("ab")
        self._append(Header.model_validate(secrets.masked(header.model_dump())))

    @classmethod
    def begin(cls, file: Path, header: Header, secrets: Secrets, *, fresh: bool) -> Self:
        """Goes on with the file's evaluation if that was interrupted, unless `fresh`; else keeps it as the previous."""
        try:
            done: Mapping[str, Result] = {}
            if file.is_file() and file.stat().st_size:
                done = _kept(file, fresh=fresh)
            return cls(file, header, secrets, done)
        except OSError as error:
            raise SuiteError(f"{file} cannot be written: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, result: Result) -> None:
        masked = Result.model_validate(self._secrets.masked(result.model_dump()))
        self.done[result.key] = masked
        self._append(masked)

    @property
    def evaluation(self) -> Evaluation:
        return in_order(self._header, self.done)

    def _append(self, line: Line) -> None:
        text = json.dumps(line.model_dump(mode="json"), ensure_ascii=False)
        self._file.write(text.encode(errors="replace") + b"\n")
        self._file.flush()


def previous_of(file: Path) -> Path:
    return file.with_name(f"{file.stem}{PREVIOUS}{file.suffix}")


def _kept(file: Path, *, fresh: bool) -> Mapping[str, Result]:
    written = file.read_bytes()
    whole = written[: written.rfind(b"\n") + 1]
    if not whole:  # devhost was killed within the header
        file.write_bytes(b"")
        return {}
    last = read_evaluation(file)
    if last.is_finished:
        file.replace(previous_of(file))
        return {}
    file.write_bytes(b"" if fresh else whole)
    return {} if fresh else last.results
