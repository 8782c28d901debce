"""What the console keeps of evaluations that pages look at, so that a change costs what has changed."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from devhost.console.suites.growing import GrowingResults
from devhost.evaluation.results import previous_of
from devhost.evaluation.summary import Cell, Summary
from devhost.text.user_file import real_path

KEPT = 8
"""Files of cases; the results of a thousand runs take some megabytes."""


@dataclass
class Evaluated:
    """Of one file of results."""

    last: GrowingResults
    before: GrowingResults
    _pieces: dict[tuple[str, str], tuple[Cell, str]] = field(default_factory=dict)

    def pieces(self, summary: Summary, render: Callable[[Cell], str]) -> Mapping[tuple[str, str], str]:
        """The runs of each cell as HTML, by case and column: rendered again if another run was added."""
        for cell in summary.cells:
            key = (cell.case.name, cell.column)
            known = self._pieces.get(key)
            if known is None or not _same(known[0], cell):
                self._pieces[key] = (cell, render(cell))
        return {(cell.case.name, cell.column): self._pieces[cell.case.name, cell.column][1] for cell in summary.cells}


def piece_id(case: str, column: str) -> str:
    """Of the element that holds its runs."""
    return f"runs-{quote(f'{case}/{column}', safe='')}"


def _same(one: Cell, other: Cell) -> bool:
    return (
        one.case == other.case
        and len(one.results) == len(other.results)
        and all(mine is others for mine, others in zip(one.results, other.results, strict=True))
    )


class Evaluations:
    def __init__(self) -> None:
        self._kept: OrderedDict[Path, Evaluated] = OrderedDict()
        self._choosing = threading.Lock()

    def of(self, results: Path) -> Evaluated:
        with self._choosing:
            fresh = Evaluated(GrowingResults(results), GrowingResults(previous_of(results)))
            found = self._kept.setdefault(real_path(results), fresh)
            self._kept.move_to_end(real_path(results))
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return found
