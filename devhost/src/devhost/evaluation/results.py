"""The file with the results of an evaluation: a header and one line for each run, written while the cases run."""

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
"""Part of the name of the file that keeps the previous finished evaluation, for `--against last`."""
INTERRUPTED = ".interrupted"
"""Part of the name of the file that keeps an interrupted evaluation that was not continued."""


@dataclass(frozen=True)
class PlannedCase:
    """A case as the header of the results lists it."""

    name: str
    question: str
    rate: float
    """The share of the repeats that must pass."""


class ResultsHeader(FrozenLine):
    """The first line of a file of results."""

    devhost_evaluation: Literal[2] = 2
    """The version of the file format."""
    file: str
    """The path of the file of cases."""
    description: str
    scripted: bool
    """Whether scripts answer instead of real models."""
    columns: dict[str, dict[str, Any]]
    """The settings of each column by its name."""
    cases: tuple[PlannedCase, ...]
    runs: int
    """The number of planned runs in all shards together."""
    digest: str = ""
    """A digest of all files that the runs read. An interrupted evaluation can continue only with the same digest."""
    threshold: float = 1.0
    began: str = ""
    """The time when the evaluation began, in ISO 8601; empty in files written before 2026-12."""
    shard: str = ""
    """The shard, such as `2/5`; empty for a whole evaluation."""

    @property
    def runs_here(self) -> int:
        """The number of runs that are planned for this shard."""
        if not self.shard:
            return self.runs
        return Shard.read(self.shard).count(self.runs)


type Key = tuple[str, str, int]
"""The key of a run: its case, column and repeat."""


class Result(FrozenLine):
    """The result of one run, a line of the file."""

    case: str
    column: str
    repeat: int
    observed: Observed
    checks: tuple[Check, ...]
    trace: str = ""
    """The path of the run's trace; empty if the run passed or traces are not written."""
    judge_price: str = "0"
    """The cost of the judge, in the currency of the run."""

    @property
    def key(self) -> Key:
        return self.case, self.column, self.repeat

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def spent(self) -> Decimal:
        return Decimal(self.observed.price) + Decimal(self.judge_price)


# Reading the file. Only the figures of each result are kept in memory. All other facts are read again when they are
# shown, so that thousands of long answers are never in memory at once.

LONGEST_LINE = 256 * 1024 * 1024


@dataclass(frozen=True)
class RunFigures:
    """The facts of a result that tables need."""

    key: Key
    passed: bool
    failed_calls: int
    tokens: int
    seconds: float
    price: Decimal
    spent: Decimal
    """The price of the run and its judge together."""
    currency: str
    scores: tuple[tuple[str, float], ...]
    """The scores, each with the name of its check."""
    place: int
    """The position of the result's line in the file, in bytes."""

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
    """A thread-safe reader of a file of results. The file stays open, so that replacing it has no effect here."""

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
        """The end of the last complete line. A process that was killed may have left an incomplete line at the end."""
        runs: list[RunFigures] = []
        for number, (place, line) in enumerate(lines, start=2):
            runs.append(RunFigures.of(_read_line(Result, self._name, number, line), place))
            self.end = place + len(line)
        self.runs = tuple(runs)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Yields each complete line with its position."""
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
    """Returns the path of the file that keeps another evaluation. `which` is PREVIOUS or INTERRUPTED."""
    return file.with_name(f"{file.stem}{which}{file.suffix}")


# Writing the file.


class ResultsFile:
    """Writes results line by line, so that an interrupted evaluation can continue, and keeps only counts in memory."""

    def __init__(self, file: Path, header: ResultsHeader, secrets: Secrets, done: ResultsReader | None = None) -> None:
        """Starts a new file, or continues the file of an interrupted evaluation, whose results are in `done`."""
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
    """Serializes a line of the file."""
    text = json.dumps(line.model_dump(mode="json"), ensure_ascii=False)
    return text.encode(errors="replace") + b"\n"
