"""The results of an evaluation: in their file, as a table, compared with those before."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from devhost.errors import SuiteError
from devhost.expected import Check, Observed
from devhost.text import Secrets, describe
from devhost.trace.lines import Growing, NumberedLine

# The results of an evaluation in a file of JSON lines, so that an interrupted one goes on where it was.
#
# A line that was cut off when devhost was killed is removed before the next one is written. A finished evaluation is
# kept beside the new one.

PREVIOUS = ".previous"
"""Before the suffix of the file in which the evaluation before the last one is kept."""


class Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


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
    trace: str = ""
    """The path of its trace; empty for a run that fits, and where none is written."""

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
    found = GrowingResults(file).read()
    if found is None:
        raise SuiteError(f"{file} cannot be read: No such file or directory")
    return found


class GrowingResults(Growing[Evaluation]):
    """As far as they are written; a result that was there before is the same object."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, SuiteError)

    def _begin(self) -> None:
        self._header: Header | None = None
        self._results: dict[str, Result] = {}
        self._evaluation: Evaluation | None = None

    def _added(self, lines: Sequence[NumberedLine], rest: bytes) -> Evaluation:
        del rest
        for number, line in lines:
            read = read_line(self.file, number, line)
            if isinstance(read, Header):
                self._header = read
            else:
                self._results[read.key] = read
        if self._header is None:
            raise SuiteError(f"{self.file} has no evaluation: its first line must be a header")
        if lines or self._evaluation is None:
            self._evaluation = in_order(self._header, self._results)
        return self._evaluation


def read_line(file: Path, number: int, line: bytes) -> Header | Result:
    """SuiteError for a line that is neither."""
    try:
        read: Any = json.loads(line)
        is_header = isinstance(read, dict) and "devhost_evaluation" in read
        return Header.model_validate(read) if is_header else Result.model_validate(read)
    except (ValueError, RecursionError) as error:
        why = describe(error) if isinstance(error, ValidationError) else str(error)
        raise SuiteError(f"{file}, line {number}: not a line of an evaluation: {why}") from error


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


# An evaluation as a table.

TOLERANCE = 1e-9
"""Of shares, which are quotients: 0.3 of ten repeats is three."""


@dataclass(frozen=True)
class Cell:
    case: PlannedCase
    column: str
    results: tuple[Result, ...]
    """Of all repeats; never empty."""

    @property
    def fitting(self) -> int:
        """How many repeats fit."""
        return sum(result.passed for result in self.results)

    @property
    def share(self) -> float:
        return self.fitting / len(self.results)

    @property
    def passed(self) -> bool:
        return self.share >= self.case.rate - TOLERANCE

    @property
    def failed_calls(self) -> int:
        """Of all repeats."""
        return sum(result.observed.failed_calls for result in self.results)

    @property
    def seconds(self) -> float:
        return sum(result.observed.seconds for result in self.results)

    @property
    def failures(self) -> tuple[Check, ...]:
        """Each once, whatever was found in its place in other repeats."""
        failed = [check for result in self.results for check in result.checks if not check.passed]
        return tuple({(check.name, check.expected): check for check in reversed(failed)}.values())[::-1]


@dataclass(frozen=True)
class Total:
    column: str
    passed: int
    cases: int
    tokens: float
    """The mean of a run."""
    seconds: float
    """The mean of a run."""
    price: Decimal
    """Of all runs."""
    currency: str

    @property
    def share(self) -> float:
        return self.passed / self.cases

    def reaches(self, threshold: float) -> bool:
        return self.share >= threshold - TOLERANCE


@dataclass(frozen=True)
class Summary:
    evaluation: Evaluation
    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, evaluation: Evaluation) -> "Summary":
        found: dict[tuple[str, str], list[Result]] = {}
        for result in evaluation.results.values():
            found.setdefault((result.case, result.column), []).append(result)
        cells = (
            Cell(case, column, tuple(found[case.name, column]))
            for case in evaluation.header.cases
            for column in evaluation.header.columns
            if (case.name, column) in found
        )
        return cls(evaluation, tuple(cells))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.column for cell in self.cells))

    def cell(self, case: str, column: str) -> Cell | None:
        return next((cell for cell in self.cells if (cell.case.name, cell.column) == (case, column)), None)

    @property
    def totals(self) -> tuple[Total, ...]:
        return tuple(_total(column, [cell for cell in self.cells if cell.column == column]) for column in self.columns)


