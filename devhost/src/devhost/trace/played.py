"""Turns, built from their events: nodes as rows, the answer and the result. A strategy's run is a turn of one node."""

import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Literal

from devhost.node.outputs.outputs import AgentLog, Finding, LogEntry
from devhost.node.outputs.run import Run, RunEnd, report
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets
from devhost.trace import flow

LOST = flow.FlowEnded("failed", {}, "the trace ends before the flow does: it was killed, or it is still going on")
"""The end of a turn whose trace stops before its end."""
WAITS = RunEnd("waits for an answer", "limited")
ENDINGS: Mapping[flow.FlowStatus, RunEnd] = {
    "succeeded": RunEnd("finished", "good"),
    "partial-succeeded": RunEnd("finished with an error", "limited"),
    "failed": RunEnd("failed", "bad"),
    "stopped": RunEnd("stopped", "limited"),
    "paused": WAITS,
}


@dataclass
class NodeRow:
    """A run of a node."""

    execution: str
    node: flow.FlowNode
    began: float
    """The start in seconds, on the clock of the code that adds the events. `finished` uses the same clock."""
    round: int | None = None
    """The round of the container that the node is in, from 1."""
    ended: flow.NodeEnded | None = None
    """The end of the node; None while it runs, and if it never ended."""
    finished: float | None = None
    form: flow.FormAsked | None = None
    """The form that a Human Input node showed."""
    asked: float = 0.0
    """The time at which the form was shown, on the same clock."""
    answer: flow.FormAnswered | None = None
    """The answer to the node's form."""
    answered: str = ""
    """Who answered the node's form, with what, and how long a person took."""
    log: AgentLog = field(default_factory=AgentLog)
    """What the strategy of an Agent node has logged."""
    rounds: dict[int, list["NodeRow"]] = field(default_factory=dict)
    """The rows inside a loop or an iteration, by round."""

    @property
    def label(self) -> str:
        return self.node.title or self.node.id

    @property
    def status(self) -> str:
        if self.ended is None:
            return ""
        return self.ended.status

    @property
    def inputs(self) -> JsonObject:
        """The inputs; empty for a Variable Assigner, for which the engine reports the node's own data."""
        if self.ended is None or self.node.type == "assigner":
            return {}
        return self.ended.inputs

    @property
    def outputs(self) -> JsonObject:
        """The outputs, without the variables that a Start node outputs in addition to its fields."""
        outputs = {} if self.ended is None else self.ended.outputs
        return {
            name: value for name, value in outputs.items() if not name.startswith(("sys.", "conversation.", "env."))
        }

    @property
    def pressed(self) -> str:
        """The title of the button with which the form was answered; empty without an answer."""
        if self.form is None or self.answer is None:
            return ""
        pressed = self.answer.button
        return next((button.title for button in self.form.buttons if button.id == pressed), pressed)

    @property
    def run(self) -> Run | None:
        """The run of an Agent node that has ended."""
        if self.ended is None:
            return None
        return self.ended.run

    @property
    def logs(self) -> Sequence[LogEntry]:
        """The agent's log as a tree."""
        if self.run is None:
            return self.log.roots()
        return self.run.outputs.logs


