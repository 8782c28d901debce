"""How far the evaluation of a file of cases is, and what came of it.

In: the results of a file of cases, the child that evaluates it. Out: a `Standing`.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from devhost.console.children.child import Child
from devhost.console.runs.printed import last_printed
from devhost.console.suites.evaluated import Evaluated
from devhost.errors import SuiteError
from devhost.evaluation.comparison import Comparison, compared
from devhost.evaluation.results import Evaluation, previous_of
from devhost.evaluation.summary import Summary

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
