"""The results of an evaluation: in their file, as a table, compared with those before."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, Self

from devhost.errors import SuiteError
from devhost.expected import Check, Observed
from devhost.text import Secrets, read_file, worded, write_file
from devhost.trace.lines import Line

# The results in a file of JSON lines, which grows while the cases run.

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


class Header(Line):
    devhost_evaluation: Literal[2] = 2
    file: str
    description: str
    scripted: bool
    columns: dict[str, dict[str, Any]]
    """By name, the settings of each."""
    cases: tuple[PlannedCase, ...]
    runs: int
    """How many are planned."""
    digest: str = ""
    """Of all that is written for the runs: one that was interrupted goes on only with the same."""


class Result(Line):
    case: str
    column: str
    repeat: int
    observed: Observed
    checks: tuple[Check, ...]
    trace: str = ""
    """The path of its trace; empty for a run that fits, and where none is written."""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.case, self.column, self.repeat

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


# An evaluation as a table: a cell for each case in each column, and a total for each column.

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

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> Self:
        """`cells`: of one column."""
        observed = [result.observed for cell in cells for result in cell.results]
        return cls(
            cells[0].column,
            passed=sum(cell.passed for cell in cells),
            cases=len(cells),
            tokens=fmean(each.tokens for each in observed),
            seconds=fmean(each.seconds for each in observed),
            price=sum((Decimal(each.price) for each in observed), Decimal(0)),
            currency=observed[-1].currency,
        )

    @property
    def share(self) -> float:
        return self.passed / self.cases

    def reaches(self, threshold: float) -> bool:
        return self.share >= threshold - TOLERANCE


@dataclass(frozen=True)
class Evaluation:
    header: Header
    results: tuple[Result, ...] = ()
    """In the order in which the runs ended; of an interrupted evaluation some are missing."""

    @property
    def is_finished(self) -> bool:
        return len(self.results) == self.header.runs

    @cached_property
    def cells(self) -> Mapping[tuple[str, str], Cell]:
        """By case and column; those that have a result."""
        found: dict[tuple[str, str], list[Result]] = {}
        for result in sorted(self.results, key=lambda result: result.repeat):
            found.setdefault((result.case, result.column), []).append(result)
        return {
            (case.name, column): Cell(case, column, tuple(found[case.name, column]))
            for case in self.header.cases
            for column in self.header.columns
            if (case.name, column) in found
        }

    @cached_property
    def totals(self) -> tuple[Total, ...]:
        """Of the columns that have a result."""
        columns = dict.fromkeys(column for _, column in self.cells)
        return tuple(Total.of([cell for cell in self.cells.values() if cell.column == each]) for each in columns)


MOST_BYTES = 256 * 1024 * 1024
"""The most bytes of a file of results that is read."""


def read_evaluation(file: Path) -> Evaluation:
    """As far as it came."""
    with worded(lambda why: SuiteError(f"{file} cannot be read: {why}")):
        *lines, _ = read_file(file, MOST_BYTES).split(b"\n")
    if not lines:
        raise SuiteError(f"{file} has no evaluation: its first line must be a header")
    header = _read_line(Header, file, 1, lines[0])
    return Evaluation(
        header, tuple(_read_line(Result, file, number, line) for number, line in enumerate(lines[1:], start=2))
    )


def _read_line[L: Line](kind: type[L], file: Path, number: int, line: bytes) -> L:
    begins = f"{file}, line {number}: not a line of an evaluation"
    with worded(lambda why: SuiteError(f"{begins} ({why}): delete the file")):
        return kind.model_validate_json(line)


def kept_beside(file: Path, which: str) -> Path:
    """`which`: PREVIOUS or INTERRUPTED."""
    return file.with_name(f"{file.stem}{which}{file.suffix}")


class ResultsFile:
    """Written line by line, so that an interrupted evaluation can go on."""

    def __init__(self, file: Path, header: Header, secrets: Secrets, done: tuple[Result, ...] = ()) -> None:
        """`done`: the results that the file has of this evaluation."""
        self.evaluation = Evaluation(header, done)
        self._file = file
        self._secrets = secrets
        begun = (Header.model_validate(secrets.masked(header.model_dump())), *done)
        with worded(lambda why: SuiteError(f"{file} cannot be written: {why}")):
            write_file(file, b"".join(map(_written, begun)))

    def add(self, result: Result) -> None:
        masked = Result.model_validate(self._secrets.masked(result.model_dump()))
        self.evaluation = Evaluation(self.evaluation.header, (*self.evaluation.results, masked))
        with self._file.open("ab") as file:
            file.write(_written(masked))


def _written(line: Line) -> bytes:
    text = json.dumps(line.model_dump(mode="json"), ensure_ascii=False)
    return text.encode(errors="replace") + b"\n"


# What became better and worse between two evaluations.
#
# Cases and columns are matched by their names; what only one of the two has is left out.

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
    def reasons(self) -> tuple[str, ...]:
        """The checks that failed on the worse side, which is named, and not on the other."""
        sides = ("before", self.before), ("after", self.after)
        (when, here), (_, there) = sides if self.is_better else reversed(sides)
        kept = {(check.name, check.expected) for check in there.failures}
        return tuple(f"{when}: {check.sentence}" for check in here.failures if (check.name, check.expected) not in kept)


@dataclass(frozen=True)
class ColumnChange:
    before: Total
    after: Total
    changes: tuple[Change, ...]
    """Of the cases that both have."""
    settings: tuple[str, ...]
    """What is set otherwise, a line each."""

    @property
    def column(self) -> str:
        return self.after.column

    @property
    def better(self) -> tuple[Change, ...]:
        return tuple(each for each in self.changes if each.is_better)

    @property
    def worse(self) -> tuple[Change, ...]:
        return tuple(each for each in self.changes if each.after.share < each.before.share)


type Comparison = tuple[ColumnChange, ...]


def compared(before: Evaluation, after: Evaluation) -> Comparison:
    """Of the columns that both have. Each side's totals are of all its cases."""
    totals = {total.column: total for total in before.totals}
    changes = [Change(before.cells[key], cell) for key, cell in after.cells.items() if key in before.cells]
    return tuple(
        ColumnChange(
            totals[column],
            total,
            tuple(each for each in changes if each.after.column == column),
            tuple(_differences(before.header.columns[column], after.header.columns[column])),
        )
        for total in after.totals
        if (column := total.column) in totals
    )


def _differences(before: Mapping[str, object], after: Mapping[str, object], within: str = "") -> Iterator[str]:
    for name in dict.fromkeys((*before, *after)):
        was = before.get(name)
        is_now = after.get(name)
        if isinstance(was, dict) and isinstance(is_now, dict):
            yield from _differences(was, is_now, f"{name}.")
        elif was != is_now:
            yield f"{within}{name}: {_said(was, is_now)} → {_said(is_now, was)}"


def _said(value: object, other: object) -> str:
    """Of two texts, what differs, with a few words before it."""
    if isinstance(value, str) and isinstance(other, str):
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(value, other, strict=False)))
        begin = max(0, same - CONTEXT)
        value = f"…{value[begin:]}" if begin else value
    if value is None:
        return "not set"
    return json.dumps(value, ensure_ascii=False)