@dataclass(kw_only=True)
class PlayedTurn:
    """A turn. Its times are on the clock of the code that adds the events."""

    began: float
    is_direct: bool = False
    """Whether a strategy is played without a flow around it. The turn then has one Agent node."""
    finished: float = 0.0
    """The time of the last event."""
    roots: list[NodeRow] = field(default_factory=list)
    """The outermost rows, in the order in which they began. The rows of a round are in the row of their container."""
    rows: dict[str, NodeRow] = field(default_factory=dict)
    """All rows, by the id of their execution."""
    nodes: list[flow.NodeEnded] = field(default_factory=list)
    """The ends of the nodes, in the order in which they ended."""
    form: NodeRow | None = None
    """The row of the node whose form waits for an answer, or was left unanswered."""
    before_form: int = 0
    """How many nodes had ended when the last form was shown. Their agents no longer wait for the user, because the
    form asks for the answer."""
    said: str = ""
    sources: list[JsonObject] = field(default_factory=list)
    """The sources that model nodes have read."""
    ended: flow.FlowEnded | None = None
    """The end of the turn; None while it is in progress, and if it never ended."""
    failures: list[str] = field(default_factory=list)
    """A sentence for each expectation of the script that failed, if the trace has them."""

    def add(self, event: flow.FlowEvent, at: float) -> None:
        self.finished = max(self.finished, at)
        match event:
            case flow.NodeStarted():
                self._start(NodeRow(event.execution, event.node, at, event.round))
            case flow.NodeEnded():
                self.nodes.append(event)
                row = self.rows.get(event.execution)
                row = row or self._start(NodeRow(event.execution, event.node, at, event.round))
                row.ended = event
                row.finished = at
            case flow.AgentLogLine() if event.execution in self.rows:
                self.rows[event.execution].log.add({"data": {}, **event.message["message"]})
            case flow.SourcesRead():
                self.sources += event.sources
            case flow.FormAsked():
                self.before_form = len(self.nodes)
                waits = (row for row in self.rows.values() if row.node.id == event.node.id and row.form is None)
                self.form = next(waits, None)
                if self.form is not None:
                    self.form.form = event
                    self.form.asked = at
            case flow.FormAnswered() if self.form is not None:
                self.form.answer = event
                self.form.answered = _answered(event, self.form, at)
                self.form = None
            case flow.AnswerText():
                self.said += event.text
            case flow.FlowEnded():
                self.ended = event

    def _start(self, row: NodeRow) -> NodeRow:
        last = reversed(self.rows.values())
        inside = next((each for each in last if each.node.id == row.node.container and each.ended is None), None)
        self.rows[row.execution] = row
        if inside is None:
            self.roots.append(row)
        else:
            inside.rounds.setdefault(row.round or 1, []).append(row)
        return row

    @property
    def end(self) -> flow.FlowEnded:
        return self.ended or LOST

    @property
    def answer(self) -> str:
        """The answer, or before the end of the turn the text so far."""
        if self.ended is None:
            return self.said
        return str(self.ended.outputs.get("answer") or "")

    @property
    def own(self) -> Run | None:
        """The run of a strategy that is played alone; None for a flow's turn, and before the run has ended."""
        if self.is_direct and self.nodes:
            return self.nodes[-1].run
        return None

    @property
    def unsaid(self) -> str:
        """The answer of a flow, for a view to which no text was streamed."""
        if self.is_direct:
            return ""
        return self.answer

    @property
    def seconds(self) -> float:
        if self.own is not None:
            return self.own.elapsed_seconds
        return self.finished - self.began

    @property
    def runs(self) -> Iterator[Run]:
        """The runs of the turn's agents."""
        return (node.run for node in self.nodes if node.run is not None)

    @property
    def findings(self) -> list[Finding]:
        """The violations of Dify's rules by the turn's agents."""
        return [finding for run in self.runs for finding in run.findings]

    @property
    def ending(self) -> RunEnd:
        """How the turn ended. In a turn that succeeded, an agent may still wait for the user, or have stopped early."""
        if self.ended is None:
            return RunEnd("not ended", "bad")
        if self.own is not None:
            return self.own.ending
        ending = ENDINGS[self.ended.status]
        agents = (node.run for node in self.nodes[self.before_form :])
        limited = [run.ending for run in agents if run and run.error is None and run.ending.level != "good"]
        if limited and self.ended.status == "succeeded":
            ending = limited[-1]
        if self.failures:
            return replace(ending, words=f"{ending.words}, not as expected", level="bad")
        return ending

    @property
    def flat(self) -> Iterator[tuple[int, NodeRow]]:
        """All rows in the order in which they began, each with the number of containers around it."""
        return _flat(self.roots, 0)

    @property
    def tokens(self) -> int:
        found = (node.metadata.get("total_tokens") for node in self.nodes)
        return sum(int(tokens) for tokens in found if isinstance(tokens, int | float))

    @property
    def price(self) -> Decimal:
        """The price of all nodes. Values that are not numbers are ignored."""
        found = [str(node.metadata.get("total_price") or 0) for node in self.nodes]
        return sum((Decimal(price) for price in found if re.fullmatch(r"[0-9.]+(E-?[0-9]{1,2})?", price)), Decimal(0))

    @property
    def outputs(self) -> JsonObject:
        """The outputs of a workflow."""
        return {name: value for name, value in self.end.outputs.items() if name not in {"answer", "files"}}


