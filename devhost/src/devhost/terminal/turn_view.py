"""Shows a turn in a terminal: the answer as it streams, then the nodes or the log, and the outputs."""

import json
import time
from collections.abc import Iterable, Mapping
from textwrap import indent
from typing import Any, assert_never

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from devhost.node.outputs.run import Run, ToolCalls
from devhost.node.texts import Span, ThoughtSpans
from devhost.protocol.wire import JsonObject
from devhost.terminal import tables
from devhost.terminal.screen import STYLES, View
from devhost.terminal.tables import printable
from devhost.trace import flow
from devhost.trace.played import NodeRow, PlayedTurn, agent_node, begun, told_by
from devhost.words import counted, in_a_line

# The nodes of a turn as rows. The log of an agent and the rounds of a loop are below the row of their node.

MARKS = {"succeeded": ("✓", "green"), "failed": ("✗", "red"), "exception": ("!", "yellow"), "": ("…", "yellow")}
HIDDEN = frozenset({"usage", "json", "files"})
"""Outputs that a row leaves out, but `--verbose` and `--json` show."""


def turn_log(turn: PlayedTurn, *, whole: bool) -> RenderableType | None:
    """Returns the nodes of a flow, or the log of a strategy that runs alone. `whole` shows all values and rounds."""
    if turn.is_direct:
        return next((_agent_log(row, whole=whole) for row in turn.roots), None)
    if turn.roots:
        return Group(*(_tree(row, whole=whole) for row in turn.roots))
    return None


def _agent_log(row: NodeRow, *, whole: bool) -> RenderableType | None:
    if row.run is None:
        return tables.log_tree(row.logs, whole=whole)
    return tables.log_tree(row.logs, row.run.calls, whole=whole)


def _tree(row: NodeRow, *, whole: bool) -> Tree:
    tree = Tree(_line(row, whole=whole), guide_style="dim")
    log = _agent_log(row, whole=whole)
    if log is not None:
        tree.add(log)
    for number, rows in sorted(row.rounds.items()):
        is_open = whole or any(map(_must_be_seen, rows))
        branch = tree.add(heading := Text(f"round {number}", "bold"))
        if not is_open:
            heading.append("  ✓", "green")
            continue
        for inner in rows:
            branch.add(_tree(inner, whole=whole))
    return tree


def _must_be_seen(row: NodeRow) -> bool:
    """Returns whether the row must not be folded, because something went wrong in it or it has an agent's log."""
    is_plain = row.ended is not None and row.status == "succeeded" and not row.ended.retries and not row.logs
    return not is_plain or any(_must_be_seen(inner) for rows in row.rounds.values() for inner in rows)


def _line(row: NodeRow, *, whole: bool) -> Text:
    mark, style = MARKS[row.status]
    fit: dict[str, Any] = {"overflow": "ellipsis", "no_wrap": True}
    if whole:
        fit = {"overflow": "fold"}
    line = Text.assemble((f"{mark} ", style), (printable(row.label), "bold"), f"  {printable(row.node.type)}", **fit)
    if row.ended is None:
        return line.append(f"  {_waiting(row)}", "yellow")
    line.append(f"  {row.ended.seconds:.3f} s", "cyan")
    if tokens := row.ended.metadata.get("total_tokens"):
        line.append(f"  {counted(tokens, 'token')}", "yellow")
    if row.answered:
        line.append(f"\n  {printable(row.answered)}")
    for attempt, error in enumerate(row.ended.retries, start=1):
        line.append(f"\n  attempt {attempt} failed: {printable(error)}", "yellow")
    if row.ended.error:
        line.append(f"\n  {printable(row.ended.error)}", "red")
    if row.ended.went_on:
        line.append(f"\n  the flow goes on: {row.ended.went_on}", "yellow")
    outputs = {name: value for name, value in row.outputs.items() if whole or name not in HIDDEN}
    for name, values in (("in", row.inputs), ("out", outputs)):
        if values:
            line.append(f"\n  {name.ljust(3)} {_values(values, whole=whole)}", "dim")
    return line


def _waiting(row: NodeRow) -> str:
    if row.form and not row.answered:
        return "waits for an answer"
    return "not finished"


def _values(values: Mapping[str, object], *, whole: bool) -> str:
    if whole:
        return indent(_json(values), "      ").lstrip()
    return tables.clipped(printable(in_a_line(values)), 200)


def _json(values: Mapping[str, object]) -> str:
    return printable(json.dumps(values, ensure_ascii=False, indent=2, default=str))


# The view of a turn: the question, the answer while it streams, then the nodes and the outputs.

NAME_OF_LOG = {True: "log", False: "nodes"}
"""The heading of the log, for a strategy that runs alone and for a flow."""
STYLE_OF_THOUGHTS = {True: "dim italic", False: None}


