"""The engine's variable pool: filled before a turn, and read by devhost's nodes as plain JSON."""

import re
from collections.abc import Mapping
from typing import Any, override

from graphon.enums import BuiltinNodeTypes
from graphon.file.models import File
from graphon.runtime.variable_pool import VariablePool
from graphon.variables.factory import TypeMismatchError, build_segment_with_type
from graphon.variables.segments import Segment
from graphon.variables.types import SegmentType
from graphon.workflow_type_encoder import WorkflowRuntimeTypeConverter

from devhost.errors import FlowFileError
from devhost.files.server import FileServer
from devhost.flow.document import FlowFile, FlowVariable
from devhost.flow.engine.files.made import all_uploaded, with_files
from devhost.flow.surroundings import FlowTurn
from devhost.protocol.wire import JsonObject

USER = "devhost"
REFERABLE = re.compile(r"[a-zA-Z0-9_]{1,50}\.[a-zA-Z_][a-zA-Z0-9_]{0,29}")
"""What a template can name; of the rest no node can ask."""


def filled_pool(file: FlowFile, turn: FlowTurn, run_id: str, server: FileServer | None) -> VariablePool:
    pool = VariablePool()
    for name, value in _system(file, turn, run_id, server).items():
        pool.add(("sys", name), value)
    for variable in file.environment_variables:
        pool.add(("env", variable.name), variable.value)
    for variable in file.conversation_variables:
        value = turn.conversation.get(variable.name, variable.value)
        pool.add(("conversation", variable.name), _typed(file, variable, value))
    for node in file.nodes.values():
        if node.type == BuiltinNodeTypes.START:
            for name, value in with_files(turn.inputs, server).items():
                pool.add((node.id, name), value)
    return pool


def _typed(file: FlowFile, variable: FlowVariable, value: object) -> Segment:
    """Of the declared type, which the engine's Variable Assigner asks for: an empty list has none of its own."""
    try:
        declared = SegmentType(variable.value_type)
        return SegmentType.get_zero_value(declared) if value is None else build_segment_with_type(declared, value)
    except (ValueError, TypeMismatchError) as error:
        raise FlowFileError(
            f"{file.path}: the conversation variable {variable.name!r} is declared as {variable.value_type}, "
            f"which its value does not fit: {error}"
        ) from error


def plain_variables(pool: VariablePool) -> JsonObject:
    """By `node.name`."""
    known = {name: value for name, value in pool.flatten().items() if REFERABLE.fullmatch(name)}
    return dict(_ForPlugins().to_json_encodable(known))


def plain(values: Mapping[str, Any]) -> JsonObject:
    """Segments and files as JSON."""
    return dict(WorkflowRuntimeTypeConverter().to_json_encodable(values))


class _ForPlugins(WorkflowRuntimeTypeConverter):
    @override
    def value_to_json_encodable_recursive(self, value: Any) -> Any:
        """A plugin reaches a file at the file service."""
        if isinstance(value, File):
            return {**value.to_dict(), "url": value.generate_url(for_external=False)}
        return super().value_to_json_encodable_recursive(value)


def conversation_of(pool: VariablePool) -> Mapping[str, object]:
    return pool.get_by_prefix("conversation")


def _system(file: FlowFile, turn: FlowTurn, run_id: str, server: FileServer | None) -> Mapping[str, object]:
    system: dict[str, object] = {
        "user_id": USER,
        "app_id": file.path.stem,
        "workflow_id": file.path.stem,
        "workflow_run_id": run_id,
        "files": all_uploaded(turn.files, server),
    }
    if not file.is_chatflow:
        return system
    return {
        **system,
        "query": turn.query,
        "conversation_id": turn.conversation_id,
        "dialogue_count": turn.dialogue_count,
    }
