"""A stretch of a turn: from its beginning, or from a pause, to the next pause or the end.

In: the nodes' surroundings, and what the stretch before left in writing. Out: the engine's events. Each stretch has an
engine of its own, because a person may take days to answer a form: Dify writes the state down and forgets the engine.
"""

import json
import time
import uuid
from collections.abc import Generator
from contextlib import closing
from typing import Self

from graphon.dsl.errors import DslError
from graphon.dsl.importer import inspect
from graphon.engine import Engine
from graphon.engine.command.entities import AbortCommand, Command
from graphon.engine.filter import EngineEventFilterContext, ResponseStreamFilter, filter_engine_events
from graphon.engine_events.base import EngineEvent
from graphon.graph.graph import Graph
from graphon.graph.validation import GraphValidationError
from graphon.runtime.init_params import InitParams
from graphon.runtime.runtime_state import RuntimeState
from pydantic import ValidationError

from devhost.errors import FlowFileError
from devhost.flow.engine.factory import FlowNodeFactory
from devhost.flow.engine.turn.playing import Playing
from devhost.flow.engine.turn.pool import filled_pool
from devhost.process.stop import Stop
from devhost.text.yaml_file import describe


class StopChannel:
    """Where the engine looks for commands: a person's stop is one. It looks every 0.1 s, and when a node has ended."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop

    def fetch_commands(self) -> list[Command]:
        return [AbortCommand(reason="by the user")] if self._stop.requested else []

    def send_command(self, command: Command) -> None:
        raise NotImplementedError(f"{type(command).__name__}: only a Stop gives commands")


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
    return Graph.init(graph_config=config, node_factory=FlowNodeFactory.of(playing, params, state), root_node_id=start)
