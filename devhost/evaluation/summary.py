"""An evaluation as a table. In: an `Evaluation`. Out: a `Cell` for each case and column, and a `Total` by column."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean

from devhost.evaluation.checks.check import Check
from devhost.evaluation.results import Evaluation, PlannedCase, Result

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
