"""All children of a console, by the names of their runs; they end with it."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from devhost.console.children.child import Child
from devhost.errors import BusyError, ConsoleError

PATIENCE_SECONDS = 10.0
MOST = 8
"""That go on at once: each holds a process for devhost and one for each plugin."""
ROOM = (
    "The console ended this conversation, so that another run could begin: nothing was asked here for the longest time."
)


class Children:
    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._children: dict[str, Child] = {}
        self._changing = threading.Lock()

    def start(
        self, name: str, arguments: Sequence[str], output: Path, may_end: Callable[[str], bool] = lambda _name: False
    ) -> Child:
        """The child of a new run; ConsoleError if one of this name goes on, BusyError if too many do.

        `may_end`: whether a run only waits for a question, so that it may be ended if there are too many.
        """
        with self._changing:
            running = {each: child for each, child in self._children.items() if child.exit_code is None}
            if name in running:
                raise ConsoleError(f"{name} goes on already")
            if len(running) >= self._most:
                _make_room(running, may_end)
            child = self._children[name] = Child(arguments, output)
        return child

    def of(self, name: str) -> Child | None:
        """None for a run that this console did not start."""
        return self._children.get(name)

    def is_running(self, name: str) -> bool:
        child = self.of(name)
        return child is not None and child.exit_code is None

    def end(self) -> None:
        """All of them; those that take too long are killed."""
        with self._changing:
            children = list(self._children.values())
        for child in children:
            child.end()
        for child in children:
            if not child.wait(PATIENCE_SECONDS):
                child.kill()


def _make_room(running: Mapping[str, Child], may_end: Callable[[str], bool]) -> None:
    idle = [child for name, child in running.items() if may_end(name)]
    if not idle:
        raise BusyError(tuple(running))
    oldest = min(idle, key=lambda child: child.told_at)
    oldest.close_input(ROOM)
    oldest.wait(PATIENCE_SECONDS)
