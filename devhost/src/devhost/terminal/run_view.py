"""The view of a run in a terminal: model and question, the answer while it streams, its outputs."""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.text import Text

from devhost.models.backend import ModelDescription
from devhost.node.messages import Span, ThoughtSpans
from devhost.node.outputs.outputs import OPEN, AgentLog
from devhost.node.outputs.run import Run, RunError
from devhost.options import color_option, option, traceback_option
from devhost.process.session import Watcher
from devhost.protocol.wire import JsonObject
from devhost.terminal.tables import (
    facts_table,
    failure_text,
    files_list,
    findings_list,
    given_file,
    heading,
    json_list,
    log_tree,
    lookups,
    pending_table,
    printable,
    sources_table,
    usage_line,
    variables_list,
)

if TYPE_CHECKING:
    from rich.status import Status


@dataclass(frozen=True)
class ViewOptions:
    color: bool = color_option()
    traceback: bool = traceback_option()
    verbose: bool = option("--verbose", is_flag=True, help="Show log entries whole, not the beginning of each.")


# The terminal while a run goes on: text that streams, lines that come in between, and what is awaited.
#
# A line never stands in the middle of another one.


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


# The view of a run in a terminal: model and question, the answer while it streams, and at the end its outputs.

STYLES = {"good": "green", "limited": "yellow", "bad": "red bold"}
PIPED_WIDTH = 120


def open_console(*, stderr: bool, color: bool) -> Console:
    console = (
        Console(stderr=stderr, highlight=False) if color else Console(stderr=stderr, highlight=False, color_system=None)
    )
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    return console


class RunView:
    def __init__(self, console: Console, options: ViewOptions | None = None, screen: Screen | None = None) -> None:
        """With a `screen`, on that of a conversation."""
        self._console = console
        self._options = options or ViewOptions()
        self.screen = screen or Screen(console, traceback=self._options.traceback)
        self._begin()

    def _begin(self) -> None:
        self._spans = ThoughtSpans(keep_tags=True)
        self._said_anything = False
        self._log = AgentLog()
        self._showed_how_far = False
        self._logged_at: dict[str, float] = {}
        """By id, when an entry came first."""

    def open(  # noqa: PLR0913 - the facts of a run
        self,
        example: str,
        description: str,
        strategy: str,
        model: ModelDescription,
        question: str,
        *,
        notices: Iterable[str] = (),
        files: Iterable[JsonObject] = (),
    ) -> None:
        """`files` go with the question."""
        facts = facts_table(example, description, strategy, model, notices)
        facts.add_row("question", Text(printable(question)))
        for file in files:
            facts.add_row("file", Text(given_file(file)))
        self._console.print(facts)

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

    def show_files(self, files: Iterable[JsonObject]) -> None:
        """Those that go with the question."""
        for file in files:
            self._console.print(Text.assemble(("file", "bold"), f"  {given_file(file)}"))

    def show(self, message: JsonObject) -> None:
        match message:
            case {"type": "text", "message": {"text": text}}:
                self._write(list(self._spans.feed(text)))
            case {"type": "log", "message": {"id": str(id_), "label": str(label), "status": status} as body}:
                self._logged_at.setdefault(id_, time.monotonic())
                self._log.add({"data": {}, **body})
                if status == OPEN:
                    self.screen.show_status(printable(label))

    def finish_answer(self) -> None:
        self._write(list(self._spans.finish()))
        self.screen.end_status()
        self.screen.end_line()
        if not self._said_anything:
            self._console.print(Text("(no text)", "dim"))

    def close(self, run: Run, model_note: str = "") -> None:
        self.finish_answer()
        outputs = run.outputs
        variables = dict(outputs.variables)
        sources = variables.pop("sources", None)
        self._section(
            "log", log_tree(outputs.logs, run.calls.sent, whole=self._options.verbose) if outputs.logs else None
        )
        self._section("sources", sources_table(sources) if isinstance(sources, list) and sources else None)
        self._section("files", files_list(outputs.files) if outputs.files else None, soft_wrap=True)
        if outputs.pending_calls:
            del variables["pending_calls"]
            self._section("calls that wait for an answer", pending_table(outputs.pending_calls))
        self._section("variables", variables_list(variables) if variables else None)
        values = outputs.json_of_strategy()
        self._section("json", json_list(values) if values else None)
        self._section("usage", usage_line(run.usage))
        self._section("violations of Dify's rules", findings_list(run.findings) if run.findings else None)
        self._close_with_result(run, model_note)

    def _close_with_result(self, run: Run, model_note: str) -> None:
        self._console.print(Rule(style="dim"))
        if dropped := run.outputs.dropped_retriever_resources:
            self._note(f"In Dify: all versions today drop retriever resources; this run sent {dropped:,}.")
        if run.outputs.icon_lookups.list_builtin_tools:
            self._note(f"In Dify: the icons of the log take {lookups(run.outputs.icon_lookups)}.")
        if model_note:
            self._note(model_note)
        if run.error is None:
            ending = run.ending
            how = "finished in" if ending.level == "good" else f"{ending} after"
            self._console.print(Text(f"{how} {run.elapsed_seconds:.2f} s", STYLES[ending.level]))
            return
        self._console.print(Text(f"failed after {run.elapsed_seconds:.2f} s", "red bold"))
        self._console.print(failure_text(run.error, traceback=self._options.traceback))

    def abandon(self) -> None:
        """The run ends without an outcome."""
        self.screen.end_status()

    def show_how_far(self) -> None:
        """After Ctrl-C: the log until then, with how long its open entries have been open."""
        if self._showed_how_far:
            return
        self._showed_how_far = True
        self.screen.end_status()
        self.screen.end_line()
        self.screen.say_what_starts()
        roots = self._log.roots()
        now = time.monotonic()
        open_for = {id_: now - at for id_, at in self._logged_at.items()}
        tree = log_tree(roots, whole=self._options.verbose, open_for=open_for) if roots else None
        self._section("log until Ctrl-C", tree)

    def _write(self, spans: list[Span]) -> None:
        for thinking, text in spans:
            shown = printable(text)
            self.screen.stream(shown, "dim italic" if thinking else None)
            self._said_anything = self._said_anything or bool(shown.strip())

    def _section(self, title: str, content: RenderableType | None, *, soft_wrap: bool = False) -> None:
        if content is not None:
            self._console.line()
            self._console.print(heading(title))
            self._console.print(content, soft_wrap=soft_wrap)

    def _note(self, sentence: str) -> None:
        self._console.print(Text(sentence, "dim"))
