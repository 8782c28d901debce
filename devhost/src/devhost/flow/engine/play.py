"""Plays one turn of a flow on the engine, from pause to pause, and reports what happens as devhost's events."""

import logging
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Self, cast

from graphon.dsl.entities import DslCredentials
from graphon.dsl.errors import DslError
from graphon.engine import Engine
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
from graphon.enums import WorkflowNodeExecutionMetadataKey
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
from devhost.flow.engine.turn import RunningTurn, filled_pool, plain
from devhost.flow.forms import answer_of
from devhost.flow.loaded import as_handed_on
from devhost.flow.turn import FlowTurn, TurnContext
from devhost.process.session import Stop
from devhost.script import FormAnswer
from devhost.text import describe
from devhost.trace import flow

# The engine logs each failure with its traceback, although an event reports it too.
logging.getLogger("graphon").addHandler(logging.NullHandler())


class StopChannel:
    """Passes a user's stop request to the engine, as its only command.

    The engine checks for commands every 0.1 s and after each node.
    """

    def __init__(self, stop: Stop) -> None:
        self._stop = stop

    def fetch_commands(self) -> list[Command]:
        if self._stop.requested:
            return [AbortCommand(reason="by the user")]
        return []

    def send_command(self, command: Command) -> None:
        """Does nothing. Only the engine's layers and `request_abort` send commands, and devhost uses neither."""


class EngineRun:
    """A part of a turn: from the beginning or a pause to the next pause or the end.

    Each part has its own engine, because a person may take days to answer a form: Dify saves the state and discards
    the engine.
    """

    def __init__(self, playing: RunningTurn, state: RuntimeState, answers: ResponseStreamFilter) -> None:
        """`answers` holds the text of each Answer node back until it is that node's turn."""
        playing.ending.execution = state.graph_execution
        self._playing = playing
        self._state = state
        self._answers = answers
        self._engine = Engine(
            graph=graph_of(playing, state),
            runtime_state=state,
            command_channel=StopChannel(playing.ending.stop),
            file_runtime=playing.files,
        )
        self.paused: GraphRunPausedEvent | None = None
        """The last event if a form is open; otherwise None."""

    @classmethod
    def first(cls, playing: RunningTurn) -> Self:
        pool = filled_pool(playing)
        name = playing.file.path.stem
        state = RuntimeState(variable_pool=pool, start_at=time.perf_counter(), workflow_id=name)
        return cls(playing, state, ResponseStreamFilter())

    @classmethod
    def after_pause(cls, playing: RunningTurn, state: str, said: str) -> Self:
        """Continues from the state and the answers that the previous part returned from `written`."""
        answers = ResponseStreamFilter()
        answers.loads(said)
        return cls(playing, RuntimeState.from_snapshot(state), answers)

    def written(self) -> tuple[str, str]:
        """Serializes the state and the answers. Call this only after the last event."""
        return self._state.dumps(), self._answers.dumps()

    def events(self) -> Generator[EngineEvent]:
        context = EngineEventFilterContext.from_engine(self._engine)
        with closing(self._said()) as said:
            yield from filter_engine_events(said, context=context, filters=[self._answers])

    def _said(self) -> Generator[EngineEvent]:
        """Yields the engine's events. An exception is ignored, because the last event has already reported it."""
        try:
            yield from self._engine.run()
        except Exception:  # noqa: BLE001 - the last event has reported it
            return

    def told(self) -> Iterator[flow.FlowEvent]:
        """Yields devhost's events. Raises the first fatal error."""
        with closing(self.events()) as events:
            try:
                for event in events:
                    self._playing.mistakes.raise_first()
                    with use_workflow_file_runtime(self._playing.files):  # provides the addresses of files
                        told = list(self._told(event))
                    yield from told
            finally:
                if self.paused is None:
                    self._playing.ending.end()

    def _told(self, event: EngineEvent) -> Iterator[flow.FlowEvent]:  # noqa: C901 - one case per event
        """Converts an event of the engine. Events that devhost does not use, such as the flow's start, are dropped."""
        match event:
            case NodeEvent(node_id=flow.BEFORE_ONE_NODE):
                return
            case NodeRunRetryEvent():
                self._playing.retries[event.id].append(event.error)
            case NodeRunStartedEvent() if event.id not in self._playing.started:
                self._playing.started[event.id] = event.start_at
                yield flow.NodeStarted(event.id, self._node(event), self._round(event))
            case NodeRunSucceededEvent() | NodeRunFailedEvent() | NodeRunExceptionEvent():
                yield self._ended(event)
            case NodeRunAgentLogEvent():
                logged = {name: getattr(event, name) for name in LOGGED}
                entry = {"id": event.message_id, **logged, "metadata": event.metadata}
                yield flow.AgentLogLine(event.id, self._node(event), {"type": "log", "message": entry, "meta": None})
            case NodeRunRetrieverResourceEvent() if event.retriever_resources:
                yield flow.SourcesRead(event.id, self._node(event), tuple(map(plain, event.retriever_resources)))
            case NodeRunStreamChunkEvent() if event.chunk:
                yield flow.AnswerText(self._node(event), event.chunk)
            case GraphRunPausedEvent():
                self.paused = event
            case GraphRunSucceededEvent():
                yield self._flow_ended("succeeded", event.outputs)
            case GraphRunPartialSucceededEvent():
                yield self._flow_ended("partial-succeeded", event.outputs)
            case GraphRunAbortedEvent():
                yield self._flow_ended("stopped", event.outputs, event.reason or "")
            case GraphRunFailedEvent():
                yield self._flow_ended("failed", self._state.outputs, event.error)

    def stays_paused(self, paused: GraphRunPausedEvent, error: str) -> flow.FlowEnded:
        """Returns the last event of a turn that stays paused because a form has no answer."""
        with use_workflow_file_runtime(self._playing.files):
            return self._flow_ended("paused", paused.outputs, error)

    def _ended(self, event: NodeRunSucceededEvent | NodeRunFailedEvent | NodeRunExceptionEvent) -> flow.NodeEnded:
        result = event.node_run_result
        run, model = self._playing.runs.get(event.id, (None, None))
        began = self._playing.started.get(event.id, event.start_at)
        seconds = 0.0
        if event.finished_at:
            seconds = (event.finished_at - began).total_seconds()
        return flow.NodeEnded(
            event.id,
            self._node(event),
            cast("flow.NodeStatus", result.status.value),
            plain(result.inputs),
            plain(result.outputs),
            round(seconds, 3),
            "" if isinstance(event, NodeRunSucceededEvent) else event.error,
            plain({str(key): value for key, value in result.metadata.items()}),
            plain(result.process_data),
            run,
            model,
            self._round(event),
            tuple(self._playing.retries[event.id]),
        )

    def _node(self, event: NodeEvent) -> flow.FlowNode:
        return self._playing.file.nodes[event.node_id]

    def _round(self, event: NodeEvent) -> int | None:
        """Returns the round of the node's loop or iteration, counted from 1. The engine counts rounds from 0.

        If a loop is inside an iteration, its nodes have the round numbers of both.
        """
        container = self._node(event).container
        if container is None:
            return None
        is_loop = self._playing.file.nodes[container].type == "loop"
        keys = WorkflowNodeExecutionMetadataKey
        index = event.node_run_result.metadata.get(keys.LOOP_INDEX if is_loop else keys.ITERATION_INDEX)
        if isinstance(index, int):
            return index + 1
        return None

    def _flow_ended(self, status: flow.FlowStatus, outputs: Mapping[str, object], error: str = "") -> flow.FlowEnded:
        return flow.FlowEnded(status, plain(outputs), error, self._state.variable_pool.get_by_prefix("conversation"))


