"""Starts the strategy plugin and its tool plugins side by side.

In: a function for each plugin. Out: the plugins as they run, in the same order; or an error with the reasons of all
that failed, in that order, and none of them is left running.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypedDict, Unpack

from devhost.errors import HostError
from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.launches import Launches
from devhost.process.plugin_process import PluginProcess
from devhost.process.transports.transport import TransportName
from devhost.process.watcher import Watcher
from devhost.text.secrets import Secrets
from devhost.tools.panel import start_tool_plugin
from devhost.tools.setup import ToolSetup


class StartOptions(TypedDict):
    """Of `PluginProcess.start`."""

    limits: HostLimits
    python: str
    watcher: Watcher
    secrets: Secrets


GRACE_SECONDS = 10.0
"""For the others after one has failed, so that most errors are reported together."""


def start_plugins(
    strategies: Path | None, tools: Sequence[ToolSetup], transport: TransportName, **options: Unpack[StartOptions]
) -> list[PluginProcess]:
    """The strategy plugin, if any, then those of the tools. Tool plugins run locally, whatever the transport is."""
    starts = [Start(setup.declaration.manifest.name, partial(start_tool_plugin, setup, **options)) for setup in tools]
    if strategies is not None:
        begin = partial(PluginProcess.start, strategies, transport=transport, **options)
        starts = [Start(PluginDeclaration.read(strategies).manifest.name, begin), *starts]
    return started_side_by_side(starts, options["watcher"]) if starts else []


@dataclass(frozen=True)
class Start:
    name: str
    begin: Callable[[Launches], PluginProcess]


def started_side_by_side(starts: Sequence[Start], watcher: Watcher) -> list[PluginProcess]:
    """HostError if one fails; after any exception, Ctrl-C included, all processes have ended."""
    launches = Launches()
    with ThreadPoolExecutor(len(starts)) as pool:
        try:
            watcher.starting([start.name for start in starts])
            futures = [pool.submit(start.begin, launches) for start in starts]
            for waiting in _waiting(futures):
                names = [start.name for start, future in zip(starts, futures, strict=True) if future in waiting]
                watcher.starting(names)
            _raise(futures)
            return [future.result() for future in futures]
        except BaseException:
            launches.end()
            raise


def _waiting(futures: Sequence[Future[PluginProcess]]) -> Iterator[set[Future[PluginProcess]]]:
    """Those that are still starting, each time one is done; ends when all are, or some time after one has failed."""
    waiting = set(futures)
    give_up: float | None = None
    while waiting:
        left = None if give_up is None else max(0.0, give_up - time.monotonic())
        done, waiting = wait(waiting, left, FIRST_COMPLETED)
        if not done:
            return
        if give_up is None and any(future.exception() for future in done):
            give_up = time.monotonic() + GRACE_SECONDS
        yield waiting


def _raise(futures: Sequence[Future[PluginProcess]]) -> None:
    errors = [error for future in futures if future.done() and (error := future.exception()) is not None]
    for error in errors:
        if len(errors) == 1 or not isinstance(error, HostError):
            raise error
    if errors:
        raise type(errors[0])("\n".join(map(str, errors))) from errors[0]


@contextmanager
def telling_of_failure(watcher: Watcher) -> Iterator[None]:
    """A trace without a run says why there is none."""
    try:
        yield
    except HostError as error:
        watcher.notice(f"not started: {error}")
        raise
