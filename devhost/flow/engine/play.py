"""Plays one turn of a flow on the engine, and says what happens in devhost's words."""

import logging
import time
import uuid
from collections.abc import Generator, Iterator
from contextlib import closing

from graphon.dsl.importer import inspect
from graphon.engine import Engine
from graphon.engine_events.base import EngineEvent
from graphon.graph.graph import Graph
from graphon.runtime.init_params import InitParams
from graphon.runtime.runtime_state import RuntimeState

from devhost.errors import FlowFileError
from devhost.flow.document import FlowFile
from devhost.flow.engine.factory import FlowNodeFactory
from devhost.flow.engine.told import Teller
from devhost.flow.engine.turn.playing import Playing
from devhost.flow.engine.turn.pool import filled_pool
from devhost.flow.events import FlowEvent
from devhost.flow.surroundings import FlowTurn, Surroundings

# The engine logs each failure with its traceback, besides the event that tells of it.
logging.getLogger("graphon").addHandler(logging.NullHandler())


def play(file: FlowFile, turn: FlowTurn, around: Surroundings) -> Iterator[FlowEvent]:
    """A mistake of the command, or in devhost, is raised: see `Mistakes`."""
    playing = Playing(file, turn, around)
    run_id = str(uuid.uuid4())
    state = RuntimeState(
        variable_pool=filled_pool(file, turn, run_id), start_at=time.perf_counter(), workflow_id=file.path.stem
    )
    engine = Engine(graph=_graph(playing, state, run_id), runtime_state=state)
    teller = Teller(playing, state)
    with closing(_events(engine)) as events:
        for event in events:
            playing.mistakes.raise_first()
            yield from teller.told(event)


def _events(engine: Engine) -> Generator[EngineEvent]:
    """The engine raises what it has told already with its last event."""
    try:
        yield from engine.run()
    except Exception:  # noqa: BLE001 - the last event had its words
        return


def _graph(playing: Playing, state: RuntimeState, run_id: str) -> Graph:
    file = playing.file
    config = inspect(file.text).document.graph_config
    if config is None:
        raise FlowFileError(f"{file.path} has no graph")
    start = next(node.id for node in file.nodes.values() if node.type == "start")
    params = InitParams(
        workflow_id=file.path.stem, graph_config=config, run_context={"workflow_run_id": run_id}, call_depth=0
    )
    return Graph.init(graph_config=config, node_factory=FlowNodeFactory.of(playing, params, state), root_node_id=start)
