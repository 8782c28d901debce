"""What a person sees of a flow in a terminal: the answer as it streams, then the nodes as rows."""

import json
import time
from collections.abc import Iterable, Mapping
from textwrap import indent
from typing import Any, assert_never

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.text import Text
from rich.tree import Tree

from devhost.files import LocalFile
from devhost.flow.document import FlowFile
from devhost.flow.played import PlayedTurn, Row
from devhost.flow.turn import FlowTurn
from devhost.node.outputs.run import ToolCalls
from devhost.protocol.wire import JsonObject
from devhost.terminal import tables
from devhost.terminal.screen import STYLES, View
from devhost.terminal.tables import printable
from devhost.trace import flow
from devhost.words import counted, in_a_line, preview

# What is known of a turn before it begins, as the line of a trace.


def facts_of(file: FlowFile, turn: FlowTurn) -> flow.FlowLine:
    return flow.FlowLine(
        file=str(file.path.absolute()),
        name=file.name or file.path.stem,
        kind=file.kind,
        nodes=len(file.nodes),
        turn=turn.dialogue_count,
        conversation_id=turn.conversation_id,
        query=turn.query,
        inputs=json.loads(json.dumps(dict(turn.inputs), default=_given)),
        files=tuple(given.path.name for given in turn.files),
    )


def titled(facts: flow.FlowLine) -> str:
    return f"{facts.name} ({facts.kind}, {counted(facts.nodes, 'node')})"


def _given(value: object) -> object:
    if isinstance(value, LocalFile):
        return {"file": value.path.name}
    return str(value)


# The nodes of a turn as rows in a terminal; an agent's log tree, and the rounds of a loop, stand under their row.

MARKS = {"succeeded": ("✓", "green"), "failed": ("✗", "red"), "exception": ("!", "yellow"), "": ("…", "yellow")}
HIDDEN = frozenset({"usage", "json", "files"})
"""Outputs that a row leaves out; `--verbose` and `--json` have them."""


def node_rows(turn: PlayedTurn, *, whole: bool) -> RenderableType:
    """`whole`: all values and every round."""
    return Group(*(_tree(row, whole=whole) for row in turn.roots))


def _tree(row: Row, *, whole: bool) -> Tree:
    tree = Tree(_line(row, whole=whole), guide_style="dim")
    if (log := tables.log_tree(row.logs, None if row.run is None else row.run.calls, whole=whole)) is not None:
        tree.add(log)
    for number, rows in sorted(row.rounds.items()):
        is_open = whole or any(map(_must_be_seen, rows))
        branch = tree.add(Text.assemble((f"round {number}", "bold"), "" if is_open else ("  ✓", "green")))
        for inner in rows if is_open else ():
            branch.add(_tree(inner, whole=whole))
    return tree


def _must_be_seen(row: Row) -> bool:
    """Nothing that went wrong is folded, and no agent's tree."""
    is_plain = row.ended is not None and row.status == "succeeded" and not row.ended.retries and not row.logs
    return not is_plain or any(_must_be_seen(inner) for rows in row.rounds.values() for inner in rows)


def _line(row: Row, *, whole: bool) -> Text:
    mark, style = MARKS[row.status]
    fit: dict[str, Any] = {"overflow": "fold"} if whole else {"overflow": "ellipsis", "no_wrap": True}
    line = Text.assemble((f"{mark} ", style), (printable(row.label), "bold"), f"  {printable(row.node.type)}", **fit)
    if row.ended is None:
        return line.append("  waits for an answer" if row.form and not row.answered else "  not finished", "yellow")
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


def _values(values: Mapping[str, object], *, whole: bool) -> str:
    if whole:
        return indent(_json(values), "      ").lstrip()
    return tables.clipped(printable(in_a_line(values)), 200)


def _json(values: Mapping[str, object]) -> str:
    return printable(json.dumps(values, ensure_ascii=False, indent=2, default=str))


# The view of a flow in a terminal: what is played, the answer while it streams, then the nodes and what came of it.


