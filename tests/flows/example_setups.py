"""An example's tools over a database of their own, for flows: started once for all flows that use them.

In: an example's name. Out: a `ExampleSetup`, with the world of the example's `checks.py` and a running host.
"""

import importlib
import sqlite3
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from devhost.host.host import Host
from devhost.scenario import read_tool_setups
from examples.runner.world import Checks, World
from tests.flows.playing import ROOT

EXAMPLES = ROOT / "examples"


@dataclass(frozen=True)
class ExampleSetup:
    world: World | None
    """None without tools."""
    host: Host
    folder: Path
    """Of the database."""

    def begin(self, scenario: str) -> None:
        """An empty database, with what the scenario of the example needs."""
        if self.world is not None:
            self.world.begin(scenario)

    def stored(self, database: str, sql: str) -> list[tuple[Any, ...]]:
        """The rows that SQL finds in a database of the tools; none before they made it."""
        if not (self.folder / database).exists():
            return []
        with closing(sqlite3.connect(self.folder / database)) as opened:
            return opened.execute(sql).fetchall()


class ExampleSetups:
    def __init__(self, opened: ExitStack, new_folder: Callable[[str], Path]) -> None:
        self._opened = opened
        self._new_folder = new_folder
        self._started: dict[str | None, ExampleSetup] = {}

    def of(self, example: str | None) -> ExampleSetup:
        if example not in self._started:
            self._started[example] = self._start(example)
        return self._started[example]

    def _start(self, example: str | None) -> ExampleSetup:
        folder = self._new_folder(example or "no-tools")
        if example is None:
            return ExampleSetup(None, self._opened.enter_context(Host.start(ROOT)), folder)
        # At the end: an example has a `provider` and a `main` as we do, and ours must win.
        sys.path += [str(EXAMPLES / example), str(EXAMPLES / "shared")]
        checks = cast("Checks", importlib.import_module(f"examples.{example}.checks"))
        world = self._opened.enter_context(checks.world(folder))
        credentials = [
            f"{provider}.{key}={value}"
            for provider, values in world.credentials.items()
            for key, value in values.items()
        ]
        setups = read_tool_setups([EXAMPLES / example], credentials, (), {})
        tools = [setup.with_every_tool() for setup in setups]
        return ExampleSetup(world, self._opened.enter_context(Host.start(ROOT, tools=tools)), folder)
