"""All children of a console, by the names of their runs; they end with it."""

import threading
from collections.abc import Sequence
from pathlib import Path

from devhost.console.children.child import Child
from devhost.console.children.left import note
from devhost.errors import ConsoleError

PATIENCE_SECONDS = 10.0
MOST = 8
"""That go on at once: each holds a process for devhost and one for each plugin."""


class Children:
    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._children: dict[str, Child] = {}
        self._changing = threading.Lock()

    def start(self, name: str, arguments: Sequence[str], output: Path) -> Child:
        """The child of a new run; ConsoleError if too many go on, or one of this name."""
        with self._changing:
            running = [each for each, child in self._children.items() if child.exit_code is None]
            if name in running:
                raise ConsoleError(f"{name} goes on already")
            if len(running) >= self._most:
                raise ConsoleError(f"{len(running)} runs go on, and no more may: end one of {', '.join(running)}")
            child = self._children[name] = Child(arguments, output)
            note(child.pid, arguments, output)
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