def graph_of(playing: RunningTurn, state: RuntimeState) -> Graph:
    """Builds the engine's graph. Raises FlowFileError if the engine rejects the graph."""
    file = playing.file
    factory = factory_of(playing, state)
    try:
        return Graph.init(graph_config=factory.graph_config, node_factory=factory, root_node_id=file.start.id)
    except (DslError, GraphValidationError, ValidationError, ValueError) as error:
        if isinstance(error, ValidationError):
            words = describe(error)
        else:
            words = str(error)
        raise FlowFileError(f"{file.path} cannot be played: {words}") from error


def factory_of(playing: RunningTurn, state: RuntimeState) -> FlowNodeFactory:
    file = playing.file
    config = as_handed_on(file.graph)
    context = {"workflow_run_id": playing.run_id}
    params = InitParams(workflow_id=file.path.stem, graph_config=config, run_context=context, call_depth=0)
    return FlowNodeFactory(config, params, state, DslCredentials(), [], playing)


def play(file: FlowFile, turn: FlowTurn, around: TurnContext) -> Iterator[flow.FlowEvent]:
    """Plays one turn and yields its events. Errors in the command or in devhost are raised: see `FatalErrors`."""
    playing = RunningTurn(file, turn, around)
    stretch = EngineRun.first(playing)
    yield from stretch.told()
    while stretch.paused is not None:
        try:
            for form in playing.forms.open(stretch.paused):
                yield form
                answer = answer_of(form, around.answers.get(form.node.id, FormAnswer()), around.ask)
                playing.forms.answer(form, answer)
                by = answer.by
                if answer.button == flow.TIMEOUT:
                    by = "timeout"
                yield flow.FormAnswered(form.form, answer.button, answer.values, by)
        except UnansweredFormError as error:
            yield stretch.stays_paused(stretch.paused, str(error))
            return
        stretch = EngineRun.after_pause(playing, *stretch.written())
        yield from stretch.told()
