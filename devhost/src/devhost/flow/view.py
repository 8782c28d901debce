"""What a person or a program sees of a flow: the answer as it streams, the nodes as rows, and one JSON object."""

import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from textwrap import indent
from typing import Any, assert_never

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from devhost.files import LocalFile
from devhost.flow.document import FlowFile
from devhost.flow.turn import FlowTurn
from devhost.node.outputs.outputs import AgentLog, Finding, LogEntry
from devhost.node.outputs.run import Ending, report
from devhost.protocol.wire import JsonObject
from devhost.terminal.screen import STYLES, View
from devhost.terminal.tables import (
    clipped,
    failure_text,
    findings_list,
    log_tree,
    preview,
    printable,
    sources_table,
    variables_list,
)
from devhost.text import Secrets
from devhost.trace.flow import (
    UNTIMED,
    AnswerText,
    FlowEnded,
    FlowEvent,
    FlowLine,
    FlowNode,
    FlowPaused,
    NodeEnded,
    NodeRetried,
    NodeStarted,
    SourcesRead,
    flow_ending,
)
from devhost.trace.flow import (
    AgentLog as AgentLogged,
)
from devhost.words import counted

# What is known of a turn before it begins, as the line of a trace.


def facts_of(file: FlowFile, turn: FlowTurn) -> FlowLine:
    return FlowLine(
        at=UNTIMED,
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


def _given(value: object) -> object:
    return {"file": value.path.name} if isinstance(value, LocalFile) else str(value)


# The nodes of one turn in the order in which they began; rounds of a loop or an iteration stand in its row.

SYSTEM = ("sys.", "conversation.", "env.")
"""A Start node puts these out beside its fields."""


@dataclass
class Row:
    execution: str
    node: FlowNode
    began: float
    """In seconds, on the clock of whatever adds the events."""
    round: int | None = None
    """Of its container, from 1."""
    ended: NodeEnded | None = None
    """None while it runs, and if it never ended."""
    retries: list[NodeRetried] = field(default_factory=list)
    log: AgentLog = field(default_factory=AgentLog)
    """What the strategy of an Agent node has logged."""
    waited: bool = False
    """A person was asked for its form."""
    rounds: dict[int, list["Row"]] = field(default_factory=dict)

    @property
    def status(self) -> str:
        return "" if self.ended is None else self.ended.status

    @property
    def inputs(self) -> JsonObject:
        """A Variable Assigner of the engine gives its own data as its inputs."""
        return {} if self.ended is None or self.node.type == "assigner" else self.ended.inputs

    @property
    def outputs(self) -> JsonObject:
        outputs = {} if self.ended is None else self.ended.outputs
        return {name: value for name, value in outputs.items() if not name.startswith(SYSTEM)}

    @property
    def logs(self) -> Sequence[LogEntry]:
        """The agent's own tree."""
        run = None if self.ended is None else self.ended.run
        return self.log.roots() if run is None else run.outputs.logs

    @property
    def inner(self) -> Iterator["Row"]:
        return (row for rows in self.rounds.values() for row in rows)


class Rows:
    """Of one turn."""

    def __init__(self) -> None:
        self.roots: list[Row] = []
        self._by_execution: dict[str, Row] = {}

    def __iter__(self) -> Iterator[Row]:
        """Those in rounds too."""
        return iter(self._by_execution.values())

    def __len__(self) -> int:
        return len(self._by_execution)

    def add(self, event: FlowEvent, at: float) -> None:
        match event:
            case NodeStarted():
                self._start(Row(event.execution, event.node, at, event.round))
            case NodeEnded():
                row = self._by_execution.get(event.execution)
                row = row or self._start(Row(event.execution, event.node, at, event.round))
                row.ended = event
            case NodeRetried() if event.execution in self._by_execution:
                self._by_execution[event.execution].retries.append(event)
            case AgentLogged() if event.execution in self._by_execution:
                self._by_execution[event.execution].log.add({"data": {}, **event.message["message"]})
            case FlowPaused():
                for node in event.nodes:
                    if row := self._open_row(node.id):
                        row.waited = True

    def _start(self, row: Row) -> Row:
        self._by_execution[row.execution] = row
        container = self._open_row(row.node.container) if row.node.container else None
        beside = self.roots if container is None else container.rounds.setdefault(row.round or 1, [])
        beside.append(row)
        return row

    def _open_row(self, node: str) -> Row | None:
        """The last that began."""
        rows = reversed(self._by_execution.values())
        return next((row for row in rows if row.node.id == node and row.ended is None), None)


# A turn of a flow as one JSON object, for programs.

USAGE = ("total_tokens", "total_price", "currency")
"""Of a node's metadata: what a model node or an agent cost."""


def flow_report(nodes: Sequence[NodeEnded], ended: FlowEnded, seconds: float) -> JsonObject:
    """`nodes` in the order in which they ended."""
    return {
        "status": ended.status,
        "outputs": ended.outputs,
        "error": ended.error or None,
        "conversation": dict(ended.conversation),
        "nodes": [node_report(node) for node in nodes],
        "findings": [asdict(finding) for finding in findings_of(nodes)],
        "elapsed_seconds": round(seconds, 3),
    }


def node_report(ended: NodeEnded) -> JsonObject:
    node = ended.node
    run = None if ended.run is None or ended.model is None else report(ended.run, ended.model)
    return {
        "id": node.id,
        "title": node.title,
        "type": node.type,
        "container": node.container,
        "status": ended.status,
        "elapsed_seconds": ended.seconds,
        "inputs": ended.inputs,
        "outputs": ended.outputs,
        "error": ended.error or None,
        "went_on": ended.went_on,
        "round": ended.round,
        "retries": list(ended.retries),
        "usage": {name: ended.metadata[name] for name in USAGE if name in ended.metadata},
        "metadata": ended.metadata,
        "process": ended.process,
        **({} if run is None else {"run": run}),
    }


def findings_of(nodes: Sequence[NodeEnded]) -> list[Finding]:
    """The rules of Dify that the flow's agents broke."""
    return [finding for node in nodes if node.run is not None for finding in node.run.findings]


# A turn from its events: each is shown as it comes, and what remains of it is kept.


@dataclass(frozen=True)
class PlayedTurn:
    nodes: tuple[NodeEnded, ...]
    """In the order in which they ended."""
    ended: FlowEnded
    seconds: float


def watched(events: Generator[FlowEvent], show: Callable[[FlowEvent], None], hidden: Secrets) -> PlayedTurn:
    """The last event of a turn is a `FlowEnded`. `hidden`: what is replaced in all that is shown and kept.

    The turn ends with this call, also where `show` raises: the engine waits forever if it is stopped as Python exits.
    """
    began = time.monotonic()
    nodes: list[NodeEnded] = []
    with closing(events):
        for event in map(hidden.masked, events):
            show(event)
            match event:
                case NodeEnded():
                    nodes.append(event)
                case FlowEnded():
                    return PlayedTurn(tuple(nodes), event, time.monotonic() - began)
    raise AssertionError("a turn ended without an end")


# The nodes of a turn as rows in a terminal; an agent's log tree, and the rounds of a loop, stand under their row.

LONGEST = 200
"""Characters of a row's inputs or outputs, unless all of it is asked for."""
MARKS = {
    "succeeded": ("✓", "green"),
    "failed": ("✗", "red"),
    "exception": ("!", "yellow"),
    "": ("…", "yellow"),
}
GOES_ON = {
    "error branch": "the flow goes on at its error branch",
    "default value": "the flow goes on with its default value",
}
HIDDEN = frozenset({"usage", "json", "files"})
"""Outputs that a row leaves out; `--verbose` and `--json` have them."""


def node_rows(rows: Rows, *, whole: bool, now: float | None = None) -> RenderableType:
    """`whole`: all values and every round. `now`: on the clock of the rows, for those that have not ended."""
    return Group(*(_tree(row, whole=whole, now=now) for row in rows.roots))


def _tree(row: Row, *, whole: bool, now: float | None) -> Tree:
    tree = Tree(_line(row, whole=whole, now=now), guide_style="dim")
    run = None if row.ended is None else row.ended.run
    if (log := log_tree(row.logs, None if run is None else run.calls, whole=whole)) is not None:
        tree.add(log)
    for number, rows in sorted(row.rounds.items()):
        if whole or any(map(_must_be_seen, rows)):
            branch = tree.add(Text(f"round {number}", "bold"))
            for inner in rows:
                branch.add(_tree(inner, whole=whole, now=now))
        else:
            tree.add(_folded(number, rows))
    return tree


def _must_be_seen(row: Row) -> bool:
    """Nothing that went wrong is folded, and no agent's tree."""
    return row.status != "succeeded" or bool(row.retries or row.logs) or any(map(_must_be_seen, row.inner))


def _folded(number: int, rows: Iterable[Row]) -> Text:
    line = Text(overflow="ellipsis", no_wrap=True)
    line.append(f"round {number}", "bold")
    for row in rows:
        mark, style = MARKS[row.status]
        line.append(f"  {mark} ", style)
        line.append(_title(row.node))
        line.append(_seconds(row), "cyan")
    return line


def _line(row: Row, *, whole: bool, now: float | None) -> Text:
    ended = row.ended
    mark, style = MARKS[row.status]
    fit: dict[str, Any] = {"overflow": "fold"} if whole else {"overflow": "ellipsis", "no_wrap": True}
    line = Text.assemble((f"{mark} ", style), (_title(row.node), "bold"), f"  {printable(row.node.type)}", **fit)
    line.append(_seconds(row), "cyan")
    for remark in _remarks(row, now):
        line.append(f"  {remark}", "yellow")
    for retry in row.retries:
        line.append(f"\n  attempt {retry.attempt} failed: {printable(retry.error)}", "yellow")
    if ended is None:
        return line
    if ended.error:
        line.append(f"\n  {printable(ended.error)}", "red")
    if ended.went_on:
        line.append(f"\n  {GOES_ON[ended.went_on]}", "yellow")
    outputs = {name: value for name, value in row.outputs.items() if whole or name not in HIDDEN}
    for name, values in (("in", row.inputs), ("out", outputs)):
        if values:
            line.append(f"\n  {name.ljust(3)} {_values(values, whole=whole)}", "dim")
    return line


def _seconds(row: Row) -> str:
    return "" if row.ended is None else f"  {row.ended.seconds:.3f} s"


def _remarks(row: Row, now: float | None) -> Iterator[str]:
    if row.ended is not None and (tokens := row.ended.metadata.get("total_tokens")):
        yield counted(tokens, "token")
    if row.waited:
        yield "a person was asked"
    if row.ended is None:
        yield "never finished" if now is None else f"not finished after {now - row.began:.1f} s"


def _title(node: FlowNode) -> str:
    return printable(node.title or node.id)


def _values(values: Mapping[str, object], *, whole: bool) -> str:
    if not whole:
        return clipped(printable(preview(dict(values))), LONGEST)
    return indent(printable(json.dumps(values, ensure_ascii=False, indent=2, default=str)), "      ").lstrip()


# The view of a flow in a terminal: what is played, the answer while it streams, then the nodes and what came of it.

CHATFLOW = "chatflow"


class FlowView(View):
    def _begin(self) -> None:
        super()._begin()
        self._rows = Rows()
        self._sources: list[JsonObject] = []

    def open(self, file: FlowFile, turn: FlowTurn, notices: Iterable[str] = ()) -> None:
        self.open_with(facts_of(file, turn), notices)

    def open_with(self, facts: FlowLine, notices: Iterable[str] = ()) -> None:
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

    def show(self, event: FlowEvent, at: float | None = None) -> None:
        """`at`: on another clock than this process's."""
        self._rows.add(event, time.monotonic() if at is None else at)
        match event:
            case AnswerText():
                self._say(event.text)
            case NodeStarted() | NodeEnded() | NodeRetried():
                if isinstance(event, NodeEnded):
                    self._sources += _sources_of(event)
                if isinstance(event, NodeStarted):
                    self.screen.show_status(printable(event.node.title or event.node.id))
            case AgentLogged():
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
        ending = self._ending(ended)
        self._console.print(Text(ending.after(seconds), STYLES[ending.level]))
        if ended.error:
            self._console.print(Text(printable(ended.error), "red"), soft_wrap=True)
        self._show_tracebacks()

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

    def sum_up(self, *, turns: int, failed: int) -> None:
        """After all turns that have expectations: two or more."""
        words, style = (
            (f"{failed} of {turns} turns failed", "red") if failed else (f"all {turns} turns passed", "green")
        )
        self._console.print(Text(words, style))

    def show_how_far(self) -> None:
        """After Ctrl-C: the nodes until then."""
        rows = node_rows(self._rows, whole=self._options.verbose, now=time.monotonic()) if self._rows.roots else None
        self._show_how_far("nodes until Ctrl-C", rows)

    def _ending(self, ended: FlowEnded) -> Ending:
        return flow_ending(ended.status, (row.ended.run for row in self._rows if row.ended and row.ended.run))

    def _finish_answer(self, ended: FlowEnded) -> None:
        self._end_answer(str(ended.outputs.get("answer") or ""))


def _as_source(segment: JsonObject) -> JsonObject:
    """A segment of a knowledge base, as a row of the agents' sources."""
    title = segment.get("title") or segment.get("document_name")
    return {"number": segment.get("position", "?"), "title": title, "document_id": segment.get("dataset_name")}


def _sources_of(ended: NodeEnded) -> list[JsonObject]:
    sources = [] if ended.run is None else ended.run.outputs.variables.get("sources")
    return [source for source in sources if isinstance(source, dict)] if isinstance(sources, list) else []
