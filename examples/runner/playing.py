"""One example's scenarios on the scripted model, one after the other, with its tools over a database of their own."""

import importlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self, cast

from sqlalchemy import URL

from devhost import Host, HostError, Run, ToolSetup
from devhost.case import Case
from devhost.playing import play as play_case
from tests.support.strict_reader import READER

from .rows import Row
from .scenarios import ROOT, Cast, casts
from .world import Checks, Director, Played, World


def played_rows(example: str, database: URL | None = None) -> Iterator[Row]:
    """`database`: one in place of an SQLite file, where the example takes one; then each scenario is played once."""
    checks = cast("Checks", importlib.import_module(f"examples.{example}.checks"))
    with (
        tempfile.TemporaryDirectory(prefix=f"{example}-") as folder,
        checks.world(Path(folder), *([] if database is None else [database])) as world,
        _Hosts() as hosts,
        READER.reads_devhost(),
    ):
        played = set[str]()
        for each in casts(example):
            if database is None or each.scenario not in played:
                yield _row(each, world, hosts)
            played.add(each.scenario)


def _row(each: Cast, world: World, hosts: "_Hosts") -> Row:
    world.begin(each.scenario)
    try:
        case = each.read(world.credentials)
        play = world.play if isinstance(world, Director) else conversation
        runs = play(case, hosts.for_tools(case.setups))
    except HostError as error:
        return Row.of(each, (), [str(error), *_refused_requests()])
    problems = [*world.problems(Played(each.scenario, each.strategy, runs)), *_faults(runs), *_refused_requests()]
    return Row.of(each, runs, problems)


def conversation(case: Case, host: Host) -> tuple[Run, ...]:
    """The script's whole conversation with the agent."""
    return tuple(run for turn in play_case(case, host) for run in turn.played.runs)


def _faults(runs: Sequence[Run]) -> Iterator[str]:
    """What is wrong in any scenario."""
    for run in runs:
        yield from (f"{finding.rule}: {finding.sentence}" for finding in run.findings)


def _refused_requests() -> Iterator[str]:
    """The model calls of a scenario that a provider would refuse."""
    yield from (str(broken) for broken in READER.taken())
    READER.forget()


class _Hosts:
    """Starts the plugins once for all scenarios that set up the tools in the same way."""

    def __init__(self) -> None:
        self._started: list[tuple[tuple[ToolSetup, ...], Host]] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def for_tools(self, tools: tuple[ToolSetup, ...]) -> Host:
        for others, host in self._started:
            if others == tools:
                return host
        host = self._open.enter_context(Host.start(ROOT, tools=tools))
        self._started.append((tools, host))
        return host
