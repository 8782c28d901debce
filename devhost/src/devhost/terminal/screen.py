"""The terminal while something runs: text that streams, lines in between, what is awaited, and Ctrl-C."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.text import Text

from devhost.node.outputs.run import RunError
from devhost.options import color_option, option, traceback_option
from devhost.process.session import Stop, Watcher
from devhost.protocol.wire import JsonObject
from devhost.terminal.tables import failure_text, given_file, heading, printable

if TYPE_CHECKING:
    from rich.status import Status


@dataclass(frozen=True)
class ViewOptions:
    color: bool = color_option()
    traceback: bool = traceback_option()
    verbose: bool = option("--verbose", "Show log entries whole, not the beginning of each.")


# The terminal while a run goes on: text that streams, lines that come in between, and what is awaited.
#
# A line never stands in the middle of another one.


class Screen(Watcher):
    def __init__(self, console: Console, *, traceback: bool = False) -> None:
        self.console = console
        self.at_line_start = True
        self._traceback = traceback
        self._status: Status | None = None
        self._says_what_starts = False
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

    def printed(self, plugin: str, text: str) -> None:
        with self._writing:
            self.end_line()
            shown = Text.assemble((f"{printable(plugin)} | ", "magenta"), (printable(text), "dim"), overflow="fold")
            self.console.print(shown, soft_wrap=True)

    def failed(self, tool: str, error: RunError) -> None:
        """The strategy deals with the error, and need not say where in the tool it was."""
        with self._writing:
            self.end_line()
            self.console.print(Text(f"tool {printable(tool)} failed: {printable(error.line)}", "red"), soft_wrap=True)
            if self._traceback and error.traceback:
                self.console.print(Text(printable(error.traceback.rstrip()), "dim"))

    def starting(self, plugins: Sequence[str]) -> None:
        with self._writing:
            names = f"starting {', '.join(map(printable, plugins))} …"
            if not plugins:
                self.end_status()
            elif self.console.is_terminal:
                self.show_status(names)
            elif not self._says_what_starts:
                self.console.print(Text(names, "dim"))
            self._says_what_starts = bool(plugins)

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


PIPED_WIDTH = 120
STYLES = {"good": "green", "limited": "yellow", "bad": "red bold"}
"""By the level of an ending."""


def open_console(*, stderr: bool, color: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, color_system="auto" if color else None)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    return console


class View:
    """What the views of a run, of a flow and of a tool have in common."""

    def __init__(self, console: Console, options: ViewOptions | None = None, screen: Screen | None = None) -> None:
        """With a `screen`, on that of a conversation."""
        self._console = console
        self._options = options or ViewOptions()
        self.screen = screen or Screen(console, traceback=self._options.traceback)
        self._begin()

    def _begin(self) -> None:
        self._said_anything = False

    def begin_answer(self) -> None:
        """The plugins have started."""
        self._console.print(heading("answer"))

    def go_on(self, question: str, files: Iterable[JsonObject] = ()) -> None:
        """The next turn of a conversation."""
        self._begin()
        self._console.line()
        self._console.print(Text.assemble(("question", "bold"), f"  {printable(question)}"))
        self.show_files(files)
        self.begin_answer()

    @contextmanager
    def answering[H](self, hosting: AbstractContextManager[H]) -> Iterator[H]:
        """Starts the plugins; Ctrl-C shows how far the answer came."""
        try:
            with hosting as host, on_ctrl_c(self.show_how_far):
                self.begin_answer()
                yield host
        finally:
            self.screen.end_status()

    @contextmanager
    def turn(self, files: Iterable[JsonObject] = ()) -> Iterator[None]:
        """Shows a turn of a chat. `files` go with the question."""
        self._begin()
        self.show_files(files)
        try:
            yield
        finally:
            self.screen.end_status()

    def show_files(self, files: Iterable[JsonObject]) -> None:
        """Those that go with the question."""
        for file in files:
            self._console.print(Text.assemble(("file", "bold"), f"  {given_file(file)}"))

    def note(self, sentence: str) -> None:
        self._console.print(Text(printable(sentence), "dim"), soft_wrap=True)

    def _say(self, text: str, style: str | None = None) -> None:
        """A piece of the answer."""
        shown = printable(text)
        self.screen.stream(shown, style)
        self._said_anything = self._said_anything or bool(shown.strip())

    def _end_answer(self, unsaid: str = "") -> None:
        """`unsaid`: what was put out without being streamed."""
        self.screen.end_status()
        self.screen.end_line()
        if not self._said_anything:
            self._console.print(Text(printable(unsaid)) if unsaid else Text("(no text)", "dim"))

    def show_how_far(self) -> None:
        """After Ctrl-C: what there was until then."""
        self.screen.end_status()
        self.screen.end_line()

    def _section(self, title: str, content: RenderableType | None, *, soft_wrap: bool = False) -> None:
        if content is not None:
            self._console.line()
            self._console.print(heading(title))
            self._print(content, soft_wrap=soft_wrap)

    def _print(self, content: RenderableType | None, *, soft_wrap: bool = False) -> None:
        if content is not None:
            self._console.print(content, soft_wrap=soft_wrap)

    def show_expectations(self, failures: Sequence[str]) -> None:
        """After what has expectations; `failures`: a sentence for each that failed."""
        if not failures:
            self._console.print(Text("every expectation fits", "green"))
            return
        self._console.print(Text(f"expectations that failed: {len(failures)}", "red"))
        for sentence in failures:
            self._console.print(Text(printable(sentence)), soft_wrap=True)

    def _end(self, error: RunError | None, seconds: float, ended: Text) -> None:
        """The last line: how it `ended`, or why it failed."""
        if error is None:
            self._console.print(ended)
            return
        self._console.print(Text(error.ending.after(seconds), STYLES["bad"]))
        self._console.print(failure_text(error, traceback=self._options.traceback))


# Ctrl-C: in a conversation it ends a turn, and at the prompt it is Python's own KeyboardInterrupt.
#
# A handler instead of an exception: an exception could strike in the middle of a line that is written to a plugin.


@contextmanager
def on_ctrl_c(show: Callable[[], None]) -> Iterator[None]:
    """Shows what a person wants to see of what Ctrl-C ended; the exception goes on."""
    try:
        yield
    except KeyboardInterrupt:
        show()
        raise


class Interrupt:
    def __init__(self, *, only_turns: bool = False) -> None:
        """`only_turns`: between two turns it has no effect, because it was meant for the turn that has just ended."""
        self._only_turns = only_turns
        self._stop: Stop | None = None

    @contextmanager
    def handled(self) -> Iterator[None]:
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def stops_a_turn(self) -> Iterator[Stop]:
        self._stop = Stop()
        try:
            yield self._stop
        finally:
            self._stop = None

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._stop is not None:
            self._stop.request()
        elif not self._only_turns:
            raise KeyboardInterrupt
