"""A Tool node's tool on the engine: a tool of a plugin that runs here.

In: the node's data, its parameters as the engine resolved them. Out: the tool's messages, from which the engine makes
the node's outputs; an error has the words of Dify's node.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, override

from graphon.dsl.tool_runtime import tool_runtime_message_from_payload
from graphon.file.models import File
from graphon.model_runtime.entities.llm_entities import LLMUsage
from graphon.nodes.runtime import ToolNodeRuntimeProtocol
from graphon.nodes.tool.entities import ToolNodeData
from graphon.nodes.tool.exc import ToolNodeError, ToolRuntimeInvocationError, ToolRuntimeResolutionError
from graphon.nodes.tool_runtime_entities import ToolRuntimeHandle, ToolRuntimeMessage, ToolRuntimeParameter
from graphon.runtime.variable_pool import VariablePool
from graphon.variables.template_resolution import convert_template

from devhost.errors import HostError, InvocationError, NodeFailedError, NodeParameterError, RunFailure
from devhost.flow.document import FlowNode
from devhost.flow.engine.models.asked_model import AskedModel
from devhost.flow.engine.turn.playing import Playing
from devhost.host.tool_host import ToolHost
from devhost.node.named_tools import meant_tool
from devhost.plugin.casting import cast_parameter
from devhost.plugin.keys.parameters import Parameter
from devhost.protocol.wire import JsonObject
from devhost.tools.tool import Surroundings, Tool, call_tool


@dataclass(frozen=True)
class _Prepared:
    tool: Tool
    declared: Sequence[Parameter]
    settings: JsonObject = field(repr=False)
    """The panel's values."""


class ToolRuntime(ToolNodeRuntimeProtocol):
    """Of one run of a node."""

    def __init__(self, node: FlowNode, playing: Playing) -> None:
        self._node = node
        self._playing = playing

    @override
    def get_runtime(
        self,
        *,
        node_id: str,
        node_data: ToolNodeData,
        variable_pool: VariablePool | None,
        node_execution_id: str | None = None,
    ) -> ToolRuntimeHandle:
        """`variable_pool` is None for a node of an older Dify, whose settings are plain values."""
        with self._playing.mistakes.watched(ToolNodeError):
            tools = {(tool.provider, tool.name): tool for tool in self._host.tools}
            found = meant_tool(node_data.provider_id, node_data.tool_name, tools)
            if found is None:
                raise ToolRuntimeResolutionError(f"tool {node_data.tool_name} of {node_data.provider_id} not found")
            tool = tools[found]
            declared = [Parameter.model_validate(parameter) for parameter in tool.entity["parameters"]]
            given = node_data.tool_configurations
            settings = {
                parameter.name: _setting(parameter, given.get(parameter.name), variable_pool)
                for parameter in declared
                if parameter.form == "form"
            }
            return ToolRuntimeHandle(_Prepared(tool, declared, settings))

    @override
    def get_runtime_parameters(self, *, tool_runtime: ToolRuntimeHandle) -> Sequence[ToolRuntimeParameter]:
        return [
            ToolRuntimeParameter(parameter.name, parameter.required) for parameter in _prepared(tool_runtime).declared
        ]

    @override
    def invoke(
        self,
        *,
        tool_runtime: ToolRuntimeHandle,
        tool_parameters: Mapping[str, Any],
        workflow_call_depth: int,
        provider_name: str,
    ) -> Generator[ToolRuntimeMessage, None, None]:
        prepared = _prepared(tool_runtime)
        parameters = {name: _for_plugin(value) for name, value in {**tool_parameters, **prepared.settings}.items()}
        host = self._host
        calls = host.calls(AskedModel(self._node, self._playing), host.tools)
        around = Surroundings(calls.answer, host.files, host.limits, _not_kept)
        with self._playing.mistakes.watched(ToolNodeError):
            try:
                for message in self._playing.ending.until_stopped(call_tool(prepared.tool, parameters, around)):
                    yield tool_runtime_message_from_payload(message)
            except RunFailure as failure:
                raise ToolRuntimeInvocationError(_words(failure, provider_name)) from failure
            if calls.fault is not None:
                raise calls.fault

    @override
    def get_usage(self, *, tool_runtime: ToolRuntimeHandle) -> LLMUsage:
        """A plugin's tool has none: its own calls of models are not the node's."""
        return LLMUsage.empty_usage()

    @override
    def build_file_reference(self, *, mapping: Mapping[str, Any]) -> File:
        return self._playing.files.build_from_mapping(mapping=mapping)

    @property
    def _host(self) -> ToolHost:
        host = self._playing.around.host
        if host is None:
            raise HostError(f"{self._node} needs a tool plugin, and none was started")
        return host


def _prepared(handle: ToolRuntimeHandle) -> _Prepared:
    return cast("_Prepared", handle.raw)


def _setting(parameter: Parameter, given: object, pool: VariablePool | None) -> object:
    try:
        return cast_parameter(parameter, given if pool is None else _resolved(given, pool))
    except NodeParameterError as error:
        raise ToolRuntimeResolutionError(error.words) from error


def _resolved(given: object, pool: VariablePool) -> object:
    match given:
        case {"type": "variable", "value": list(selector)}:
            variable = pool.get(selector)
            if variable is None:
                raise ToolRuntimeResolutionError(f"Variable {selector} does not exist")
            return variable.value
        case {"type": "mixed" | "constant", "value": value} if value is not None:
            return convert_template(pool, str(value)).text
        case {"value": value}:
            return value
        case _:
            return given


def _for_plugin(value: object) -> object:
    match value:
        case File():
            return value.to_plugin_parameter()
        case list():
            return [_for_plugin(each) for each in value]
        case _:
            return value


def _words(failure: RunFailure, provider: str) -> str:
    """As Dify's node words what its plugin client raises."""
    match failure:
        case InvocationError():
            return (
                f"An error occurred in the {provider}, please contact the author of {provider} for help, "
                f"error type: {failure.error_type}, error details: {failure.message}"
            )
        case NodeFailedError():
            return failure.shows
        case _:
            return f"Failed to invoke tool, error: {failure}"


def _not_kept(rule: str, sentence: str) -> None:
    """`devhost tool` shows the rules of Dify that a tool breaks without failing."""
