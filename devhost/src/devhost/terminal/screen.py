"""Terminal output during a run: streamed text, lines in between, a status, and the handling of Ctrl-C."""

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
    """The options of all commands that show a run."""

    color: bool = color_option()
    traceback: bool = traceback_option()
    verbose: bool = option("--verbose", "Show log entries whole, not the beginning of each.")


# The terminal during a run: streamed text, lines that are printed in between, and a status for the current step.


class Screen(Watcher):
    """Prints the events of a run, which come from many threads. A line never interrupts an unfinished line of text."""

    def __init__(self, console: Console, *, traceback: bool = False) -> None:
        self.console = console
        self.at_line_start = True
        self._traceback = traceback
        self._status: Status | None = None
        self._says_what_starts = False
        self._writing = threading.RLock()

    def stream(self, text: str, style: str | None) -> None:
        """Prints a piece of a text. The next piece continues where this one ends."""
        with self._writing:
            self.end_status()
            self.console.out(text, style=style, highlight=False, end="")
            self.at_line_start = text.endswith("\n")

    def end_line(self) -> None:
        """Ends a streamed line, so that the next output begins a new one."""
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
        """Prints the error of a tool, because the strategy may not report where in the tool the error occurred."""
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
        """Shows the current step, except below an unfinished line, which a status would break."""
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
"""The style for each level of an ending."""


def open_console(*, stderr: bool, color: bool) -> Console:
    """Returns a console for standard output or error. Outside a terminal, it is `PIPED_WIDTH` columns wide."""
    console = Console(stderr=stderr, highlight=False, color_system="auto" if color else None)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    return console


class View:
    """The common part of the views of a run, a flow, a model and a tool."""

    def __init__(self, console: Console, options: ViewOptions | None = None, screen: Screen | None = None) -> None:
        """Creates a view, which uses the given `screen` instead of one of its own."""
        self._console = console
        self._options = options or ViewOptions()
        self.screen = screen or Screen(console, traceback=self._options.traceback)
        self._begin()

    def _begin(self) -> None:
        self._said_anything = False

    def begin_answer(self) -> None:
        """Prints the heading of the answer, once the plugins have started."""
        self._console.print(heading("answer"))

    def go_on(self, question: str, files: Iterable[JsonObject] = ()) -> None:
        """Begins the next turn of a conversation: prints its question, its files and the heading of the answer."""
        self._begin()
        self._console.line()
        self._console.print(Text.assemble(("question", "bold"), f"  {printable(question)}"))
        self.show_files(files)
        self.begin_answer()

    @contextmanager
    def answering[H](self, hosting: AbstractContextManager[H]) -> Iterator[H]:
        """Starts the plugins and yields their host. Ctrl-C shows how far the answer got."""
        try:
            with hosting as host, on_ctrl_c(self.show_how_far):
                self.begin_answer()
                yield host
        finally:
            self.screen.end_status()

    @contextmanager
    def turn(self, files: Iterable[JsonObject] = ()) -> Iterator[None]:
        """Shows a turn of a chat. `files` are the files of the question."""
        self._begin()
        self.show_files(files)
        try:
            yield
        finally:
            self.screen.end_status()

    def show_files(self, files: Iterable[JsonObject]) -> None:
        """Prints the files of the question."""
        for file in files:
            self._console.print(Text.assemble(("file", "bold"), f"  {given_file(file)}"))

    def note(self, sentence: str) -> None:
        self._console.print(Text(printable(sentence), "dim"), soft_wrap=True)

    def _say(self, text: str, style: str | None = None) -> None:
        """Prints a piece of the answer."""
        shown = printable(text)
        self.screen.stream(shown, style)
        self._said_anything = self._said_anything or bool(shown.strip())

    def _end_answer(self, unsaid: str = "") -> None:
        """Ends the answer. If nothing was streamed, prints the text `unsaid`, which was output without streaming."""
        self.screen.end_status()
        self.screen.end_line()
        if not self._said_anything:
            self._console.print(Text(printable(unsaid)) if unsaid else Text("(no text)", "dim"))

    def show_how_far(self) -> None:
        """Shows how far the turn got before Ctrl-C."""
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
        """Prints which expectations were met. `failures` has a sentence for each one that failed."""
        if not failures:
            self._console.print(Text("every expectation fits", "green"))
            return
        self._console.print(Text(f"expectations that failed: {len(failures)}", "red"))
        for sentence in failures:
            self._console.print(Text(printable(sentence)), soft_wrap=True)

    def _end(self, error: RunError | None, seconds: float, ended: Text) -> None:
        """Prints `ended` as the last line, or the error if the run failed."""
        if error is None:
            self._console.print(ended)
            return
        self._console.print(Text(error.ending.after(seconds), STYLES["bad"]))
        self._console.print(failure_text(error, traceback=self._options.traceback))


# Ctrl-C ends a turn in a conversation and raises KeyboardInterrupt at the prompt.
#
# A signal handler requests the end of the turn. An exception could interrupt a line that is being written to a plugin.


@contextmanager
def on_ctrl_c(show: Callable[[], None]) -> Iterator[None]:
    """Calls `show` after Ctrl-C and raises KeyboardInterrupt again."""
    try:
        yield
    except KeyboardInterrupt:
        show()
        raise


class Interrupt:
    """The handler of Ctrl-C in a conversation."""

    def __init__(self, *, only_turns: bool = False) -> None:
        """Creates a handler.

        With `only_turns`, Ctrl-C has no effect between two turns, because it was intended for the turn that has just
        ended.
        """
        self._only_turns = only_turns
        self._stop: Stop | None = None

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Installs the handler for SIGINT and restores the previous one afterwards."""
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def stops_a_turn(self) -> Iterator[Stop]:
        """Yields the stop of a turn, which Ctrl-C requests."""
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
