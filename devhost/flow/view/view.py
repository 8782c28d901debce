"""The view of a flow in a terminal: what is played, the answer while it streams, then the nodes and what came of it."""

import json
import time
from collections.abc import Iterable, Sequence
from typing import assert_never

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from devhost.flow.document import FlowFile
from devhost.flow.events import (
    AgentLog,
    AnswerText,
    FlowEnded,
    FlowEvent,
    FlowPaused,
    NodeEnded,
    NodeRetried,
    NodeStarted,
    SourcesRead,
)
from devhost.flow.surroundings import FlowTurn
from devhost.flow.view.facts import FlowFacts
from devhost.flow.view.nodes import Rows
from devhost.flow.view.rows import node_rows
from devhost.node.outputs.outputs import Finding
from devhost.protocol.wire import JsonObject
from devhost.terminal.screen import Screen
from devhost.terminal.tables.facts import heading
from devhost.terminal.tables.failure import failure_text
from devhost.terminal.tables.outputs import findings_list, sources_table, variables_list
from devhost.terminal.tables.text import preview, printable
from devhost.terminal.view_options import ViewOptions
from devhost.text.counted import counted

ENDINGS = {
    "succeeded": ("finished in", "green"),
    "partial-succeeded": ("finished, after an error, in", "yellow"),
    "failed": ("failed after", "red bold"),
    "stopped": ("stopped after", "yellow"),
    "paused": ("waits for an answer, after", "yellow"),
}


CHATFLOW = "chatflow"


