"""The terminal while a run goes on: text that streams, lines that come in between, and what is awaited.

In: pieces of text, what plugins print, errors of tools, names of plugins that start; from many threads. Out: text on a
rich console. A line never stands in the middle of another one.
"""

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from devhost.node.outputs.run import RunError
from devhost.process.watcher import Watcher
from devhost.terminal.tables.failure import failure_text
from devhost.terminal.tables.text import printable

if TYPE_CHECKING:
    from rich.status import Status


class Screen(Watcher):
    def __init__(self, console: Console, *, traceback: bool = False) -> None:
        self.console = console
        self.at_line_start = True
        self._traceback = traceback
        self._status: Status | None = None
        self._starting: Sequence[str] = ()
        self._start_began = 0.0
        self._writing = threading.RLock()

    def stream(self, text: str, style: str | None) -> None:
        """A piece of a text; the next piece goes on where it ends."""
        with self._writing:
            self.end_status()
            self.console.out(text, style=style, highlight=False, end="")
            self.at_line_start = text.endswith("\n")

    def end_line(self) -> None:
        with self._writing:
            if not self.at_line_start:
                self.console.line()
            self.at_line_start = True

    def printed(self, plugin: str, text: str, *, exact: bool) -> None:
        del exact  # in a terminal the time alone says where a line belongs
        with self._writing:
            self.end_line()
            shown = Text.assemble((f"{printable(plugin)} | ", "magenta"), (printable(text), "dim"), overflow="fold")
            self.console.print(shown, soft_wrap=True)

    def failed(self, tool: str, error: RunError) -> None:
        """Only with --traceback: the strategy deals with the error, and says of it what it wants."""
        if self._traceback:
            with self._writing:
                self.end_line()
                self.console.print(Text(f"tool {printable(tool)} failed", "red"))
                self.console.print(failure_text(RunError(error.kind, error.message, error.traceback), traceback=True))

    def starting(self, plugins: Sequence[str]) -> None:
        with self._writing:
            if not self._starting:
                self._start_began = time.monotonic()
            began, self._starting = bool(self._starting), plugins
            names = f"starting {', '.join(map(printable, plugins))} …"
            if not plugins:
                self.end_status()
            elif self.console.is_terminal:
                self.show_status(names)
            elif not began:
                self.console.print(Text(names, "dim"))

    def say_what_starts(self) -> None:
        """After Ctrl-C: the plugins that were still starting."""
        with self._writing:
            self.end_status()
            if self._starting:
                seconds = time.monotonic() - self._start_began
                names = ", ".join(map(printable, self._starting))
                self.console.print(Text(f"… {names} still starting after {seconds:.1f} s", "yellow"))
            self._starting = ()

    def show_status(self, label: str) -> None:
        """The running step, while nothing streams; below an unfinished line a status would break the line."""
        with self._writing:
            if not self.console.is_terminal or not self.at_line_start:
                return
            if self._status is None:
                self._status = self.console.status(Text(label))
                self._status.start()
            else:
                self._status.update(Text(label))

    def end_status(self) -> None:
        with self._writing:
            if self._status is not None:
                self._status.stop()
                self._status = None
