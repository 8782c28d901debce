"""Arranges an evaluation as a table, with a cell for each case in each column and a total for each column."""

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
"""The tolerance for shares, because quotients are rounded: 0.3 of ten repeats must be three."""


@dataclass(frozen=True)
class Cell:
    """The runs of one case in one column."""

    case: PlannedCase
    column: str
    runs: tuple[RunFigures, ...]
    """The figures of all repeats in their order. A cell has at least one repeat."""
    reader: ResultsReader = field(repr=False, compare=False)

    @property
    def results(self) -> Iterator[Result]:
        """The results of all repeats. Each result is read from the file when it is needed."""
        return map(self.reader.result, self.runs)

    @property
    def fitting(self) -> int:
        """The number of repeats that passed."""
        return sum(run.passed for run in self.runs)

    @property
    def share(self) -> float:
        return self.fitting / len(self.runs)

    @property
    def passing(self) -> Share:
        """The share of passed repeats with its interval."""
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
        """The values of each figure, by its name, from all runs that have one."""
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
        """The failed checks. A check that fails in several repeats occurs only once."""
        found: dict[tuple[str, str], Check] = {}
        for result in self.results:
            for check in result.checks:
                if not check.passed:
                    found.setdefault((check.name, check.expected), check)
        return tuple(found.values())

    @property
    def errors_of_calls(self) -> tuple[str, ...]:
        """The different errors of calls, such as `find_parts: KeyError: 'wordy', tools/find_parts.py:14`."""
        if not self.failed_calls:
            return ()
        return tuple(dict.fromkeys(error for result in self.results for error in result.observed.errors_of_calls))


@dataclass(frozen=True)
class ColumnTotal:
    """The total of one column."""

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
        """Computes the total of the cells of one column."""
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
        """The share of passed cases with its interval."""
        return Share(self.passed, self.cases)

    def reaches(self, threshold: float) -> bool:
        """Returns whether the share of passed cases is at least the threshold."""
        return self.share >= threshold - TOLERANCE


def _figures(cells: Sequence[Cell]) -> Mapping[str, Mean]:
    """Returns the means over the cases, because the repeats of a case are alike, or over the runs of a single case."""
    if len(cells) == 1:
        return cells[0].figures
    found: dict[str, list[float]] = {}
    for cell in cells:
        for name, mean in cell.figures.items():
            found.setdefault(name, []).append(mean.value)
    return {name: Mean.of(values) for name, values in found.items()}


@dataclass(frozen=True)
class Evaluation:
    """An evaluation as its file of results records it."""

    header: ResultsHeader
    runs: tuple[RunFigures, ...]
    """The runs in the order in which they ended. In an interrupted evaluation, some are missing."""
    reader: ResultsReader = field(repr=False, compare=False)

    @property
    def is_finished(self) -> bool:
        """Whether all runs of the evaluation or shard have ended."""
        return len(self.runs) == self.header.runs_here

    @property
    def spent(self) -> Decimal:
        return sum((run.spent for run in self.runs), Decimal(0))

    @cached_property
    def cells(self) -> Mapping[tuple[str, str], Cell]:
        """The cells that have a result, by case and column."""
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
    """Reads an evaluation, which may be unfinished, from its file of results."""
    reader = ResultsReader(file)
    return Evaluation(reader.header, reader.runs, reader)