class FlowView:
    def __init__(self, console: Console, options: ViewOptions | None = None) -> None:
        self._console = console
        self._options = options or ViewOptions()
        self.screen = Screen(console, traceback=self._options.traceback)
        self._begin()

    def _begin(self) -> None:
        self._rows = Rows()
        self._sources: list[JsonObject] = []
        self._said_anything = False
        self._closed = False

    def open(self, file: FlowFile, turn: FlowTurn, notices: Iterable[str] = ()) -> None:
        self.open_with(FlowFacts.of(file, turn), notices)

    def open_with(self, facts: FlowFacts, notices: Iterable[str] = ()) -> None:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold")
        table.add_row("flow", Text(f"{printable(facts.name)} ({facts.kind}, {counted(facts.nodes, 'node')})"))
        for notice in notices:
            table.add_row("notice", Text(printable(notice), "yellow"))
        if facts.inputs:
            table.add_row("inputs", Text(printable(preview(facts.inputs))))
        if facts.kind == CHATFLOW:
            table.add_row("question", Text(printable(facts.query)))
        for name in facts.files:
            table.add_row("file", Text(printable(name)))
        self._console.print(table)

    def begin_answer(self) -> None:
        """The plugins have started."""
        self._console.print(heading("answer"))

    def go_on(self, question: str) -> None:
        """The next turn of a conversation."""
        self._begin()
        self._console.line()
        self._console.print(Text.assemble(("question", "bold"), f"  {printable(question)}"))
        self.begin_answer()

    def show(self, event: FlowEvent, at: float | None = None) -> None:
        """`at`: on another clock than this process's."""
        self._rows.add(event, time.monotonic() if at is None else at)
        match event:
            case AnswerText():
                shown = printable(event.text)
                self.screen.stream(shown, None)
                self._said_anything = self._said_anything or bool(shown.strip())
            case NodeStarted() | NodeEnded() | NodeRetried():
                if isinstance(event, NodeEnded):
                    self._sources += _sources_of(event)
                if isinstance(event, NodeStarted):
                    self.screen.show_status(printable(event.node.title or event.node.id))
            case AgentLog():
                entry = event.message["message"]
                if entry.get("status") == "start":
                    self.screen.show_status(printable(f"{event.node.title or event.node.id}: {entry.get('label')}"))
            case SourcesRead():
                self._sources += map(_as_source, event.sources)
            case FlowPaused():
                self.screen.end_status()
                self.screen.end_line()
            case FlowEnded():
                self.screen.end_status()
            case _:
                assert_never(event)

    def close(self, ended: FlowEnded, seconds: float, findings: Iterable[Finding] = ()) -> None:
        self._finish_answer(ended)
        self._section("nodes", node_rows(self._rows, whole=self._options.verbose))
        self._section("sources", sources_table(self._sources) if self._sources else None)
        outputs = {name: value for name, value in ended.outputs.items() if name not in {"answer", "files"}}
        self._section("outputs", self._values(outputs))
        conversation = dict(ended.conversation)
        self._section("conversation variables", self._values(conversation))
        broken = list(findings)
        self._section("violations of Dify's rules", findings_list(broken) if broken else None)
        self._console.print(Rule(style="dim"))
        words, style = ENDINGS[ended.status]
        self._console.print(Text(f"{words} {seconds:.2f} s", style))
        if ended.error:
            self._console.print(Text(printable(ended.error), "red"), soft_wrap=True)
        self._show_tracebacks()
        self._closed = True

    def _values(self, values: JsonObject) -> RenderableType | None:
        if not values:
            return None
        if self._options.verbose:
            return Text(printable(json.dumps(values, ensure_ascii=False, indent=2, default=str)), overflow="fold")
        return variables_list(values)

    def _show_tracebacks(self) -> None:
        for row in self._rows:
            run = None if row.ended is None else row.ended.run
            if run is not None and run.error is not None and run.error.traceback:
                self._console.print(Text(f"{printable(row.node.title or row.node.id)}:", "bold"))
                self._console.print(failure_text(run.error, traceback=self._options.traceback))

    def judge(self, failures: Sequence[str]) -> None:
        """After a turn that has expectations; `failures`: a sentence for each that failed."""
        words = (
            ("every expectation fits", "green")
            if not failures
            else (f"expectations that failed: {len(failures)}", "red")
        )
        self._console.print(Text(*words))
        for sentence in failures:
            self._console.print(Text(printable(sentence)), soft_wrap=True)

    def sum_up(self, *, turns: int, failed: int) -> None:
        """After all turns that have expectations: two or more."""
        words, style = (
            (f"{failed} of {turns} turns failed", "red") if failed else (f"all {turns} turns passed", "green")
        )
        self._console.print(Text(words, style))

    def abandon(self) -> None:
        """The turn ends without an end of its own."""
        self.screen.end_status()

    def show_how_far(self) -> None:
        """After Ctrl-C: the nodes until then."""
        if self._closed:
            return
        self._closed = True
        self.screen.end_status()
        self.screen.end_line()
        self.screen.say_what_starts()
        if self._rows.roots:
            tree = node_rows(self._rows, whole=self._options.verbose, now=time.monotonic())
            self._section("nodes until Ctrl-C", tree)

    def _finish_answer(self, ended: FlowEnded) -> None:
        """What an Answer node put out without streaming it is shown here."""
        self.screen.end_status()
        self.screen.end_line()
        if not self._said_anything:
            answer = ended.outputs.get("answer")
            self._console.print(Text(printable(answer)) if answer else Text("(no text)", "dim"))

    def _section(self, title: str, content: RenderableType | None) -> None:
        if content is not None:
            self._console.line()
            self._console.print(heading(title))
            self._console.print(content)


def _as_source(segment: JsonObject) -> JsonObject:
    """A segment of a knowledge base, as a row of the agents' sources."""
    title = segment.get("title") or segment.get("document_name")
    return {"number": segment.get("position", "?"), "title": title, "document_id": segment.get("dataset_name")}


def _sources_of(ended: NodeEnded) -> list[JsonObject]:
    sources = [] if ended.run is None else ended.run.outputs.variables.get("sources")
    return [source for source in sources if isinstance(source, dict)] if isinstance(sources, list) else []
