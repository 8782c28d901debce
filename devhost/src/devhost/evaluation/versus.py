"""Compares two evaluations: which cases and figures got better or worse, beyond chance.

Cases and columns are matched by name. Cases and columns that only one evaluation has are left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from devhost.evaluation.figures import Share, Verdict, mean_difference, paired_correlation, share_difference
from devhost.evaluation.table import Cell, ColumnTotal, Evaluation

CONTEXT = 40
"""How many characters are shown before the first difference of two texts."""


@dataclass(frozen=True)
class CaseChange:
    """A case of one column in both evaluations."""

    before: Cell
    after: Cell
    is_scripted: bool
    """Whether both evaluations are scripted, so that chance plays no part unless repeats differ."""

    @property
    def is_another(self) -> bool:
        """Whether the share of runs that passed has changed."""
        return self.before.share != self.after.share

    @property
    def verdict(self) -> Verdict:
        """Whether the case got better (`more`) or worse (`less`), beyond chance."""
        if not self.is_another:
            return "same"
        if self.is_scripted and {self.before.share, self.after.share} <= {0.0, 1.0}:
            return _sign(self.after.share - self.before.share)
        return share_difference(self.before.passing, self.after.passing).verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """The checks that failed only in the worse evaluation, each after the word `before` or `after`."""
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
    """A column in both evaluations."""

    before: ColumnTotal
    after: ColumnTotal
    changes: tuple[CaseChange, ...]
    """All cases that both evaluations have."""
    settings: tuple[str, ...]
    """The settings that differ, one line each."""

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
        """The cases whose share of passed runs changed, but not beyond chance."""
        return tuple(each for each in self.changes if each.is_another and each.verdict == "same")

    @property
    def verdict(self) -> Verdict:
        """Whether more or fewer of the common cases passed, beyond chance."""
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
        """The verdict on tokens, seconds, price and each score, by name, over the common cases."""
        pairs: dict[str, list[tuple[float, float]]] = {}
        for change in self.changes:
            after = change.after.figures
            for name, mean in change.before.figures.items():
                if name in after:
                    pairs.setdefault(name, []).append((mean.value, after[name].value))
        return {name: mean_difference(each) for name, each in pairs.items()}


type Comparison = tuple[ColumnChange, ...]
"""The comparison of two evaluations, column by column."""


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
    """Returns a value as JSON. A text is shown from shortly before its first difference from the other text."""
    if isinstance(value, str) and isinstance(other, str):
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(value, other, strict=False)))
        begin = max(0, same - CONTEXT)
        if begin:
            value = f"…{value[begin:]}"
    if value is None:
        return "not set"
    return json.dumps(value, ensure_ascii=False)


def figures_beyond_chance(column: ColumnChange) -> Sequence[str]:
    """Returns the figures that differ beyond chance, such as `more tokens` or `less seconds`."""
    return [f"{verdict} {name}" for name, verdict in column.figures.items() if verdict != "same"]
