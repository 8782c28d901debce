"""The view of a run in a terminal: model and question, the answer while it streams, and at the end its outputs.

In: messages of the strategy as they come, then the `Run`. Out: text on a rich console, plain if it is not a terminal.
"""

import time
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.text import Text

from devhost.models.backend import ModelDescription
from devhost.node.messages.thought_spans import Span, ThoughtSpans
from devhost.node.outputs.log import OPEN, AgentLog
from devhost.node.outputs.run import Run
from devhost.protocol.wire import JsonObject
from devhost.terminal.screen import Screen
from devhost.terminal.tables.facts import facts_table, given_file, heading
from devhost.terminal.tables.failure import failure_text
from devhost.terminal.tables.log import log_tree
from devhost.terminal.tables.outputs import (
    files_list,
    findings_list,
    json_list,
    lookups,
    pending_table,
    sources_table,
    usage_line,
    variables_list,
)
from devhost.terminal.tables.text import printable
from devhost.terminal.view_options import ViewOptions

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
