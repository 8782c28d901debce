"""What became better and worse between two evaluations, beyond chance.

Cases and columns are matched by their names; what only one of the two has is left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from devhost.evaluation.figures import Share, Verdict, mean_difference, paired_correlation, share_difference
from devhost.evaluation.table import Cell, ColumnTotal, Evaluation

CONTEXT = 40
"""Characters before the first difference of two texts."""


@dataclass(frozen=True)
class CaseChange:
    """A case in one column, before and after."""

    before: Cell
    after: Cell
    is_scripted: bool
    """On both sides: then nothing is left to chance, unless repeats differ."""

    @property
    def is_another(self) -> bool:
        """Whether another share of its runs passed."""
        return self.before.share != self.after.share

    @property
    def verdict(self) -> Verdict:
        """More is better."""
        if not self.is_another:
            return "same"
        if self.is_scripted and {self.before.share, self.after.share} <= {0.0, 1.0}:
            return _sign(self.after.share - self.before.share)
        return share_difference(self.before.passing, self.after.passing).verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """The checks that failed on the worse side, which is named, and not on the other."""
        when = "after"
        here = self.after
        there = self.before
        if self.after.share > self.before.share:
            when = "before"
            here = self.before
            there = self.after
        kept = {(check.name, check.expected) for check in there.failures}
        return tuple(f"{when}: {check.sentence}" for check in here.failures if (check.name, check.expected) not in kept)


def _sign(difference: float) -> Verdict:
    if difference > 0:
        return "more"
    if difference < 0:
        return "less"
    return "same"


@dataclass(frozen=True)
class ColumnChange:
    before: ColumnTotal
    after: ColumnTotal
    changes: tuple[CaseChange, ...]
    """The changes of the cases that both evaluations have."""
    settings: tuple[str, ...]
    """What is set otherwise, a line each."""

    @property
    def column(self) -> str:
        return self.after.column

    @property
    def better(self) -> tuple[CaseChange, ...]:
        return tuple(each for each in self.changes if each.verdict == "more")

    @property
    def worse(self) -> tuple[CaseChange, ...]:
        return tuple(each for each in self.changes if each.verdict == "less")

    @property
    def unclear(self) -> tuple[CaseChange, ...]:
        """The cases of which another share passed, as chance may have it."""
        return tuple(each for each in self.changes if each.is_another and each.verdict == "same")

    @property
    def verdict(self) -> Verdict:
        """Whether more or fewer of the cases that both have passed, beyond chance."""
        pairs = [(each.before.passed, each.after.passed) for each in self.changes]
        if not pairs:
            return "same"
        before = Share(sum(was for was, _ in pairs), len(pairs))
        after = Share(sum(now for _, now in pairs), len(pairs))
        if all(each.is_scripted for each in self.changes) and not self.unclear:
            return _sign(after.value - before.value)
        return share_difference(before, after, paired_correlation(pairs)).verdict

    @property
    def figures(self) -> Mapping[str, Verdict]:
        """By the name of tokens, seconds, price and of each score; of the cases that both have."""
        pairs: dict[str, list[tuple[float, float]]] = {}
        for change in self.changes:
            after = change.after.figures
            for name, mean in change.before.figures.items():
                if name in after:
                    pairs.setdefault(name, []).append((mean.value, after[name].value))
        return {name: mean_difference(each) for name, each in pairs.items()}


type Comparison = tuple[ColumnChange, ...]


def compared(before: Evaluation, after: Evaluation) -> Comparison:
    """Compares the columns that both evaluations have. The totals of each side cover all its cases."""
    totals = {total.column: total for total in before.totals}
    is_scripted = before.header.scripted and after.header.scripted
    changes: dict[str, list[CaseChange]] = {}
    for key, cell in after.cells.items():
        if key in before.cells:
            changes.setdefault(cell.column, []).append(CaseChange(before.cells[key], cell, is_scripted))
    return tuple(
        ColumnChange(
            totals[total.column],
            total,
            tuple(changes.get(total.column, ())),
            tuple(_differences(before.header.columns[total.column], after.header.columns[total.column])),
        )
        for total in after.totals
        if total.column in totals
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
    """The part in which two texts differ, with a few words before it."""
    if isinstance(value, str) and isinstance(other, str):
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(value, other, strict=False)))
        begin = max(0, same - CONTEXT)
        if begin:
            value = f"…{value[begin:]}"
    if value is None:
        return "not set"
    return json.dumps(value, ensure_ascii=False)


def figures_beyond_chance(column: ColumnChange) -> Sequence[str]:
    """Such as `more tokens`, `less seconds`."""
    return [f"{verdict} {name}" for name, verdict in column.figures.items() if verdict != "same"]
