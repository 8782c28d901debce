"""What became better and worse between two evaluations. In: two of them. Out: a `Comparison`.

Cases and columns are matched by their names; what only one of the two has is left out, and counted.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from devhost.evaluation.results import Evaluation
from devhost.evaluation.summary import Cell, Summary, Total

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
