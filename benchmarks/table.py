"""Measurements as an aligned Markdown table for the terminal and README.md. Each row says whether it meets its goal."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """A limit, and whether it is met; ``None`` if there is no limit."""

    text: str = ""
    is_met: bool | None = None

    @classmethod
    def at_most(cls, limit: float, value: float, unit: str = "") -> "Goal":
        """Create the goal for a value, which is compared as it is printed, with two decimals."""
        return cls(f"≤ {limit:g}{unit}", round(value, 2) <= limit)

    @property
    def cells(self) -> tuple[str, str]:
        return self.text, {True: "yes", False: "**no**", None: ""}[self.is_met]


@dataclass(frozen=True)
class Row:
    cells: tuple[str, ...]
    """The cells of the row. The first one names the measurement."""
    goal: Goal = Goal()


@dataclass(frozen=True)
class Table:
    title: str
    headings: tuple[str, ...]
    rows: Sequence[Row]

    def __str__(self) -> str:
        """Return the table as Markdown. The first column is aligned to the left, all others to the right."""
        lines = [(*self.headings, "goal", "met"), *((*row.cells, *row.goal.cells) for row in self.rows)]
        lines = without_empty_columns([tuple(cell.replace("|", "\\|") for cell in line) for line in lines])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
        head, *body = [aligned(line, widths) for line in lines]
        return "\n".join([f"### {self.title}", "", head, f"| {' | '.join(rule)} |", *body])


def without_empty_columns(lines: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the lines without columns that have only a heading."""
    kept = [column for column in zip(*lines, strict=True) if any(column[1:])]
    return list(zip(*kept, strict=True))


def aligned(line: tuple[str, ...], widths: Sequence[int]) -> str:
    first, *others = line
    return f"| {' | '.join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])])} |"


def duration(seconds: float) -> str:
    """Return seconds with three digits in a suitable unit; "" for zero."""
    if not seconds:
        return ""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.0f} µs"


def number_of_bytes(size: float) -> str:
    """Return a number of bytes in a suitable decimal unit."""
    for unit, factor in (("MB", 1e6), ("KB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} B"