# A strategy's run as a turn: an Agent node starts, reports its text and its log, and ends with the run.

AGENT = "agent"
"""The id of the Agent node, and of its execution."""


def begun(strategy: str, at: float) -> PlayedTurn:
    """Return a turn whose Agent node has started."""
    turn = PlayedTurn(began=at, is_direct=True)
    turn.add(flow.NodeStarted(AGENT, agent_node(strategy)), at)
    return turn


def agent_node(strategy: str) -> flow.FlowNode:
    return flow.FlowNode(AGENT, AGENT, strategy, {})


def told_by(node: flow.FlowNode, message: JsonObject) -> flow.FlowEvent | None:
    """Return the event for a message of the strategy, or None for a message that only affects the outputs."""
    match message:
        case {"type": "text", "message": {"text": str(text)}}:
            return flow.AnswerText(node, text)
        case {"type": "log", "message": {"id": str(), "label": str(), "status": str()}}:
            return flow.AgentLogLine(AGENT, node, message)
        case _:
            return None


def ends(run: Run, inputs: JsonObject | None = None) -> tuple[flow.NodeEnded, flow.FlowEnded]:
    """Return the last two events of the turn. `inputs` is what the node gave the strategy."""
    metadata: JsonObject = {}
    if isinstance(run.usage, dict):
        metadata = {name: run.usage[name] for name in ("total_tokens", "total_price", "currency") if name in run.usage}
    error = ""
    status: Literal["succeeded", "failed"] = "succeeded"
    if run.error is not None:
        error = f"{run.error.kind}: {run.error.message}"
        status = "failed"
    outputs = run.outputs.by_name()
    node = agent_node(run.strategy)
    ended = flow.NodeEnded(AGENT, node, status, inputs or {}, outputs, run.elapsed_seconds, error, metadata, run=run)
    return ended, flow.FlowEnded(status, {"answer": run.outputs.text, "files": run.outputs.files}, error)


def _flat(rows: Sequence[NodeRow], depth: int) -> Iterator[tuple[int, NodeRow]]:
    for row in rows:
        yield depth, row
        for _, inner in sorted(row.rounds.items()):
            yield from _flat(inner, depth + 1)


def _answered(event: flow.FormAnswered, row: NodeRow, at: float) -> str:
    pressed = row.pressed
    words = {"timeout": "not answered in time", "script": f"answered by the script: {pressed}"}
    return words.get(event.by, f"answered by a person in the {event.by} after {at - row.asked:.1f} s: {pressed}")


def watched(
    events: Generator[flow.FlowEvent], show: Callable[[flow.FlowEvent, PlayedTurn], None], hidden: Secrets
) -> PlayedTurn:
    """Show the events and collect them in a turn. `hidden` is replaced in everything that is shown and kept.

    The last event is a `FlowEnded`. The events are closed even if `show` raises, because the engine waits forever if it
    is stopped as Python exits.
    """
    turn = PlayedTurn(began=time.monotonic())
    with closing(events):
        for event in map(hidden.masked, events):
            turn.add(event, time.monotonic())
            show(event, turn)
    return turn


def flow_report(turn: PlayedTurn) -> JsonObject:
    """Return the turn as one JSON object, for programs."""
    return {
        "status": turn.end.status,
        "outputs": turn.end.outputs,
        "error": turn.end.error or None,
        "conversation": dict(turn.end.conversation),
        "nodes": list(map(_node_report, turn.nodes)),
        "findings": [asdict(finding) for finding in turn.findings],
        "elapsed_seconds": round(turn.seconds, 3),
    }


def _node_report(ended: flow.NodeEnded) -> JsonObject:
    node = ended.node
    return {
        "id": node.id,
        "title": node.title,
        "type": node.type,
        "container": node.container,
        "round": ended.round,
        "status": ended.status,
        "elapsed_seconds": ended.seconds,
        "inputs": ended.inputs,
        "outputs": ended.outputs,
        "error": ended.error or None,
        "went_on": ended.went_on,
        "retries": list(ended.retries),
        "metadata": ended.metadata,
        "process": ended.process,
        **({} if ended.run is None or ended.model is None else {"run": report(ended.run, ended.model)}),
    }
