"""Finds what the engine rejects in a flow's file: in the data of each node, and in the graph.

As a program, this module takes the path of the file and prints the sentences as JSON.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from graphon.entities.graph_config import NodeConfigDictAdapter
from graphon.runtime.runtime_state import RuntimeState
from graphon.runtime.variable_pool import VariablePool
from pydantic import ValidationError

from devhost.errors import FlowFileError
from devhost.flow.document import FlowFile
from devhost.flow.engine.play import factory_of, graph_of
from devhost.flow.engine.turn import RunningTurn
from devhost.flow.outside import OutsideAccess
from devhost.flow.turn import FlowTurn, TurnContext
from devhost.script import Script, ScriptedModels
from devhost.text import describe


def refusals(file: FlowFile) -> list[str]:
    """Returns a sentence for each objection of the engine. The graph is checked only if all nodes are valid."""
    script = Script(place=str(file.path))
    models = ScriptedModels(script, script)
    playing = RunningTurn(file, FlowTurn(), TurnContext(None, models, allowed=OutsideAccess(http=True, code=True)))
    state = RuntimeState(variable_pool=VariablePool(), start_at=0.0, workflow_id=file.path.stem)
    if wrong := [*_wrong_data(playing, state)]:
        return wrong
    try:
        graph_of(playing, state)
    except FlowFileError as error:
        return [_sentence(playing, error)]
    return []


def _wrong_data(playing: RunningTurn, state: RuntimeState) -> Iterator[str]:
    """Checks every node, because the engine itself stops at the first invalid one."""
    factory = factory_of(playing, state)
    for config in factory.graph_config["nodes"]:
        node = playing.file.nodes.get(config["id"])
        try:
            if node is not None:  # notes on the canvas are not nodes
                factory.validate_node(NodeConfigDictAdapter.validate_python(config))
        except ValidationError as error:
            yield f"{node}: {describe(error)}"
        except FlowFileError as error:
            yield _sentence(playing, error)


def _sentence(playing: RunningTurn, error: FlowFileError) -> str:
    return str(error).removeprefix(f"{playing.file.path} cannot be played:").strip()


if __name__ == "__main__":
    json.dump(refusals(FlowFile.read(Path(sys.argv[1]))), sys.stdout)
