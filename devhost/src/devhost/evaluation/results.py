"""The file of an evaluation's results: a header, and a line for each run, written while the cases run."""

import json
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

from devhost.errors import SuiteError
from devhost.evaluation.shard import Shard
from devhost.expected import Check
from devhost.observed import Observed
from devhost.text import Secrets, open_file, worded, write_file
from devhost.trace.lines import FrozenLine

PREVIOUS = ".previous"
"""Before the suffix of the file in which the finished evaluation before is kept, for `--against last`."""
INTERRUPTED = ".interrupted"
"""The same for one that was interrupted, and did not go on."""


@dataclass(frozen=True)
class PlannedCase:
    name: str
    question: str
    rate: float
    """The share of the repeats that must fit."""


class ResultsHeader(FrozenLine):
    devhost_evaluation: Literal[2] = 2
    file: str
    description: str
    scripted: bool
    columns: dict[str, dict[str, Any]]
    """By name, the settings of each."""
    cases: tuple[PlannedCase, ...]
    runs: int
    """How many are planned, in all shards together."""
    digest: str = ""
    """A digest of all files that the runs read. An interrupted evaluation only goes on with the same digest."""
    threshold: float = 1.0
    began: str = ""
    """When, as ISO 8601 writes it. Empty in files that were written before 2026-12."""
    shard: str = ""
    """Such as `2/5`; empty for a whole evaluation."""

    @property
    def runs_here(self) -> int:
        """How many are planned for this shard."""
        if not self.shard:
            return self.runs
        return Shard.read(self.shard).count(self.runs)


type Key = tuple[str, str, int]
"""Case, column and repeat."""


class Result(FrozenLine):
    case: str
    column: str
    repeat: int
    observed: Observed
    checks: tuple[Check, ...]
    trace: str = ""
    """The path of its trace; empty for a run that fits, and where none is written."""
    judge_price: str = "0"
    """What its judge spent, in the currency of the run."""

    @property
    def key(self) -> Key:
        return self.case, self.column, self.repeat

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def spent(self) -> Decimal:
        return Decimal(self.observed.price) + Decimal(self.judge_price)


# The file as it is read: what tables need is kept of each result, and all else is read again where it is shown, so
# that thousands of long answers never stand in memory at once.

LONGEST_LINE = 256 * 1024 * 1024


@dataclass(frozen=True)
class RunFigures:
    """What tables need of a result."""

    key: Key
    passed: bool
    failed_calls: int
    tokens: int
    seconds: float
    price: Decimal
    spent: Decimal
    """The price with that of its judge."""
    currency: str
    scores: tuple[tuple[str, float], ...]
    """By the names of the checks that gave them."""
    place: int
    """Where its line begins in the file."""

    @classmethod
    def of(cls, result: Result, place: int) -> Self:
        seen = result.observed
        return cls(
            key=result.key,
            passed=result.passed,
            failed_calls=seen.failed_calls,
            tokens=seen.tokens,
            seconds=seen.seconds,
            price=Decimal(seen.price),
            spent=result.spent,
            currency=seen.currency,
            scores=tuple((check.name, check.score) for check in result.checks if check.score is not None),
            place=place,
        )


class ResultsReader:
    """A file of results that stays open: one that replaces it changes nothing here. Thread-safe."""

    def __init__(self, file: Path) -> None:
        self._name = file
        self._reading = threading.Lock()
        with self._worded():
            self._file: BinaryIO = open_file(file)
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def _read(self) -> None:
        lines = self._lines()
        first = next(lines, None)
        if first is None:
            raise SuiteError(f"{self._name} has no evaluation: its first line must be a header")
        self.header = _read_line(ResultsHeader, self._name, 1, first[1])
        self.end = len(first[1])
        """Where the last whole line ends: a process that was killed may have left a part of another one."""
        runs: list[RunFigures] = []
        for number, (place, line) in enumerate(lines, start=2):
            runs.append(RunFigures.of(_read_line(Result, self._name, number, line), place))
            self.end = place + len(line)
        self.runs = tuple(runs)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Each whole line with its place."""
        place = 0
        while True:
            with self._worded():
                self._file.seek(place)
                line = self._file.readline(LONGEST_LINE)
            if not line.endswith(b"\n"):
                return
            yield place, line
            place += len(line)

    def result(self, figures: RunFigures) -> Result:
        with self._reading, self._worded():
            self._file.seek(figures.place)
            return Result.model_validate_json(self._file.readline(LONGEST_LINE))

    def _worded(self) -> AbstractContextManager[None]:
        return worded(lambda why: SuiteError(f"{self._name} cannot be read: {why}"))


def _read_line[L: FrozenLine](kind: type[L], file: Path, number: int, line: bytes) -> L:
    begins = f"{file}, line {number}: not a line of an evaluation"
    with worded(lambda why: SuiteError(f"{begins} ({why}): delete the file")):
        return kind.model_validate_json(line)


def kept_beside(file: Path, which: str) -> Path:
    """`which`: PREVIOUS or INTERRUPTED."""
    return file.with_name(f"{file.stem}{which}{file.suffix}")


# The file as it is written.


class ResultsFile:
    """Written line by line, so that an interrupted evaluation can go on. Keeps counts, and no result."""

    def __init__(self, file: Path, header: ResultsHeader, secrets: Secrets, done: ResultsReader | None = None) -> None:
        """`done`: the file as an interrupted evaluation left it, which goes on."""
        self.header = header
        self.done: frozenset[Key] = frozenset()
        self.passed = 0
        self.ended = 0
        self.spent = Decimal(0)
        self._file = file
        self._secrets = secrets
        with worded(lambda why: SuiteError(f"{file} cannot be written: {why}")):
            if done is None:
                write_file(file, written(ResultsHeader.model_validate(secrets.masked(header.model_dump()))))
                return
            with file.open("r+b") as opened:
                opened.truncate(done.end)
        self.done = frozenset(run.key for run in done.runs)
        for run in done.runs:
            self._count(passed=run.passed, spent=run.spent)

    def add(self, result: Result) -> None:
        masked = Result.model_validate(self._secrets.masked(result.model_dump()))
        with self._file.open("ab") as file:
            file.write(written(masked))
        self._count(passed=result.passed, spent=result.spent)

    def _count(self, *, passed: bool, spent: Decimal) -> None:
        self.ended += 1
        self.passed += passed
        self.spent += spent


def written(line: FrozenLine) -> bytes:
    text = json.dumps(line.model_dump(mode="json"), ensure_ascii=False)
    return text.encode(errors="replace") + b"\n"
