"""The turns of a flow in a trace, as the events that were written.

In: a `Trace`. Out: a `TracedTurn` for each turn, with the runs of its agents.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from devhost.errors import TraceError
from devhost.flow.document import FlowNode
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
from devhost.flow.form import Form
from devhost.flow.view.facts import FlowFacts
from devhost.trace.flow.lines import (
    FlowEndLine,
    FlowLine,
    FlowPauseLine,
    FlowTextLine,
    NodeEndLine,
    NodeRetryLine,
    NodeSourcesLine,
    NodeStartLine,
)
from devhost.trace.outcome import run_of
from devhost.trace.reader import Trace
from devhost.trace.runs import TracedRun, traced_runs

AGENT = "agent"


@dataclass(frozen=True)
class TracedTurn:
    """Times are seconds since the trace began."""

    facts: FlowFacts
    began: float
    events: list[tuple[float, FlowEvent]] = field(default_factory=list)
    runs: dict[str, list[TracedRun]] = field(default_factory=dict)
    """Of strategies, by the execution of the Agent node; several where the engine tried again."""

    @property
    def finished(self) -> float:
        """Of the last that was told."""
        ends = [run.finished for runs in self.runs.values() for run in runs]
        return max([self.began, *(at for at, _ in self.events), *ends])


class _Reader:
    def __init__(self, trace: Trace) -> None:
        self.turns: list[TracedTurn] = []
        self._strategy = trace.header.strategy
        self._runs = traced_runs(trace)
        self._of_sessions = {run.end.session_id: run for run in self._runs if run.end is not None}
        self._nodes: dict[str, FlowNode] = {}

    def read(self, trace: Trace) -> None:
        for line in trace.lines:
            if isinstance(line, FlowLine):
                facts = FlowFacts(**line.model_dump(exclude={"at", "event"}))
                self.turns.append(TracedTurn(facts, line.at))
            elif self.turns and (event := self._event(line)) is not None:
                self.turns[-1].events.append((line.at, event))
        self._place_the_other_runs()

    def _event(self, line: object) -> FlowEvent | None:
        match line:
            case NodeStartLine(node=node):
                known = FlowNode(
                    node.id, node.type, node.title, {"error_strategy": node.error_strategy}, node.container
                )
                self._nodes[line.execution] = self._nodes[node.id] = known
                return NodeStarted(line.execution, known, line.round)
            case NodeRetryLine() if line.execution in self._nodes:
                return NodeRetried(line.execution, self._nodes[line.execution], line.error, line.attempt)
            case NodeEndLine() if line.execution in self._nodes:
                return self._ended(line)
            case NodeSourcesLine() if line.execution in self._nodes:
                return SourcesRead(line.execution, self._nodes[line.execution], line.sources)
            case FlowTextLine():
                return AnswerText(self._nodes.get(line.node, FlowNode(line.node, "", "", {})), line.text)
            case FlowPauseLine():
                known_nodes = (self._nodes[node] for node in line.nodes if node in self._nodes)
                return FlowPaused(tuple(Form(node, "", (), (), can_time_out=False) for node in known_nodes))
            case FlowEndLine():
                return FlowEnded(line.status, line.outputs, line.error, line.conversation)
        return None

    def _ended(self, line: NodeEndLine) -> NodeEnded:
        traced = self._of_sessions.get(line.session_id)
        if traced is not None:
            if traced not in self._runs:
                raise TraceError(f"the trace is damaged: the run {line.session_id} ends two nodes")
            self.turns[-1].runs.setdefault(line.execution, []).append(traced)
            self._runs.remove(traced)
        return NodeEnded(
            line.execution,
            self._nodes[line.execution],
            line.status,
            line.inputs,
            line.outputs,
            line.seconds,
            line.error,
            line.metadata,
            line.process,
            None if traced is None else run_of(traced, self._strategy),
        )

    def _place_the_other_runs(self) -> None:
        """Those that the engine tried again, and those that the end of the trace cut off: by their time."""
        for traced in self._runs:
            for turn in self.turns:
                if (execution := _agent_at(turn, traced.began)) is not None:
                    turn.runs.setdefault(execution, []).insert(0, traced)
                    if not any(
                        isinstance(event, NodeEnded) and event.execution == execution for _, event in turn.events
                    ):
                        turn.events.extend(_logged(traced, execution, self._nodes[execution]))


def _agent_at(turn: TracedTurn, at: float) -> str | None:
    """The Agent node that ran at that time."""
    running: Mapping[str, float] = {}
    for told, event in turn.events:
        if told > at:
            break
        match event:
            case NodeStarted() if event.node.type == AGENT:
                running = {**running, event.execution: told}
            case NodeEnded():
                running = {name: began for name, began in running.items() if name != event.execution}
    return next(iter(running), None)


def _logged(traced: TracedRun, execution: str, node: FlowNode) -> Iterator[tuple[float, FlowEvent]]:
    for arrival in traced.streamed:
        match arrival.message:
            case {"type": "log", "message": {"id": str(), "label": str(), "status": str(), "data": dict()}}:
                yield arrival.at, AgentLog(execution, node, arrival.message)


def traced_turns(trace: Trace) -> list[TracedTurn]:
    reader = _Reader(trace)
    reader.read(trace)
    return [replace(turn, events=sorted(turn.events, key=lambda told: told[0])) for turn in reader.turns]
