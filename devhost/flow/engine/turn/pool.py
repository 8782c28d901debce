"""The engine's variable pool: filled before a turn, and read by devhost's nodes as plain JSON."""

import re
from collections.abc import Mapping
from typing import Any

from graphon.enums import BuiltinNodeTypes
from graphon.runtime.variable_pool import VariablePool
from graphon.workflow_type_encoder import WorkflowRuntimeTypeConverter

from devhost.flow.document import FlowFile
from devhost.flow.surroundings import FlowTurn
from devhost.protocol.wire import JsonObject

USER = "devhost"
REFERABLE = re.compile(r"[a-zA-Z0-9_]{1,50}\.[a-zA-Z_][a-zA-Z0-9_]{0,29}")
"""What a template can name; of the rest no node can ask."""


def filled_pool(file: FlowFile, turn: FlowTurn, run_id: str) -> VariablePool:
    pool = VariablePool()
    for name, value in _system(file, turn, run_id).items():
        pool.add(("sys", name), value)
    for variable in file.environment_variables:
        pool.add(("env", variable.name), variable.value)
    for variable in file.conversation_variables:
        pool.add(("conversation", variable.name), turn.conversation.get(variable.name, variable.value))
    for node in file.nodes.values():
        if node.type == BuiltinNodeTypes.START:
            for name, value in turn.inputs.items():
                pool.add((node.id, name), value)
    return pool


def plain_variables(pool: VariablePool) -> JsonObject:
    """By `node.name`."""
    return plain({name: value for name, value in pool.flatten().items() if REFERABLE.fullmatch(name)})


def plain(values: Mapping[str, Any]) -> JsonObject:
    """Segments and files as JSON."""
    return dict(WorkflowRuntimeTypeConverter().to_json_encodable(values))


def conversation_of(pool: VariablePool) -> Mapping[str, object]:
    return pool.get_by_prefix("conversation")


def _system(file: FlowFile, turn: FlowTurn, run_id: str) -> Mapping[str, object]:
    system: dict[str, object] = {
        "user_id": USER,
        "app_id": file.path.stem,
        "workflow_id": file.path.stem,
        "workflow_run_id": run_id,
        "files": list(turn.files),
    }
    if not file.is_chatflow:
        return system
    return {
        **system,
        "query": turn.query,
        "conversation_id": turn.conversation_id,
        "dialogue_count": turn.dialogue_count,
    }