class FlowView(View):
    def _begin(self) -> None:
        super()._begin()
        self._turn = PlayedTurn(began=time.monotonic())

    def open(self, facts: flow.FlowLine, notices: Iterable[str] = (), model: str = "") -> None:
        """`model`: what a person should know of it."""
        rows = [
            ("flow", Text(printable(titled(facts)))),
            ("model", Text(printable(model), "yellow")),
            ("inputs", Text(printable(preview(facts.inputs) if facts.inputs else ""))),
            ("question", Text(printable(facts.query))),
            *(("file", Text(printable(name))) for name in facts.files),
        ]
        self._console.print(tables.fact_rows([row for row in rows if row[1]], notices))

    def show(self, event: flow.FlowEvent, turn: PlayedTurn) -> None:
        """`turn`: with the event."""
        self._turn = turn
        match event:
            case flow.AnswerText():
                self._say(event.text)
            case flow.NodeStarted():
                self.screen.show_status(printable(event.node.title or event.node.id))
            case flow.AgentLog():
                entry = event.message["message"]
                if entry.get("status") == "start":
                    self.screen.show_status(printable(f"{event.node.title or event.node.id}: {entry.get('label')}"))
            case flow.FormAsked():
                self.screen.end_status()
                self.screen.end_line()
            case flow.NodeEnded() | flow.SourcesRead() | flow.FormAnswered():
                pass
            case flow.FlowEnded():
                self.screen.end_status()
            case _:
                assert_never(event)

    def close(self, turn: PlayedTurn) -> None:
        self._end_answer(turn.answer)
        self._section("nodes", node_rows(turn, whole=self._options.verbose))
        self._section("sources", tables.sources_table(sources_of(turn)))
        self._section("outputs", self._values(turn.outputs))
        self._section("conversation variables", self._values(dict(turn.end.conversation)))
        for title, found in tables.sections_of_findings(turn.findings):
            self._section(title, found)
        self._console.print(Rule(style="dim"))
        how = (turn.ending.after(turn.seconds), STYLES[turn.ending.level])
        self._console.print(Text.assemble(how, (ToolCalls.sum_of(turn.runs).remark, "yellow")))
        self._say_why(turn)
        for row in turn.rows.values():
            if row.run is not None and row.run.error is not None and row.run.error.traceback:
                self._console.print(Text(f"{printable(row.label)}:", "bold"))
                self._console.print(tables.failure_text(row.run.error, traceback=self._options.traceback))

    def _say_why(self, turn: PlayedTurn) -> None:
        if turn.end.error:
            style = "yellow" if turn.end.status == "paused" else "red"
            self._console.print(Text(printable(turn.end.error), style), soft_wrap=True)

    def _values(self, values: JsonObject) -> RenderableType | None:
        if not values:
            return None
        if self._options.verbose:
            return Text(_json(values), overflow="fold")
        return tables.variables_list(values)

    def sum_up(self, *, turns: int, failed: int) -> None:
        """After all turns that have expectations: the failure of an earlier one has scrolled away."""
        words = f"{failed} of {turns} turns failed" if failed else f"all {turns} turns passed"
        self._console.print(Text(words, "red" if failed else "green"))

    def show_how_far(self) -> None:
        super().show_how_far()
        rows = node_rows(self._turn, whole=self._options.verbose) if self._turn.roots else None
        self._section("nodes until Ctrl-C", rows)


def sources_of(turn: PlayedTurn) -> list[JsonObject]:
    """What model nodes have read, then the agents' own sources."""
    read: list[JsonObject] = [
        {
            "number": segment.get("position", "?"),
            "title": segment.get("title") or segment.get("document_name"),
            "document_id": segment.get("dataset_name"),
        }
        for segment in turn.sources
    ]
    of_agents = (run.outputs.variables.get("sources") for run in turn.runs)
    return read + [each for found in of_agents if isinstance(found, list) for each in found if isinstance(each, dict)]
