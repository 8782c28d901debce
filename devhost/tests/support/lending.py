"""Plugin processes that the tests of a session share, because each takes a second or more to start.

Only plugins that run locally, as they are in the repository and with the default limits, are shared; all others are
started and stopped as usual.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

import pytest

from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.plugin_process import PluginProcess, StartOptions
from devhost.process.session import Watcher
from devhost.text import Secrets


class Lender:
    def __init__(self, directories: frozenset[Path]) -> None:
        self._directories = directories
        self._start = PluginProcess.start
        self._stop = PluginProcess.stop
        self._running: dict[Path, PluginProcess] = {}

    def start(self, plugin: Path | PluginDeclaration, **options: Unpack[StartOptions]) -> PluginProcess:
        """In place of `PluginProcess.start`."""
        directory = (plugin if isinstance(plugin, Path) else plugin.directory).resolve()
        python = options.get("python", sys.executable)
        is_usual_python = python in {sys.executable, str(directory / ".venv" / "bin" / "python")}
        how = options.get("transport", "stdio"), options.get("limits", HostLimits())
        if not is_usual_python or how != ("stdio", HostLimits()) or directory not in self._directories:
            return self._start(plugin, **options)
        lent = self._running.get(directory)
        if lent is None or lent.lost is not None:
            lent = self._running[directory] = self._start(directory, python=python)
        lent._watcher = Watcher()
        lent.printed.renew()
        lent.printed.hide(options.get("secrets", Secrets()))
        lent._watcher = options.get("watcher", Watcher())
        return lent

    def stop(self, plugin: PluginProcess) -> None:
        """In place of `PluginProcess.stop`: a lent plugin keeps running, unless it has ended."""
        if plugin not in self._running.values() or plugin.lost is not None:
            self._stop(plugin)
        else:
            plugin.printed.renew()

    @contextmanager
    def lends(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PluginProcess, "start", self.start)
            patch.setattr(PluginProcess, "stop", _method(self.stop))
            yield

    def close(self) -> None:
        for plugin in self._running.values():
            self._stop(plugin)


def _method(stop: Callable[[PluginProcess], None]) -> Callable[[PluginProcess], None]:
    """A function, which a class gives its own object as `self`; a bound method would keep its first one."""

    def method(plugin: PluginProcess) -> None:
        stop(plugin)

    return method
