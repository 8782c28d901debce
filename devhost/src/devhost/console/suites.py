"""Files of cases: which there are, how one is evaluated, and what came of it."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from glob import escape
from itertools import pairwise
from pathlib import Path
from typing import Self
from urllib.parse import quote

from devhost.console.children import Child
from devhost.console.runs import last_printed
from devhost.errors import HostError, SuiteError
from devhost.evaluation.results import (
    Cell,
    Comparison,
    Evaluation,
    Header,
    Result,
    Summary,
    compared,
    in_order,
    no_evaluation,
    previous_of,
    read_line,
)
from devhost.evaluation.suite import Suite
from devhost.golang import well_formed
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.scenario import examples_of
from devhost.text import open_file, real_path

# What a person asks of an evaluation.

INSTRUCTION = "instruction"
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
    def read(cls, one: Mapping[str, str], several: Mapping[str, Sequence[str]], suite: Suite) -> Self:
        """`several`: the values of those names that a form may send more than once."""
        text = one.get(INSTRUCTION, "").replace("\r\n", "\n")
        return cls(
            cases=_chosen(several.get("case", ()), [case.name for case in suite.cases]),
            columns=_chosen(several.get("column", ()), [column.name for column in suite.columns]),
            repeats=one.get("repeats", "").strip(),
            instruction=None if text == instruction_of(suite) or INSTRUCTION not in one else text,
            real=one.get("real") == "yes",
            model=one.get("model", "").strip(),
            fresh=one.get("fresh") == "yes",
        )

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
                yield from (option, escape(name))  # a name is no pattern
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


def instruction_in(arguments: Sequence[str]) -> str | None:
    """What an evaluation with these arguments changes; None if it leaves that of the file."""
    begin = f"{INSTRUCTION}="
    given = (value for option, value in pairwise(arguments) if option == "--param" and value.startswith(begin))
    return next((value.removeprefix(begin) for value in given), None)


def _chosen(names: Sequence[str], among: Sequence[str]) -> tuple[str, ...]:
    """All of them is the same as none."""
    known = tuple(name for name in among if name in names)
    return () if len(known) == len(among) else known


# Reads the results of an evaluation while they are written: a read parses what was added since the last one.


class GrowingResults:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._reading = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._offset = 0
        """Behind the last whole line that was read."""
        self._number = 0
        self._last = b""
        """The last line: it has the seconds of a run, so that another evaluation has another one there."""
        self._header: Header | None = None
        self._results: dict[str, Result] = {}
        self._evaluation: Evaluation | None = None

    def read(self) -> Evaluation | None:
        """As far as it is written; None if there is no file. A result that was there before is the same object.

        Raises SuiteError, at every read, for a file that has no evaluation.
        """
        with self._reading:
            try:
                return self._read(self._added())
            except FileNotFoundError:
                self._begin()
                return None
            except OSError as error:
                self._begin()
                raise SuiteError(f"{self._file} cannot be read: {error.strerror}") from error
            except SuiteError:
                self._begin()
                raise

    def _added(self) -> list[bytes]:
        """Whole lines."""
        with open_file(self._file) as file:
            file.seek(self._offset - len(self._last))
            if file.read(len(self._last)) != self._last:
                self._begin()
            file.seek(self._offset)
            return file.read().split(b"\n")[:-1]

    def _read(self, added: list[bytes]) -> Evaluation:
        for line in added:
            self._number += 1
            read = read_line(self._file, self._number, line)
            if isinstance(read, Header):
                self._header = read
            else:
                self._results[read.key] = read
            self._last = line + b"\n"
            self._offset += len(self._last)
        if self._header is None:
            raise no_evaluation(self._file)
        if added or self._evaluation is None:
            self._evaluation = in_order(self._header, self._results)
        return self._evaluation


# The files of cases that the console knows of.

EVALUATION, CASES = "evaluation.yaml", "cases.yaml"
SCRIPT_OF_A_CASE = ".case.yaml"
"""The end of a recorded script's name, which stands beside the cases."""


def known_suites(folder: Path, plugin: Path | None) -> list[Path]:
    """Those of the plugin's examples, then those of the folder of runs."""
    return [*filter(_has_an_address, _of_examples(plugin)), *cases_files(folder)]


def cases_files(folder: Path) -> list[Path]:
    found = (shortened(file) for file in folder.glob("*.yaml") if not file.name.endswith(SCRIPT_OF_A_CASE))
    return sorted(filter(_has_an_address, found))


def _has_an_address(file: Path) -> bool:
    """A path that is not UTF-8 cannot stand in one."""
    return well_formed(str(file)) == str(file)


def _of_examples(plugin: Path | None) -> Iterator[Path]:
    try:
        directory = nearest_strategy_plugin(Path.cwd()) if plugin is None else plugin
    except HostError:
        return
    for file in sorted(examples_of(directory).glob(f"*/{EVALUATION}")):
        yield shortened(file)


def shortened(file: Path) -> Path:
    """From the current folder, if the file is in it: as a person would type it."""
    relative = os.path.relpath(file)
    return file if relative.startswith(os.pardir) else Path(relative)


# What the console keeps of evaluations that pages look at, so that a change costs what has changed.

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


# How far the evaluation of a file of cases is, and what came of it.

RESULTS = ".results.jsonl"
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


def results_of(file: Path) -> Path:
    """As `devhost eval` names them."""
    return file.with_suffix(RESULTS)


def standing(evaluated: Evaluated, child: Child | None) -> Standing:
    goes_on = child is not None and child.exit_code is None
    printed = _printed(child)
    if goes_on and not printed:  # what stands in the results file is still the evaluation before
        return Standing(goes_on=True)
    problem = printed if child is not None and child.exit_code == MISTAKE else ""
    try:
        evaluation, before = evaluated.last.read(), evaluated.before.read()
    except SuiteError as error:
        return Standing(goes_on, problem=str(error))
    comparison = None if evaluation is None or before is None else compared(before, evaluation)
    return Standing(goes_on, evaluation, comparison, problem)


def version(file: Path, child: Child | None) -> object:
    """Another value whenever the standing may be another one."""
    goes_on = child is not None and child.exit_code is None
    files = (results_of(file), previous_of(results_of(file)))
    return goes_on, bool(_printed(child)), *((each.stat().st_size if each.is_file() else -1) for each in files)


def _printed(child: Child | None) -> str:
    return "" if child is None else last_printed(child.output)
