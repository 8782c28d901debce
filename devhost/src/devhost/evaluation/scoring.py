"""Scores runs with Python functions from modules beside the file of cases."""

import importlib.util
import reprlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite, nan
from pathlib import Path
from traceback import format_exc
from types import ModuleType
from typing import Protocol

from devhost.errors import SuiteError, naming
from devhost.expected import Check, Expected, ScoreExpected
from devhost.node.outputs.run import RunError
from devhost.observed import Observed


@dataclass(frozen=True)
class ScoredRun:
    """The run that a scorer scores."""

    case: str
    column: str
    question: str
    reference: str
    """The case's `reference`; empty if it has none."""
    observed: Observed
    """The observed run. The answer is `observed.text`, and `observed.error` is the error of a failed run."""


@dataclass(frozen=True)
class Score:
    """A score with a reason, which a scorer may return instead of a number or a boolean."""

    value: float
    reason: str = ""
    """A sentence that reports show."""


class Scorer(Protocol):
    """A function that scores a run, called by several threads at once. True counts as 1 and false as 0."""

    def __call__(self, run: ScoredRun, /) -> Score | float | bool: ...


type Scorers = Mapping[str, Scorer]
"""The scorers by their names in the form `module:function`."""


def load_scorers(folder: Path, expected: Iterable[Expected], *, allowed: bool) -> Scorers:
    """Imports the scorers that the cases name. Raises SuiteError if the import fails or is not allowed.

    `folder` is the folder of the file of cases. `allowed` says whether --allow-code was given.
    """
    names = dict.fromkeys(score.function for each in expected for score in each.score)
    if names and not allowed:
        raise SuiteError(f"score: {next(iter(names))} is Python code beside the cases: allow it with --allow-code")
    modules: dict[str, ModuleType] = {}
    scorers: dict[str, Scorer] = {}
    for name in names:
        module, _, function = name.partition(":")
        if module not in modules:
            modules[module] = _loaded(module, folder)
        scorer = getattr(modules[module], function, None)
        if not callable(scorer):
            there_are = naming(sorted(_functions(modules[module])))
            raise SuiteError(f"score: {name}: the module has no function {function!r}; {there_are}")
        scorers[name] = scorer
    return scorers


def _functions(module: ModuleType) -> Iterator[str]:
    for name, value in vars(module).items():
        if callable(value) and getattr(value, "__module__", "") == module.__name__ and not name.startswith("_"):
            yield name


def _loaded(name: str, folder: Path) -> ModuleType:
    """Imports a module of scorers, which can import other modules in its folder.

    The module gets a unique name, so that it does not replace a module of devhost.
    """
    file = folder.joinpath(*name.split(".")).with_suffix(".py")
    if not file.is_file():
        raise SuiteError(f"score: there is no module {name}: {file} does not exist")
    beside = str(folder.absolute())
    if beside not in sys.path:
        sys.path.append(beside)  # at the end, so that it hides no other module
    own_name = f"devhost_scorers_{sha256(bytes(file.absolute())).hexdigest()[:8]}_{name.replace('.', '_')}"
    spec = importlib.util.spec_from_file_location(own_name, file)
    if spec is None or spec.loader is None:
        raise SuiteError(f"score: {file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[own_name] = module  # dataclasses look up their module there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[own_name]
        raise SuiteError(f"score: {name} cannot be imported: {_line(error)}") from error
    return module


def scored(scorers: Scorers, expected: Expected, run: ScoredRun) -> Iterator[Check]:
    """Yields a check for each score. The check fails if its scorer raises or does not return a score."""
    for each in expected.score:
        try:
            given = scorers[each.function](run)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - code of a user, which must not end the evaluation
            yield Check(each.name, "a score", _line(error))
            continue
        yield _checked(each, given)


def _checked(expected: ScoreExpected, given: object) -> Check:
    reason = ""
    if isinstance(given, Score):
        reason = str(given.reason)
        given = given.value
    number = nan
    if isinstance(given, int | float):
        with suppress(OverflowError):
            number = float(given)
    if not isfinite(number):
        found = f"{reprlib.repr(given)} of type {type(given).__name__}"
        return Check(expected.name, "a finite number, True, False, or a Score", found)
    return expected.check(number, reason)


def _line(error: BaseException) -> str:
    """Returns an error on one line, such as `KeyError: 'word', suites/my_scores.py:12`."""
    return RunError(type(error).__name__, str(error), format_exc()).line
