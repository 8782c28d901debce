"""Measurements as a table that a person reads.

In: runs to be timed, and rows of what came of them. Out: medians, and aligned text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True)
class Row:
    """One line: what was measured, how long it took, and against what."""

    case: str
    seconds: float
    floor: str
    floor_seconds: float
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.seconds / self.floor_seconds

    def cells(self) -> tuple[str, ...]:
        milliseconds = f"{self.seconds * 1_000:.1f} ms", f"{self.floor_seconds * 1_000:.1f} ms"
        return self.case, milliseconds[0], self.floor, milliseconds[1], f"{self.ratio:.2f}", self.note


HEADINGS = ("case", "median", "against", "median", "ratio", "")


def medians(actions: Sequence[Callable[[], None]], runs: int) -> list[float]:
    """The median time of each action; they take turns, so that a busy moment of the machine hits all of them.

    A first round is not counted: it pays for imports and caches.
    """
    for action in actions:
        action()
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(runs):
        for action, taken in zip(actions, times, strict=True):
            started = perf_counter()
            action()
            taken.append(perf_counter() - started)
    return [median(taken) for taken in times]


def written(title: str, rows: Sequence[Row]) -> str:
    """A title and its rows; numbers stand at the right of their column."""
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    left = {0, 2, len(HEADINGS) - 1}
    text = [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([title, *text])
