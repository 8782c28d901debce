"""How far the evaluation of a file of cases is, and what came of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from devhost.console.children import Child
from devhost.console.folder import last_printed
from devhost.errors import SuiteError
from devhost.evaluation.results import Cell, Comparison, Evaluation, Summary, compared, previous_of, read_evaluation
from devhost.trace.lines import Growing

RESULTS = ".results.jsonl"
"""The end of the name of a file of results, as `devhost eval` names it."""
MISTAKE = 2
"""The exit code of a command that found a mistake before it began."""


@dataclass(frozen=True)
class Standing:
    goes_on: bool
    """As a process of this console. One of another console or of a terminal only makes its results file grow."""
    evaluation: Evaluation | None = None
    """The last one."""
    comparison: Comparison | None = None
    """With the one before."""
    problem: str = ""

    @cached_property
    def summary(self) -> Summary | None:
        return None if self.evaluation is None else Summary.of(self.evaluation)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Of runs: with a result, planned, and passed."""
        if self.evaluation is None:
            return 0, 0, 0
        results = self.evaluation.results
        return len(results), self.evaluation.header.runs, sum(result.passed for result in results)

    @property
    def is_finished(self) -> bool:
        return self.evaluation is not None and self.evaluation.is_finished


class Evaluated:
    """What the console keeps of an evaluation that pages look at, so that a change costs what has changed."""

    def __init__(self, results: Path) -> None:
        self._last, self._before = Growing(results, read_evaluation), Growing(previous_of(results), read_evaluation)
        self._pieces: dict[str, tuple[Cell, str]] = {}

    def standing(self, child: Child | None) -> Standing:
        goes_on = child is not None and child.exit_code is None
        printed = "" if child is None else last_printed(child.output)
        if goes_on and not printed:  # what stands in the results file is still the evaluation before
            return Standing(goes_on=True)
        try:
            last, before = self._last.read(), self._before.read()
        except SuiteError as error:
            return Standing(goes_on, problem=str(error))
        problem = printed if child is not None and child.exit_code == MISTAKE else ""
        return Standing(goes_on, last, None if last is None or before is None else compared(before, last), problem)

    def cells(self, summary: Summary, render: Callable[[Cell, str], str]) -> Iterator[tuple[str, str]]:
        """The id and the HTML of the runs of each case in a column, those that failed first."""
        for cell in sorted(summary.cells, key=lambda cell: cell.passed):
            name = f"runs-{quote(f'{cell.case.name}/{cell.column}', safe='')}"
            if name not in self._pieces or self._pieces[name][0] != cell:
                self._pieces[name] = cell, render(cell, name)
            yield name, self._pieces[name][1]
