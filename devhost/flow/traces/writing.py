"""The events of a flow as lines of a trace.

The log of an agent is not written twice: it stands in the messages of its run.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from devhost.flow.document import FlowFile, FlowNode
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
from devhost.flow.surroundings import FlowEngine, FlowTurn, Surroundings
from devhost.flow.view.facts import FlowFacts
from devhost.process.watcher import Watcher
from devhost.trace.flow.lines import (
    FlowEndLine,
    FlowLine,
    FlowPauseLine,
    FlowTextLine,
    NodeEndLine,
    NodeRetryLine,
    NodeSourcesLine,
    NodeStartLine,
    Timed,
    TracedNode,
)
from devhost.trace.writer import TraceWriter

UNTIMED = 0.0
"""The writer puts the time into each line."""


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
            return self.of_turn(FlowFacts.of(file, turn), engine(file, turn, around))

        return play

    def of_turn(self, facts: FlowFacts, events: Iterable[FlowEvent]) -> Iterator[FlowEvent]:
        """The events, each once it is written."""
        if self._writer is None:
            yield from events
            return
        self._writer.flow(FlowLine(at=UNTIMED, **asdict(facts)))
        for event in events:
            if line := line_of(event):
                self._writer.flow(line)
            yield event


def line_of(event: FlowEvent) -> Timed | None:
    """None for what stands in other lines already."""
    match event:
        case NodeStarted():
            return NodeStartLine(at=UNTIMED, execution=event.execution, node=_traced(event.node), round=event.round)
        case NodeRetried():
            return NodeRetryLine(at=UNTIMED, execution=event.execution, attempt=event.attempt, error=event.error)
        case NodeEnded():
            return _end_line(event)
        case AnswerText():
            return FlowTextLine(at=UNTIMED, node=event.node.id, text=event.text)
        case FlowPaused():
            return FlowPauseLine(at=UNTIMED, nodes=tuple(form.node.id for form in event.forms))
        case FlowEnded():
            return FlowEndLine(
                at=UNTIMED,
                status=event.status,
                outputs=event.outputs,
                error=event.error,
                conversation=dict(event.conversation),
            )
        case SourcesRead():
            return NodeSourcesLine(at=UNTIMED, execution=event.execution, sources=event.sources)
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


def _end_line(event: NodeEnded) -> NodeEndLine:
    return NodeEndLine(
        at=UNTIMED,
        execution=event.execution,
        status=event.status,
        seconds=event.seconds,
        inputs=event.inputs,
        outputs=event.outputs,
        error=event.error,
        metadata=event.metadata,
        process=event.process,
        session_id="" if event.run is None else event.run.session_id,
    )
