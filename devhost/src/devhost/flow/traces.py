"""A flow in a trace."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from rich.console import Console
from rich.text import Text

from devhost.errors import TraceError
from devhost.flow.document import FlowFile, FlowNode, Form
from devhost.flow.turn import (
    AgentLog,
    AnswerText,
    FlowEnded,
    FlowEngine,
    FlowEvent,
    FlowPaused,
    FlowTurn,
    NodeEnded,
    NodeRetried,
    NodeStarted,
    SourcesRead,
    Surroundings,
)
from devhost.flow.view import FlowView, facts_of, findings_of
from devhost.models.backend import ModelCallError
from devhost.process.session import Watcher
from devhost.protocol.wire import JsonObject
from devhost.terminal.screen import ViewOptions
from devhost.trace.flow import (
    UNTIMED,
    FlowEndLine,
    FlowLine,
    FlowPauseLine,
    FlowTextLine,
    NodeCallLine,
    NodeEndLine,
    NodeRetryLine,
    NodeSourcesLine,
    NodeStartLine,
    Timed,
    TracedNode,
)
from devhost.trace.lines import Trace, TraceWriter
from devhost.trace.runs import Call, Piece, TracedRun, run_of, traced_runs

# The turns of a flow in a trace, as the events that were written.

AGENT = "agent"


@dataclass(frozen=True)
class TracedTurn:
    """Times are seconds since the trace began."""

    facts: FlowLine
    events: list[tuple[float, FlowEvent]] = field(default_factory=list)
    runs: dict[str, list[TracedRun]] = field(default_factory=dict)
    """Of strategies, by the execution of the Agent node; several where the engine tried again."""
    calls: dict[str, list[Call]] = field(default_factory=dict)
    """By node, what other nodes asked of models and tools, in the order in which it was answered."""

    @property
    def began(self) -> float:
        return self.facts.at

    @property
    def executions(self) -> Mapping[str, str]:
        """The node of each, in the order in which they began."""
        return {event.execution: event.node.id for _, event in self.events if isinstance(event, NodeStarted)}

    @property
    def nodes(self) -> set[str]:
        return set(self.executions.values())

    @property
    def ended(self) -> FlowEnded | None:
        """None if the trace ends before."""
        return next((event for _, event in self.events if isinstance(event, FlowEnded)), None)

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
                self.turns.append(TracedTurn(line))
            elif self.turns and isinstance(line, NodeCallLine):
                self.turns[-1].calls.setdefault(line.node, []).append(_call(line))
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
        run = None if traced is None else run_of(traced, self._strategy)
        told = line.model_dump(exclude={"at", "event", "session_id"})
        return NodeEnded(node=self._nodes[line.execution], run=run, **told)

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


def _call(line: NodeCallLine) -> Call:
    pieces = [Piece(line.at, piece) for piece in line.pieces]
    return Call("", line.kind, line.request, line.at, line.at, line.error, pieces)


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


# The events of a flow as lines of a trace.
#
# The log of an agent is not written twice: it stands in the messages of its run.


class FlowTrace:
    """Writes each turn into a trace; without a writer it does nothing."""

    def __init__(self, writer: TraceWriter | None = None) -> None:
        self._writer = writer

    @property
    def watcher(self) -> Watcher:
        """For the host."""
        return self._writer or Watcher()

    def written(self, engine: FlowEngine) -> FlowEngine:
        """An engine whose turns are written."""

        def play(file: FlowFile, turn: FlowTurn, around: Surroundings, /) -> Iterator[FlowEvent]:
            return self.of_turn(facts_of(file, turn), engine(file, turn, replace(around, heard=self._heard)))

        return play if self._writer is not None else engine

    def _heard(
        self, node: FlowNode, kind: Literal["llm", "tool"], request: JsonObject, answer: Iterator[JsonObject], /
    ) -> Iterator[JsonObject]:
        pieces, error = list[JsonObject](), ""
        try:
            for piece in answer:
                pieces.append(piece)
                yield piece
        except ModelCallError as failure:
            error = f"invoke llm failed: {failure.as_dify_words_it()}"  # as a plugin reads it
            raise
        except Exception as failure:
            error = str(failure)
            raise
        finally:
            line = NodeCallLine(at=UNTIMED, node=node.id, kind=kind, request=request, pieces=tuple(pieces), error=error)
            if self._writer is not None:
                self._writer.flow(line)

    def of_turn(self, facts: FlowLine, events: Iterable[FlowEvent]) -> Iterator[FlowEvent]:
        """The events, each once it is written."""
        if self._writer is None:
            yield from events
            return
        self._writer.flow(facts)
        for event in events:
            if line := line_of(event):
                self._writer.flow(line)
            yield event


def line_of(event: FlowEvent) -> Timed | None:
    """None for what stands in other lines already. A line takes of an event what it has a field for."""
    match event:
        case NodeStarted():
            return NodeStartLine(at=UNTIMED, execution=event.execution, node=_traced(event.node), round=event.round)
        case NodeRetried():
            return NodeRetryLine(at=UNTIMED, **vars(event))
        case NodeEnded():
            session = "" if event.run is None else event.run.session_id
            return NodeEndLine(at=UNTIMED, session_id=session, **vars(event))
        case AnswerText():
            return FlowTextLine(at=UNTIMED, node=event.node.id, text=event.text)
        case FlowPaused():
            return FlowPauseLine(at=UNTIMED, nodes=tuple(form.node.id for form in event.forms))
        case FlowEnded():
            return FlowEndLine(at=UNTIMED, **vars(event))
        case SourcesRead():
            return NodeSourcesLine(at=UNTIMED, **vars(event))
        case AgentLog():
            return None


def _traced(node: FlowNode) -> TracedNode:
    strategy = node.data.get("error_strategy")
    return TracedNode(
        id=node.id,
        type=node.type,
        title=node.title,
        container=node.container,
        error_strategy=strategy if isinstance(strategy, str) else None,
    )


# Shows the trace of a flow in the terminal as the flow was shown.

LOST = FlowEnded("failed", {}, "the trace ends before the flow does: it was killed, or it is still going on")


def replay_flow(trace: Trace, console: Console, options: ViewOptions) -> None:
    view = FlowView(console, options)
    turns = traced_turns(trace)
    for number, turn in enumerate(turns):
        if number == 0:
            view.open_with(turn.facts, trace.notices)
            view.begin_answer()
        else:
            view.go_on(turn.facts.query)
        end = LOST
        for at, event in turn.events:
            view.show(event, at)
            end = event if isinstance(event, FlowEnded) else end
        nodes = [event for _, event in turn.events if isinstance(event, NodeEnded)]
        view.close(end, turn.finished - turn.began, findings_of(nodes))
    if not turns:
        console.print(Text("The trace ends before the flow began.", "yellow"))
    if trace.cut_off:
        console.print(Text("The last line of the trace is cut off: the flow was killed.", "yellow"))
