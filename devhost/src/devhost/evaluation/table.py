"""An evaluation as a table: a cell for each case in each column, and a total for each column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Self

from devhost.evaluation.figures import Mean, Share
from devhost.evaluation.results import PlannedCase, Result, ResultsHeader, ResultsReader, RunFigures
from devhost.expected import Check

TOLERANCE = 1e-9
"""Tolerance for shares, which are quotients: 0.3 of ten repeats is three."""


@dataclass(frozen=True)
class Cell:
    case: PlannedCase
    column: str
    runs: tuple[RunFigures, ...]
    """The figures of all repeats, in their order; never empty."""
    reader: ResultsReader = field(repr=False, compare=False)

    @property
    def results(self) -> Iterator[Result]:
        """The results of all repeats. Each is read from the file when it is asked for."""
        return map(self.reader.result, self.runs)

    @property
    def fitting(self) -> int:
        """How many repeats fit."""
        return sum(run.passed for run in self.runs)

    @property
    def share(self) -> float:
        return self.fitting / len(self.runs)

    @property
    def passing(self) -> Share:
        """The share with its interval."""
        return Share(self.fitting, len(self.runs))

    @property
    def passed(self) -> bool:
        return self.share >= self.case.rate - TOLERANCE

    @property
    def failed_calls(self) -> int:
        """The number of failed calls in all repeats."""
        return sum(run.failed_calls for run in self.runs)

    @property
    def figures(self) -> Mapping[str, Mean]:
        """The mean per run of tokens, seconds, price and each score, by its name."""
        return {name: Mean.of(values) for name, values in self.values.items()}

    @cached_property
    def values(self) -> Mapping[str, Sequence[float]]:
        """By the names of the figures, that of each run that has it."""
        found: dict[str, list[float]] = {"tokens": [], "seconds": [], "price": []}
        for run in self.runs:
            found["tokens"].append(run.tokens)
            found["seconds"].append(run.seconds)
            found["price"].append(float(run.price))
            for name, score in run.scores:
                found.setdefault(name, []).append(score)
        return found

    @property
    def failures(self) -> tuple[Check, ...]:
        """Each once, whatever was found in its place in other repeats."""
        found: dict[tuple[str, str], Check] = {}
        for result in self.results:
            for check in result.checks:
                if not check.passed:
                    found.setdefault((check.name, check.expected), check)
        return tuple(found.values())

    @property
    def errors_of_calls(self) -> tuple[str, ...]:
        """Why calls failed, as `find_parts: KeyError: 'wordy', tools/find_parts.py:14`; each sentence once."""
        if not self.failed_calls:
            return ()
        return tuple(dict.fromkeys(error for result in self.results for error in result.observed.errors_of_calls))


@dataclass(frozen=True)
class ColumnTotal:
    column: str
    passed: int
    cases: int
    figures: Mapping[str, Mean]
    """The mean per run of tokens, seconds, price and each score, by its name."""
    price: Decimal
    """The price of all runs."""
    currency: str
    is_repeated: bool
    """Whether a case ran more than once."""

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> Self:
        """`cells`: of one column."""
        runs = [run for cell in cells for run in cell.runs]
        return cls(
            column=cells[0].column,
            passed=sum(cell.passed for cell in cells),
            cases=len(cells),
            figures=_figures(cells),
            price=sum((run.price for run in runs), Decimal(0)),
            currency=runs[-1].currency,
            is_repeated=len(runs) > len(cells),
        )

    @property
    def share(self) -> float:
        return self.passed / self.cases

    @property
    def passing(self) -> Share:
        """The share with its interval."""
        return Share(self.passed, self.cases)

    def reaches(self, threshold: float) -> bool:
        return self.share >= threshold - TOLERANCE


def _figures(cells: Sequence[Cell]) -> Mapping[str, Mean]:
    """The means over several cases, since the repeats of one case are alike. For one case, the means over its runs."""
    if len(cells) == 1:
        return cells[0].figures
    found: dict[str, list[float]] = {}
    for cell in cells:
        for name, mean in cell.figures.items():
            found.setdefault(name, []).append(mean.value)
    return {name: Mean.of(values) for name, values in found.items()}


@dataclass(frozen=True)
class Evaluation:
    header: ResultsHeader
    runs: tuple[RunFigures, ...]
    """In the order in which they ended; of an interrupted evaluation some are missing."""
    reader: ResultsReader = field(repr=False, compare=False)

    @property
    def is_finished(self) -> bool:
        """Whether all runs have ended. A shard is finished when its own part is."""
        return len(self.runs) == self.header.runs_here

    @property
    def spent(self) -> Decimal:
        return sum((run.spent for run in self.runs), Decimal(0))

    @cached_property
    def cells(self) -> Mapping[tuple[str, str], Cell]:
        """By case and column; those that have a result."""
        found: dict[tuple[str, str], list[RunFigures]] = {}
        for run in sorted(self.runs, key=lambda run: run.key[2]):
            found.setdefault(run.key[:2], []).append(run)
        return {
            (case.name, column): Cell(case, column, tuple(found[case.name, column]), self.reader)
            for case in self.header.cases
            for column in self.header.columns
            if (case.name, column) in found
        }

    @cached_property
    def totals(self) -> tuple[ColumnTotal, ...]:
        """The totals of the columns that have a result."""
        columns: dict[str, list[Cell]] = {}
        for cell in self.cells.values():
            columns.setdefault(cell.column, []).append(cell)
        return tuple(map(ColumnTotal.of, columns.values()))


def read_evaluation(file: Path) -> Evaluation:
    """As far as it came."""
    reader = ResultsReader(file)
    return Evaluation(reader.header, reader.runs, reader)
