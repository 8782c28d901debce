"""Plays one turn of a flow on the engine, from pause to pause, and reports its events."""

import json
import logging
import time
import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Self

from graphon.dsl.entities import DslCredentials
from graphon.dsl.errors import DslError
from graphon.dsl.importer import inspect
from graphon.engine import Engine
from graphon.engine.command.builtin.in_memory import InMemoryChannel
from graphon.engine.command.entities import AbortCommand, Command
from graphon.engine.filter import EngineEventFilterContext, ResponseStreamFilter, filter_engine_events
from graphon.engine_events.agent import NodeRunAgentLogEvent
from graphon.engine_events.base import EngineEvent, NodeEvent
from graphon.engine_events.graph import (
    GraphRunAbortedEvent,
    GraphRunFailedEvent,
    GraphRunPartialSucceededEvent,
    GraphRunPausedEvent,
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
from graphon.graph.graph import Graph
from graphon.graph.validation import GraphValidationError
from graphon.runtime.init_params import InitParams
from graphon.runtime.runtime_state import RuntimeState
from pydantic import ValidationError

from devhost.errors import FlowFileError, UnansweredFormError
from devhost.flow.document import FlowFile
from devhost.flow.engine.factory import FlowNodeFactory
from devhost.flow.engine.nodes import LOGGED
from devhost.flow.engine.turn import Forms, Playing, conversation_of, filled_pool, plain
from devhost.flow.forms import FormAnswer, answer_of
from devhost.flow.turn import FlowTurn, Surroundings
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject
from devhost.text import describe
from devhost.trace import flow

# A stretch of a turn: from its beginning, or from a pause, to the next pause or the end.
#
# Each stretch has an engine of its own, because a person may take days to answer a form: Dify writes the state down
# and forgets the engine.


class StopChannel:
    """Where the engine looks for commands: a person's stop is one. It looks every 0.1 s, and when a node has ended."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._sent = InMemoryChannel()

    def fetch_commands(self) -> list[Command]:
        return [AbortCommand(reason="by the user")] if self._stop.requested else self._sent.fetch_commands()

    def send_command(self, command: Command) -> None:
        """The engine's own."""
        self._sent.send_command(command)


class Stretch:
    def __init__(self, playing: Playing, run_id: str, state: RuntimeState, answers: ResponseStreamFilter) -> None:
        """`answers` lets through the text that belongs to an Answer node, when it is that node's turn."""
        self.state = state
        playing.ending.begins(state.graph_execution)
        self._run_id = run_id
        self._answers = answers
        self._engine = Engine(
            graph=_graph(playing, state, run_id),
            runtime_state=state,
            command_channel=StopChannel(playing.ending.stop),
            file_runtime=playing.files,
        )

    @classmethod
    def first(cls, playing: Playing) -> Self:
        run_id = str(uuid.uuid4())
        host = playing.around.host
        pool = filled_pool(playing.file, playing.turn, run_id, None if host is None else host.server)
        state = RuntimeState(variable_pool=pool, start_at=time.perf_counter(), workflow_id=playing.file.path.stem)
        return cls(playing, run_id, state, ResponseStreamFilter())

    @classmethod
    def after_pause(cls, playing: Playing, written: str) -> Self:
        """`written`: what the stretch before wrote."""
        saved = json.loads(written)
        answers = ResponseStreamFilter()
        answers.loads(saved["answers"])
        return cls(playing, saved["run"], RuntimeState.from_snapshot(saved["state"]), answers)

    def written(self) -> str:
        """All that the next stretch needs, as JSON; only after the last event."""
        return json.dumps({"run": self._run_id, "state": self.state.dumps(), "answers": self._answers.dumps()})

    def events(self) -> Generator[EngineEvent]:
        context = EngineEventFilterContext.from_engine(self._engine)
        with closing(self._said()) as said:
            yield from filter_engine_events(said, context=context, filters=[self._answers])

    def _said(self) -> Generator[EngineEvent]:
        """The engine raises what it has told already with its last event."""
        try:
            yield from self._engine.run()
        except Exception:  # noqa: BLE001 - the last event had its words
            return


def _graph(playing: Playing, state: RuntimeState, run_id: str) -> Graph:
    """FlowFileError for what the engine does not take."""
    try:
        return _built(playing, state, run_id)
    except (DslError, GraphValidationError, ValidationError, ValueError) as error:
        words = describe(error) if isinstance(error, ValidationError) else str(error)
        raise FlowFileError(f"{playing.file.path} cannot be played: {words}") from error


def _built(playing: Playing, state: RuntimeState, run_id: str) -> Graph:
    file = playing.file
    config = inspect(file.text).document.graph_config
    if config is None:
        raise FlowFileError(f"{file.path} has no graph")
    start = next(node.id for node in file.nodes.values() if node.type == "start")
    params = InitParams(
        workflow_id=file.path.stem, graph_config=config, run_context={"workflow_run_id": run_id}, call_depth=0
    )
    factory = FlowNodeFactory(config, params, state, DslCredentials(), [], playing)
    return Graph.init(graph_config=config, node_factory=factory, root_node_id=start)


# The engine's events as those of `devhost.flow.turn`.


STATUSES: Mapping[type[NodeEvent], flow.NodeStatus] = {
    NodeRunSucceededEvent: "succeeded",
    NodeRunFailedEvent: "failed",
    NodeRunExceptionEvent: "exception",
}


class Teller:
    def __init__(self, playing: Playing, state: RuntimeState) -> None:
        self._playing = playing
        self._state = state

    def told(self, event: EngineEvent) -> list[flow.FlowEvent]:
        """While it writes an event down, the engine asks for the addresses of files."""
        with use_workflow_file_runtime(self._playing.files):
            return list(self._told(event))

    def _told(self, event: EngineEvent) -> Iterator[flow.FlowEvent]:  # noqa: C901 - one case per event
        """Events without a use here, such as the engine's own beginning, become none."""
        match event:
            case NodeRunRetryEvent():
                self._playing.retries.setdefault(event.id, []).append(event.error)
            case NodeRunStartedEvent() if event.id not in self._playing.started:
                self._playing.started[event.id] = event.start_at
                yield flow.NodeStarted(event.id, self._playing.file.nodes[event.node_id], self._round(event))
            case NodeRunSucceededEvent() | NodeRunFailedEvent() | NodeRunExceptionEvent():
                yield self._ended(event)
            case NodeRunAgentLogEvent():
                yield flow.AgentLog(event.id, self._playing.file.nodes[event.node_id], _log_message(event))
            case NodeRunRetrieverResourceEvent() if event.retriever_resources:
                sources = tuple(map(plain, event.retriever_resources))
                yield flow.SourcesRead(event.id, self._playing.file.nodes[event.node_id], sources)
            case NodeRunStreamChunkEvent() if event.chunk:
                yield flow.AnswerText(self._playing.file.nodes[event.node_id], event.chunk)
            case GraphRunSucceededEvent():
                yield self._flow_ended("succeeded", event.outputs)
            case GraphRunPartialSucceededEvent():
                yield self._flow_ended("partial-succeeded", event.outputs)
            case GraphRunAbortedEvent():
                yield self._flow_ended("stopped", event.outputs, event.reason or "")
            case GraphRunFailedEvent():
                yield self._flow_ended("failed", self._state.outputs, event.error)

    def paused(self, outputs: Mapping[str, object], error: str) -> flow.FlowEnded:
        """The turn ends there, because a form stays open."""
        with use_workflow_file_runtime(self._playing.files):
            return self._flow_ended("paused", outputs, error)

    def _ended(self, event: NodeRunSucceededEvent | NodeRunFailedEvent | NodeRunExceptionEvent) -> flow.NodeEnded:
        result = event.node_run_result
        run, model = self._playing.runs.get(event.id, (None, None))
        began = self._playing.started.get(event.id, event.start_at)
        seconds = (event.finished_at - began).total_seconds() if event.finished_at else 0.0
        return flow.NodeEnded(
            event.id,
            self._playing.file.nodes[event.node_id],
            STATUSES[type(event)],
            plain(result.inputs),
            plain(result.outputs),
            round(seconds, 3),
            "" if isinstance(event, NodeRunSucceededEvent) else event.error,
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

    def _flow_ended(self, status: flow.FlowStatus, outputs: Mapping[str, object], error: str = "") -> flow.FlowEnded:
        return flow.FlowEnded(status, plain(outputs), error, conversation_of(self._state.variable_pool))


def _log_message(event: NodeRunAgentLogEvent) -> JsonObject:
    entry = {"id": event.message_id, **{name: getattr(event, name) for name in LOGGED}, "metadata": event.metadata}
    return {"type": "log", "message": entry, "meta": None}


# Plays one turn of a flow on the engine, and says what happens in devhost's words.

# The engine logs each failure with its traceback, besides the event that tells of it.
logging.getLogger("graphon").addHandler(logging.NullHandler())


def play(file: FlowFile, turn: FlowTurn, around: Surroundings) -> Iterator[flow.FlowEvent]:
    """A mistake of the command, or in devhost, is raised: see `Mistakes`."""
    playing = Playing(file, turn, around, Forms(file, around.answers))
    stretch = Stretch.first(playing)
    while True:
        paused = None
        teller = Teller(playing, stretch.state)
        with closing(stretch.events()) as events:
            try:
                for event in events:
                    playing.mistakes.raise_first()
                    if isinstance(event, GraphRunPausedEvent):
                        paused = event
                    else:
                        yield from teller.told(event)
            finally:
                if paused is None:
                    playing.ending.end()
        if paused is None:
            return
        try:
            for form in playing.forms.open(paused):
                yield form
                answer = answer_of(form, around.answers.get(form.node.id, FormAnswer()), around.ask)
                playing.forms.answer(form, answer)
                by = "timeout" if answer.button == flow.TIMEOUT else answer.by
                yield flow.FormAnswered(form.form, answer.button, answer.values, by)
        except UnansweredFormError as error:
            yield teller.paused(paused.outputs, str(error))
            return
        stretch = Stretch.after_pause(playing, stretch.written())
