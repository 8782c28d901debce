"""The plugins that are starting, so that all of them can be ended from another thread."""

import threading
from typing import Protocol


class Stoppable(Protocol):
    def stop(self) -> None: ...


class Launches:
    """Thread-safe."""

    def __init__(self) -> None:
        self._begun: list[Stoppable] = []
        self._ended = False
        self._changing = threading.Lock()

    def add(self, plugin: Stoppable) -> None:
        """Its process exists. It is stopped at once if the others have been ended before."""
        with self._changing:
            self._begun.append(plugin)
            ended = self._ended
        if ended:
            plugin.stop()

    def end(self) -> None:
        with self._changing:
            self._ended = True
            begun = list(self._begun)
        for plugin in begun:
            plugin.stop()
