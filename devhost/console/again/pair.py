"""Two runs of the folder beside each other, as far as they have come.

In: the names of two runs. Out: a `Pair`; what cannot be compared yet is None.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from devhost.comparison.comparison import Comparison
from devhost.comparison.lines import Row, rows
from devhost.comparison.sides import Side
from devhost.console.again.ran import calls_that_ran
from devhost.console.runs.folder import SETUP, RunFolder
from devhost.console.runs.setup import Setup
from devhost.errors import TraceError
from devhost.fork.fork import Origin, find_origin
from devhost.protocol.wire import JsonObject
from devhost.recording.settings import settings
from devhost.trace.reader import read_trace


@dataclass(frozen=True)
class Pair:
    comparison: Comparison
    settings: list[Row]
    """Question, strategy and parameters, where they differ."""
    ran: tuple[str, ...]
    """The calls of tools that ran although there is a recording; empty if the second run is no fork."""
    kept: int | None
    """How many rounds of the first run the second one repeats; None if it is no fork of it."""
    turns: Literal["recorded", "written", ""]
    """What the model of the second run said, if another instruction was given to one that is not real."""

    @property
    def not_recorded(self) -> tuple[str, ...]:
        return self.comparison.right.not_recorded

    @property
    def answer(self) -> list[Row]:
        """The whole answers."""
        return rows(self.comparison.left.answer, self.comparison.right.answer, whole=True)

    @property
    def names(self) -> tuple[str, str]:
        return self.comparison.left.name, self.comparison.right.name


def read_pair(folder: RunFolder, left: str, right: str) -> Pair | None:
    """None while the second run has not asked its strategy; TraceError for what is not a run at all."""
    setup = setup_of(folder, right)
    fork = setup if setup.kind == "fork" and setup.of == left else None
    before = find_origin(read_trace(folder.trace(left)), folder.trace(left), None if fork is None else fork.turn)
    after = _begun(folder, right)
    if after is None:
        return None
    return Pair(
        Comparison.of(_side(left, before), _side(right, after)),
        rows(list(_set(before)), list(_set(after))),
        () if fork is None else calls_that_ran(before, after, fork),
        None if fork is None else fork.at,
        _turns(before, after, fork),
    )


def setup_of(folder: RunFolder, name: str) -> Setup:
    """An empty one for a run that a command made."""
    return Setup.known(folder.beside(name, SETUP)) or Setup()


def _begun(folder: RunFolder, name: str) -> Origin | None:
    file = folder.trace(name)
    try:
        return find_origin(read_trace(file), file, None)
    except TraceError:
        if folder.beside(name, SETUP).is_file():
            return None
        raise


def _side(name: str, origin: Origin) -> Side:
    return Side.of(name, origin.trace.header.model.name, origin.run, origin.strategy)


def _turns(before: Origin, after: Origin, fork: Setup | None) -> Literal["recorded", "written", ""]:
    told = [origin.run.parameters.get("instruction") for origin in (before, after)]
    if told[0] == told[1] or not after.trace.header.model.scripted:
        return ""
    return "recorded" if fork is not None and fork.script is None else "written"


def _set(origin: Origin) -> Iterator[str]:
    """In lines."""
    known = settings(origin.run.parameters)
    asked: Mapping[str, object] = {"question": origin.run.question, "strategy": origin.strategy}
    for name, value in {**asked, **_resolved(known.params, known.variables)}.items():
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
        yield from f"{name}: {written}".splitlines()


def _resolved(params: JsonObject, variables: JsonObject) -> JsonObject:
    def value(written: object) -> object:
        match written:
            case {"variable": str(name)}:
                return variables.get(name, written)
        return written

    return {name: value(params[name]) for name in sorted(params)}