def _total(column: str, cells: Sequence[Cell]) -> Total:
    observed = [result.observed for cell in cells for result in cell.results]
    return Total(
        column,
        passed=sum(cell.passed for cell in cells),
        cases=len(cells),
        tokens=fmean(each.tokens for each in observed),
        seconds=fmean(each.seconds for each in observed),
        price=sum((Decimal(each.price) for each in observed), Decimal(0)),
        currency=observed[-1].currency,
    )


# What became better and worse between two evaluations.
#
# Cases and columns are matched by their names; what only one of the two has is left out, and counted.

CONTEXT = 40
"""Characters before the first difference of two texts."""


@dataclass(frozen=True)
class Change:
    """A case in one column, before and after."""

    before: Cell
    after: Cell

    @property
    def is_better(self) -> bool:
        return self.after.share > self.before.share

    @property
    def is_worse(self) -> bool:
        return self.after.share < self.before.share

    @property
    def is_another_case(self) -> bool:
        """Whether its question, its script or its expectations changed, too."""
        return self.before.results[0].case_digest != self.after.results[0].case_digest

    @property
    def reasons(self) -> tuple[str, ...]:
        """The checks that failed on one side only; of a worse case as sentences."""
        here, there = (self.before, self.after) if self.is_better else (self.after, self.before)
        kept = {(check.name, check.expected) for check in there.failures}
        failed = [check for check in here.failures if (check.name, check.expected) not in kept]
        return tuple(check.sentence if self.is_worse else f"{check.name}: {check.expected}" for check in failed)


@dataclass(frozen=True)
class ColumnChange:
    column: str
    before: Total
    after: Total
    better: tuple[Change, ...]
    worse: tuple[Change, ...]
    compared: int
    """Cases that both have."""
    settings: tuple[str, ...]
    """What is set otherwise, a line each."""


@dataclass(frozen=True)
class Comparison:
    columns: tuple[ColumnChange, ...]
    only_before: int
    only_after: int
    """Pairs of a case and a column that the other evaluation does not have."""


def compared(before: Evaluation, after: Evaluation) -> Comparison:
    """Each side's totals are of all its cases."""
    old, new = Summary.of(before), Summary.of(after)
    names = {(cell.case.name, cell.column): cell for cell in old.cells}
    changes = [
        Change(names[cell.case.name, cell.column], cell) for cell in new.cells if (cell.case.name, cell.column) in names
    ]
    totals = {total.column: total for total in old.totals}
    return Comparison(
        columns=tuple(
            _column(
                totals[total.column], total, [each for each in changes if each.after.column == total.column], old, new
            )
            for total in new.totals
            if total.column in totals
        ),
        only_before=len(old.cells) - len(changes),
        only_after=len(new.cells) - len(changes),
    )


def _column(before: Total, after: Total, changes: list[Change], old: Summary, new: Summary) -> ColumnChange:
    was, is_now = (each.evaluation.header.columns[after.column] for each in (old, new))
    return ColumnChange(
        after.column,
        before,
        after,
        better=tuple(change for change in changes if change.is_better),
        worse=tuple(change for change in changes if change.is_worse),
        compared=len(changes),
        settings=tuple(_differences(was, is_now)),
    )


def _differences(before: Mapping[str, object], after: Mapping[str, object], within: str = "") -> Iterator[str]:
    for name in dict.fromkeys((*before, *after)):
        was, is_now = before.get(name), after.get(name)
        if isinstance(was, dict) and isinstance(is_now, dict):
            yield from _differences(was, is_now, f"{name}.")
        elif was != is_now:
            yield f"{within}{name}: {_said(was, is_now)} → {_said(is_now, was)}"


def _said(value: object, other: object) -> str:
    """Of two texts, what differs, with a few words before it."""
    if isinstance(value, str) and isinstance(other, str):
        letters = enumerate(zip(value, other, strict=False))
        same = next((place for place, (mine, others) in letters if mine != others), min(len(value), len(other)))
        begin = max(0, same - CONTEXT)
        value = f"…{value[begin:]}" if begin else value
    return "not set" if value is None else json.dumps(value, ensure_ascii=False)
