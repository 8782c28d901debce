"""Files of cases: which there are, what a person asks of an evaluation, how far it is, and what came of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Self
from urllib.parse import quote

from devhost.console.children import Child
from devhost.console.folder import last_printed
from devhost.console.setup import INSTRUCTION
from devhost.errors import SuiteError
from devhost.evaluation.results import Cell, Comparison, Evaluation, GrowingResults, Summary, compared, previous_of
from devhost.evaluation.suite import Suite

CASES, RESULTS = "cases.yaml", ".results.jsonl"


def results_of(file: Path) -> Path:
    """As `devhost eval` names them."""
    return file.with_suffix(RESULTS)


# What a person asks of an evaluation.

MOST_REPEATS = 1_000


@dataclass(frozen=True)
class Asked:
    cases: tuple[str, ...] = ()
    """By name; empty for all."""
    columns: tuple[str, ...] = ()
    repeats: str = ""
    """As typed; empty for those of the file."""
    instruction: str | None = None
    """None for that of the file."""
    real: bool = False
    """Whether a model behind an API is asked."""
    model: str = ""
    fresh: bool = False
    against_last: bool = False

    @classmethod
    def read(cls, given: Mapping[str, str], several: Mapping[str, Sequence[str]], suite: Suite) -> Self:
        """`several`: the values of those names that a form may send more than once."""
        text = given.get(INSTRUCTION, "").replace("\r\n", "\n")
        return cls(
            cases=_chosen(several.get("case", ()), [case.name for case in suite.cases]),
            columns=_chosen(several.get("column", ()), [column.name for column in suite.columns]),
            repeats=given.get("repeats", "").strip(),
            instruction=None if text == instruction_of(suite) or INSTRUCTION not in given else text,
            real=given.get("real") == "yes",
            model=given.get("model", "").strip(),
            fresh=given.get("fresh") == "yes",
        )

    @property
    def mistakes(self) -> dict[str, str]:
        """By field."""
        is_number = self.repeats.isascii() and self.repeats.isdigit() and 1 <= int(self.repeats[:9]) <= MOST_REPEATS
        found = {"repeats": f"a number from 1 to {MOST_REPEATS:,}, or nothing"}
        return found if self.repeats and not is_number else {}

    def arguments(self, file: Path, plugin: Path | None) -> tuple[str, ...]:
        return tuple(self._arguments(file, plugin))

    def _arguments(self, file: Path, plugin: Path | None) -> Iterator[str]:
        yield from ("eval", str(file))
        for option, names in (("--case", self.cases), ("--column", self.columns)):
            for name in names:
                yield from (option, escape(name))  # a name is not a pattern
        values = {
            "--repeats": self.repeats,
            "--param": None if self.instruction is None else f"{INSTRUCTION}={self.instruction}",
            "--model": self.model if self.real else "",
            "--plugin": None if plugin is None else str(plugin),
            "--against": "last" if self.against_last else "",
        }
        for option, value in values.items():
            if value:
                yield from (option, value)
        if not self.real:
            yield "--scripted"
        if self.fresh:
            yield "--fresh"


def instruction_of(suite: Suite) -> str:
    """For all cases, if the file has one."""
    value = suite.params.get(INSTRUCTION)
    return value if isinstance(value, str) else ""


def _chosen(names: Sequence[str], among: Sequence[str]) -> tuple[str, ...]:
    """All of them is the same as none."""
    known = tuple(name for name in among if name in names)
    return () if len(known) == len(among) else known


# How far the evaluation of a file of cases is, and what came of it.

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
    def done(self) -> int:
        return 0 if self.evaluation is None else len(self.evaluation.results)

    @property
    def planned(self) -> int:
        return 0 if self.evaluation is None else len(self.evaluation.header.plan)

    @property
    def passed(self) -> int:
        return 0 if self.evaluation is None else sum(result.passed for result in self.evaluation.results.values())

    @property
    def is_finished(self) -> bool:
        return self.evaluation is not None and self.evaluation.is_finished


class Evaluated:
    """What the console keeps of an evaluation that pages look at, so that a change costs what has changed."""

    def __init__(self, results: Path) -> None:
        self._last, self._before = GrowingResults(results), GrowingResults(previous_of(results))
        self._pieces: dict[tuple[str, str], tuple[Cell, str]] = {}

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
            key = (cell.case.name, cell.column)
            piece = f"runs-{quote('/'.join(key), safe='')}"
            if key not in self._pieces or self._pieces[key][0] != cell:
                self._pieces[key] = cell, render(cell, piece)
            yield piece, self._pieces[key][1]