class TurnView(View):
    """The view of a turn of a strategy or a flow."""

    def _begin(self) -> None:
        super()._begin()
        self._spans = ThoughtSpans(keep_tags=True)
        self._turn: PlayedTurn | None = None

    def open(self, facts: Table, question: str, files: Iterable[JsonObject] = ()) -> None:
        """Prints facts about the strategy or the flow, the question, and the files of the question."""
        if question:
            facts.add_row("question", Text(printable(question)))
        for file in files:
            facts.add_row("file", Text(tables.given_file(file)))
        self._console.print(facts)

    def hear(self, message: JsonObject) -> None:
        """Shows a message of a strategy that runs without a flow."""
        now = time.monotonic()
        self._turn = self._turn or begun("", now)
        event = told_by(agent_node(""), message)
        if event is not None:
            self._turn.add(event, now)
            self.show(event, self._turn)

    def show(self, event: flow.FlowEvent, turn: PlayedTurn) -> None:
        """Shows an event of a turn. The turn already includes the event."""
        self._turn = turn
        match event:
            case flow.AnswerText():
                self._write(list(self._spans.feed(event.text)))
            case flow.NodeStarted() if not turn.is_direct:
                self.screen.show_status(printable(event.node.title or event.node.id))
            case flow.AgentLogLine():
                entry = event.message["message"]
                if entry.get("status") == "start":
                    label = str(entry.get("label"))
                    if not turn.is_direct:
                        label = f"{event.node.title or event.node.id}: {label}"
                    self.screen.show_status(printable(label))
            case flow.FormAsked():
                self.screen.end_status()
                self.screen.end_line()
            case flow.NodeStarted() | flow.NodeEnded() | flow.SourcesRead() | flow.FormAnswered():
                pass
            case flow.FlowEnded():
                self.screen.end_status()
            case _:
                assert_never(event)

    def _write(self, spans: list[Span]) -> None:
        for thinking, text in spans:
            self._say(text, STYLE_OF_THOUGHTS[thinking])

    def finish_answer(self, unsaid: str = "") -> None:
        """Ends the answer. If nothing was streamed, prints the text `unsaid`, which was output without streaming."""
        self._write(list(self._spans.finish()))
        self._end_answer(unsaid)

    def close(self, turn: PlayedTurn, remark: str = "") -> None:
        """Shows the result of a turn that has ended. `remark` is a sentence about the model."""
        self.finish_answer(turn.unsaid)
        self._section(NAME_OF_LOG[turn.is_direct], turn_log(turn, whole=self._options.verbose))
        self._section("sources", tables.sources_table(sources_of(turn)))
        if turn.own is not None:
            self._show_outputs(turn.own)
        self._section("outputs", self._values(turn.outputs))
        self._section("conversation variables", self._values(dict(turn.end.conversation)))
        for title, found in tables.sections_of_findings(turn.findings):
            self._section(title, found)
        self._console.print(Rule(style="dim"))
        if turn.own is not None and (dropped := turn.own.outputs.dropped_retriever_resources):
            self.note(f"Dify's Agent node drops retriever resources (seen up to 1.17.0); this run sent {dropped:,}.")
        if remark:
            self.note(remark)
        how = (turn.ending.after(turn.seconds), STYLES[turn.ending.level])
        self._console.print(Text.assemble(how, (ToolCalls.sum_of(turn.runs).remark, "yellow")))
        self._say_why(turn)

    def _show_outputs(self, run: Run) -> None:
        """Prints the outputs of a strategy except its text and its log."""
        outputs = run.outputs
        variables = {name: value for name, value in outputs.variables.items() if name != "sources"}
        if outputs.pending_calls:
            del variables["pending_calls"]
        self._section("files", tables.files_list(outputs.files), soft_wrap=True)
        self._section("calls that wait for an answer", tables.pending_table(outputs.pending_calls))
        self._section("variables", tables.variables_list(variables))
        self._section("json", tables.json_list(outputs.json_of_strategy()))
        self._section("usage", tables.usage_line(run.usage))

    def _say_why(self, turn: PlayedTurn) -> None:
        """Prints why a turn failed or is waiting."""
        if turn.end.error and not turn.is_direct:
            style = "red"
            if turn.end.status == "paused":
                style = "yellow"
            self._console.print(Text(printable(turn.end.error), style), soft_wrap=True)
        for row in turn.rows.values():
            if row.run is None or row.run.error is None or not (turn.is_direct or row.run.error.traceback):
                continue
            if not turn.is_direct:
                self._console.print(Text(f"{printable(row.label)}:", "bold"))
            self._console.print(tables.failure_text(row.run.error, traceback=self._options.traceback))

    def _values(self, values: JsonObject) -> RenderableType | None:
        if not values:
            return None
        if self._options.verbose:
            return Text(_json(values), overflow="fold")
        return tables.variables_list(values)

    def sum_up(self, *, turns: int, failed: int) -> None:
        """Prints how many turns failed, because the failure of an earlier turn may have scrolled out of view."""
        if failed:
            self._console.print(Text(f"{failed} of {turns} turns failed", "red"))
        else:
            self._console.print(Text(f"all {turns} turns passed", "green"))

    def show_how_far(self) -> None:
        super().show_how_far()
        if self._turn is not None:
            title = f"{NAME_OF_LOG[self._turn.is_direct]} until Ctrl-C"
            self._section(title, turn_log(self._turn, whole=self._options.verbose))


def sources_of(turn: PlayedTurn) -> list[object]:
    """Returns the sources that model nodes retrieved, followed by the sources of agents."""
    read: list[JsonObject] = [
        {
            "number": segment.get("position", "?"),
            "title": segment.get("title") or segment.get("document_name"),
            "document_id": segment.get("dataset_name"),
        }
        for segment in turn.sources
    ]
    of_agents = (run.outputs.variables.get("sources") for run in turn.runs)
    found = [each for sources in of_agents if isinstance(sources, list) for each in sources]
    return [*read, *found]
