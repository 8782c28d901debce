"""The engine's events as those of `devhost.flow.events`."""

from collections.abc import Iterator, Mapping

from graphon.engine_events.agent import NodeRunAgentLogEvent
from graphon.engine_events.base import EngineEvent, NodeEvent
from graphon.engine_events.graph import (
    GraphRunAbortedEvent,
    GraphRunFailedEvent,
    GraphRunPartialSucceededEvent,
    GraphRunSucceededEvent,
)
from graphon.engine_events.node import (
    NodeRunExceptionEvent,
    NodeRunFailedEvent,
    NodeRunRetrieverResourceEvent,
    NodeRunRetryEvent,
    NodeRunStartedEvent,
    NodeRunStreamChunkEvent,
    NodeRunSucceededEvent,
)
from graphon.enums import BuiltinNodeTypes, WorkflowNodeExecutionMetadataKey
from graphon.file.runtime import use_workflow_file_runtime
from graphon.runtime.runtime_state import RuntimeState

from devhost.flow.engine.turn.playing import Playing
from devhost.flow.engine.turn.pool import conversation_of, plain
from devhost.flow.events import (
    AgentLog,
    AnswerText,
    FlowEnded,
    FlowEvent,
    NodeEnded,
    NodeRetried,
    NodeStarted,
    SourcesRead,
)
from devhost.protocol.wire import JsonObject
from devhost.trace.flow.lines import FlowStatus, NodeStatus


class Teller:
    def __init__(self, playing: Playing, state: RuntimeState) -> None:
        self._playing = playing
        self._state = state

    def told(self, event: EngineEvent) -> list[FlowEvent]:
        """While it writes an event down, the engine asks for the addresses of files."""
        with use_workflow_file_runtime(self._playing.files):
            return list(self._told(event))

    def _told(self, event: EngineEvent) -> Iterator[FlowEvent]:
        """Events without a use here, such as the engine's own beginning, become none."""
        match event:
            case NodeRunRetryEvent():
                node = self._playing.file.nodes[event.node_id]
                self._playing.retries.setdefault(event.id, []).append(event.error)
                yield NodeRetried(event.id, node, event.error, event.retry_index)
            case NodeRunStartedEvent() if event.id not in self._playing.started:
                self._playing.started.add(event.id)
                yield NodeStarted(event.id, self._playing.file.nodes[event.node_id], self._round(event))
            case NodeRunSucceededEvent():
                yield self._ended(event, "succeeded", "")
            case NodeRunFailedEvent():
                yield self._ended(event, "failed", event.error)
            case NodeRunExceptionEvent():
                yield self._ended(event, "exception", event.error)
            case NodeRunAgentLogEvent():
                yield AgentLog(event.id, self._playing.file.nodes[event.node_id], _log_message(event))
            case NodeRunRetrieverResourceEvent() if event.retriever_resources:
                sources = tuple(map(plain, event.retriever_resources))
                yield SourcesRead(event.id, self._playing.file.nodes[event.node_id], sources)
            case NodeRunStreamChunkEvent() if event.chunk:
                yield AnswerText(self._playing.file.nodes[event.node_id], event.chunk)
            case _:
                yield from self._end(event)

    def _end(self, event: EngineEvent) -> Iterator[FlowEvent]:
        match event:
            case GraphRunSucceededEvent():
                yield self._flow_ended("succeeded", event.outputs)
            case GraphRunPartialSucceededEvent():
                yield self._flow_ended("partial-succeeded", event.outputs)
            case GraphRunAbortedEvent():
                yield self._flow_ended("stopped", event.outputs, event.reason or "")
            case GraphRunFailedEvent():
                yield self._flow_ended("failed", self._state.outputs, event.error)

    def paused(self, outputs: Mapping[str, object], error: str) -> FlowEnded:
        """The turn ends there, because a form stays open."""
        with use_workflow_file_runtime(self._playing.files):
            return self._flow_ended("paused", outputs, error)

    def _ended(
        self, event: NodeRunSucceededEvent | NodeRunFailedEvent | NodeRunExceptionEvent, status: NodeStatus, error: str
    ) -> NodeEnded:
        result = event.node_run_result
        run, model = self._playing.runs.get(event.id, (None, None))
        seconds = (event.finished_at - event.start_at).total_seconds() if event.finished_at else 0.0
        return NodeEnded(
            event.id,
            self._playing.file.nodes[event.node_id],
            status,
            plain(result.inputs),
            plain(result.outputs),
            round(seconds, 3),
            error,
            plain({str(key): value for key, value in result.metadata.items()}),
            plain(result.process_data),
            run,
            model,
            self._round(event),
            tuple(self._playing.retries.get(event.id, ())),
        )

    def _round(self, event: NodeEvent) -> int | None:
        """The engine counts from 0; a node of a loop in an iteration has both numbers."""
        nodes = self._playing.file.nodes
        container = nodes[event.node_id].container
        if container is None:
            return None
        keys = WorkflowNodeExecutionMetadataKey
        key = keys.LOOP_INDEX if nodes[container].type == BuiltinNodeTypes.LOOP else keys.ITERATION_INDEX
        index = event.node_run_result.metadata.get(key)
        return index + 1 if isinstance(index, int) else None

    def _flow_ended(self, status: FlowStatus, outputs: Mapping[str, object], error: str = "") -> FlowEnded:
        return FlowEnded(status, plain(outputs), error, conversation_of(self._state.variable_pool))


def _log_message(event: NodeRunAgentLogEvent) -> JsonObject:
    entry = {
        "id": event.message_id,
        "label": event.label,
        "parent_id": event.parent_id,
        "error": event.error,
        "status": event.status,
        "data": dict(event.data),
        "metadata": dict(event.metadata),
    }
    return {"type": "log", "message": entry, "meta": None}
