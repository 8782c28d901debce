"""Writes the events of a flow to a trace."""

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from devhost.files import LocalFile
from devhost.flow.document import FlowFile
from devhost.flow.turn import FlowEngine, FlowTurn, TurnContext
from devhost.models.backend import ModelCallError
from devhost.process.session import Watcher
from devhost.protocol.wire import JsonObject
from devhost.trace import flow
from devhost.trace.lines import TraceWriter

# The line of a trace that describes a turn before it begins.


def facts_of(file: FlowFile, turn: FlowTurn) -> flow.FlowLine:
    return flow.FlowLine(
        file=str(file.path.absolute()),
        name=file.name or file.path.stem,
        kind=file.kind,
        nodes=len([name for name in file.nodes if name != flow.BEFORE_ONE_NODE]),
        turn=turn.dialogue_count,
        conversation_id=turn.conversation_id,
        query=turn.query,
        inputs=json.loads(json.dumps(dict(turn.inputs), default=_given)),
        files=tuple(given.path.name for given in turn.files),
        graph=_graph(file),
        node=file.alone,
    )


UNSEEN = frozenset({"iteration-start", "loop-start"})
"""Types of nodes that the editor draws as a mark inside a container."""


def _graph(file: FlowFile) -> flow.FlowGraph:
    seen = (node for node in file.nodes.values() if node.type not in UNSEEN and node.id != flow.BEFORE_ONE_NODE)
    nodes = {node.id: node for node in seen}
    return flow.FlowGraph(
        tuple(flow.GraphNode(each.id, each.type, each.title, each.container) for each in nodes.values()),
        tuple(
            flow.GraphEdge(str(edge["source"]), str(edge["target"]), str(edge.get("sourceHandle") or "source"))
            for edge in file.edges
            if edge.get("source") in nodes and edge.get("target") in nodes
        ),
    )


def _given(value: object) -> object:
    if isinstance(value, LocalFile):
        return {"file": value.path.name}
    return str(value)


# The events of a flow as lines of a trace.
#
# An agent's log is not written again, because the messages of its run already contain it.


class FlowTrace:
    """Writes each turn to a trace if the watcher writes one."""

    def __init__(self, watcher: Watcher | None) -> None:
        self._writer = watcher if isinstance(watcher, TraceWriter) else None

    def _write(self, line: flow.FlowTraceLine) -> None:
        if self._writer is not None:
            self._writer.flow(line)

    def written(self, engine: FlowEngine) -> FlowEngine:
        """Wraps an engine so that its turns are written to the trace."""

        def play(file: FlowFile, turn: FlowTurn, around: TurnContext, /) -> Iterator[flow.FlowEvent]:
            return self.of_turn(facts_of(file, turn), engine(file, turn, replace(around, heard=self._heard)))

        return play

    def _heard(
        self, node: flow.FlowNode, kind: Literal["llm", "tool"], request: JsonObject, answer: Iterator[JsonObject], /
    ) -> Iterator[JsonObject]:
        pieces = list[JsonObject]()
        error = ""
        try:
            for piece in answer:
                pieces.append(piece)
                yield piece
        except ModelCallError as failure:
            error = f"invoke llm failed: {failure.as_dify_words_it()}"  # the message that a plugin gets
            raise
        except Exception as failure:
            error = str(failure)
            raise
        finally:
            self._write(flow.NodeCalled(node, kind, request, tuple(pieces), error))

    def judged(self, failures: Sequence[str]) -> None:
        """Writes the failed expectations of a turn, one sentence for each."""
        if failures:
            self._write(flow.FlowJudged(tuple(failures)))

    def of_turn(self, facts: flow.FlowLine, events: Iterable[flow.FlowEvent]) -> Generator[flow.FlowEvent]:
        """Yields each event after it is written."""
        self._write(facts)
        for event in events:
            if not isinstance(event, flow.AgentLogLine):
                self._write(event)
            yield event
