"""Nodes that call Dify's services when they run in Dify, and call devhost here."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast, override

from graphon.dsl.code_runtime import SandboxCodeExecutionError, _transformer_for
from graphon.dsl.tool_runtime import tool_runtime_message_from_payload
from graphon.entities.base_node_data import BaseNodeData
from graphon.enums import BuiltinNodeTypes, NodeType, WorkflowNodeExecutionMetadataKey, WorkflowNodeExecutionStatus
from graphon.file.models import File
from graphon.model_runtime.entities.llm_entities import LLMUsage
from graphon.node_events.agent import AgentLogEvent
from graphon.node_events.base import NodeEventPayload, NodeRunResult
from graphon.node_events.node import StreamChunkEvent, StreamCompletedEvent
from graphon.nodes.base.node import Node
from graphon.nodes.code.entities import CodeLanguage
from graphon.nodes.code.protocols import CodeExecutorProtocol
from graphon.nodes.runtime import ToolNodeRuntimeProtocol
from graphon.nodes.tool.entities import ToolNodeData
from graphon.nodes.tool.exc import ToolNodeError, ToolRuntimeInvocationError, ToolRuntimeResolutionError
from graphon.nodes.tool_runtime_entities import ToolRuntimeHandle, ToolRuntimeMessage, ToolRuntimeParameter
from graphon.runtime.variable_pool import VariablePool
from graphon.template_rendering import Jinja2TemplateRenderer, TemplateRenderError
from graphon.variables.segments import ArrayFileSegment, StringSegment
from graphon.variables.template_resolution import convert_template
from graphon.variables.utils import dumps_with_segments
from pydantic import Field

from devhost.errors import HostError, InvocationError, NodeFailedError, NodeParameterError, RefusedCallError, RunFailure
from devhost.flow.engine.models import AskedModel
from devhost.flow.engine.turn import RunningTurn, ThreadStream, for_plugins
from devhost.flow.outside import CodeError, render_template, run_program
from devhost.flow.tools import meant_strategy, panel_settings
from devhost.host.host import Host
from devhost.limits import HostLimits
from devhost.node.messages import FileMessages
from devhost.node.outputs.run import Run
from devhost.node.parameters import NAME, NodeVariables, PickedValue, resolved, sent, window
from devhost.plugin.declaration import Parameter
from devhost.protocol.wire import JsonObject
from devhost.script import retrieved
from devhost.tools.entity import meant_tool, panel_values
from devhost.tools.tool import Tool, call_tool
from devhost.trace.flow import FlowNode

LOGGED = ("label", "parent_id", "error", "status", "data")
"""The fields of a log entry that are the same in the engine's events and in a strategy's messages."""


class _TurnNode:
    """Base class of the nodes that the engine does not have. Each node belongs to the turn `playing`."""

    def __init__(self, node_id: str, data: BaseNodeData, *, playing: RunningTurn, **parts: object) -> None:
        super().__init__(node_id=node_id, data=data, **parts)  # type: ignore[call-arg] # the engine's Node
        self._playing = playing
        self._node = playing.file.nodes[node_id]

    @classmethod
    def version(cls) -> str:
        return "1"


class AgentNodeData(BaseNodeData):
    type: NodeType = BuiltinNodeTypes.AGENT
    agent_strategy_name: str
    agent_parameters: dict[str, dict[str, Any]] = Field(default_factory=dict)


class AgentNode(_TurnNode, Node[AgentNodeData]):
    """An Agent node, which converts a strategy's run to the engine's events.

    The conversion follows the rules of `devhost.node`, which were recorded from Dify's own node. The engine's error
    branch, default value and retry apply to a failed run.
    """

    node_type = BuiltinNodeTypes.AGENT

    @override
    def _run(self) -> Generator[NodeEventPayload, None, None]:
        with self._playing.mistakes.watched():
            try:
                yield from self._played()
            except NodeParameterError as error:
                yield StreamCompletedEvent(node_run_result=_failed(error.words, type(error).__name__))

    def _played(self) -> Iterator[NodeEventPayload]:
        turn = self._playing.turn
        around = self._playing.around
        host = around.host
        if not isinstance(host, Host):
            raise HostError(f"{self._node} needs a strategy plugin, and none was started")
        model = around.model(self._node)
        by_plugin = {process.declaration.directory: process for process in host.strategy_plugins}
        meant = meant_strategy(self._node, [process.declaration for process in host.strategy_plugins])
        if meant is None:
            raise HostError(f"{self._node} asks for a strategy that no given plugin has")
        strategy = meant.strategy
        parameters = self.node_data.agent_parameters
        entities = [tool.entity for tool in around.tools]
        pool = self.runtime_state.variable_pool.flatten()  # the keys are `node.name`
        variables = for_plugins({name: value for name, value in pool.items() if NAME.fullmatch(name)})
        known = NodeVariables(variables)
        data = self._node.data
        is_legacy = data.get("version", "1") == "1" and data.get("tool_node_version") is None
        settings = panel_settings(
            strategy, parameters, known, model.description, self._memory(), entities, is_legacy=is_legacy
        )
        # The node's row shows the parameters before they are cast, without those that the pickers fill.
        shown = {name: resolved(each, known) for name, each in settings.items() if not isinstance(each, PickedValue)}
        run = partial(
            host.run,
            strategy.identity.name,
            settings,
            model=model,
            tools=around.tools,
            conversation_id=turn.conversation_id or None,
            variables=variables,
            plugin=by_plugin[meant.plugin.directory],
            stop=self._playing.ending.stop,
        )
        streamed = {"text"}
        for said in ThreadStream[JsonObject | Run](lambda put: put(run(on_message=put))):
            if isinstance(said, Run):
                self._playing.runs[self.execution_id] = (said, model.description)
                if said.was_stopped:
                    self._playing.ending.wait()
                for output in sorted(streamed):  # an Answer node waits until each of these outputs ends
                    yield self._chunk(output, "", is_final=True)
                yield StreamCompletedEvent(node_run_result=self._result(said, host.secrets.masked(shown)))
            elif (event := self._event(said)) is not None:
                streamed.update(event.selector[1:] if isinstance(event, StreamChunkEvent) else ())
                yield event

    def _memory(self) -> list[JsonObject]:
        """Returns the node's memory. As in Dify's Agent node, the window's size applies even if the window is off."""
        match self.node_data.get("memory"):
            case {"window": {"size": int(turns)}}:
                return window(self._playing.turn.history, turns=turns)
            case dict():
                return window(self._playing.turn.history)
        return []

    def _event(self, message: JsonObject) -> StreamChunkEvent | AgentLogEvent | None:
        match message:
            case {"type": "text" | "link", "message": {"text": str(text)}}:
                return self._chunk("text", text)
            case {
                "type": "variable",
                "message": {"variable_name": str(name), "variable_value": str(text), "stream": True},
            }:
                return self._chunk(name, text)
            case {"type": "log", "message": dict(entry)}:
                said: JsonObject = {name: entry.get(name) for name in LOGGED}
                return AgentLogEvent(
                    message_id=entry["id"],
                    node_execution_id=self.execution_id,
                    node_id=self.id,
                    metadata=entry.get("metadata") or {},
                    **said,
                )
        return None

    def _result(self, run: Run, inputs: JsonObject) -> NodeRunResult:
        if run.error is not None:
            shows = run.error.message
            if run.error.node:
                shows = run.error.node.shows
            return _failed(shows, run.error.node.type if run.error.node else run.error.kind, inputs)
        files = [self._playing.files.made(file["id"]) for file in run.outputs.files]
        return NodeRunResult(
            status=WorkflowNodeExecutionStatus.SUCCEEDED,
            inputs=inputs,
            outputs={**run.outputs.by_name(), "files": ArrayFileSegment(value=files)},
            metadata={
                WorkflowNodeExecutionMetadataKey(key): value
                for key, value in run.outputs.workflow_totals.items()
                if key in set(WorkflowNodeExecutionMetadataKey)
            },
        )

    def _chunk(self, output: str, text: str, *, is_final: bool = False) -> StreamChunkEvent:
        return StreamChunkEvent(selector=[self.id, output], chunk=text, is_final=is_final)


def _failed(shows: str, error_type: str, inputs: JsonObject | None = None) -> NodeRunResult:
    failed = WorkflowNodeExecutionStatus.FAILED
    return NodeRunResult(status=failed, inputs=inputs or {}, error=shows, error_type=error_type)


class KnowledgeNodeData(BaseNodeData):
    type: NodeType = BuiltinNodeTypes.KNOWLEDGE_RETRIEVAL
    query_variable_selector: list[str] = Field(default_factory=list)


class KnowledgeNode(_TurnNode, Node[KnowledgeNodeData]):
    """A Knowledge Retrieval node that always finds the segments in the script, whatever the query is."""

    node_type = BuiltinNodeTypes.KNOWLEDGE_RETRIEVAL

    @override
    def _run(self) -> NodeRunResult:
        query = self.runtime_state.variable_pool.get(self.node_data.query_variable_selector)
        if not isinstance(query, StringSegment) or not query.value:
            return _failed("Query is required.", "ValueError")
        with self._playing.mistakes.watched():
            found = retrieved(self._playing.around.knowledge, self._node)
        return NodeRunResult(
            status=WorkflowNodeExecutionStatus.SUCCEEDED, inputs={"query": query.value}, outputs={"result": found}
        )


class LocalCode(CodeExecutorProtocol):
    """Runs Code nodes. The program that Dify sends to its sandbox runs in a process on this machine."""

    def __init__(self, limits: HostLimits) -> None:
        self._limits = limits

    @override
    def execute(self, *, language: CodeLanguage, code: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Runs the code. The engine's transformer, which is private, encodes the inputs and decodes the result."""
        transformer = _transformer_for(language)
        program = transformer.build_program(code=code, inputs=inputs)
        return transformer.parse_result(run_program(language.value, program.code, self._limits))

    @override
    def is_execution_error(self, error: Exception) -> bool:
        return isinstance(error, CodeError | SandboxCodeExecutionError)


class LimitedTemplates(Jinja2TemplateRenderer):
    """Renders prompts and Template nodes. Templates from someone else must not run code or use unlimited resources."""

    def __init__(self, limits: HostLimits) -> None:
        self._limits = limits

    @override
    def render_template(self, template: str, variables: Mapping[str, Any]) -> str:
        try:
            return render_template(template, dumps_with_segments(_with_plain_files(variables)), self._limits)
        except CodeError as error:
            raise TemplateRenderError(str(error)) from error


def _with_plain_files(value: Any) -> Any:  # noqa: ANN401 - values of a flow
    """Returns a copy in which each file is an object with the file's fields, as in a Code node."""
    match value:
        case File():
            return value.to_dict()
        case list() | tuple():
            return [_with_plain_files(item) for item in value]
        case dict():
            return {key: _with_plain_files(item) for key, item in value.items()}
        case _:
            return value


@dataclass(frozen=True)
class _Prepared:
    """A tool that is ready to be called."""

    tool: Tool
    parameters: Sequence[ToolRuntimeParameter]
    settings: JsonObject = field(repr=False)
    """The values from the node's panel."""


class ToolRuntime(ToolNodeRuntimeProtocol):
    """Runs the tool of one Tool node."""

    def __init__(self, node: FlowNode, playing: RunningTurn) -> None:
        self._node = node
        self._playing = playing

    @override
    def get_runtime(
        self, *, node_data: ToolNodeData, variable_pool: VariablePool | None, **_: object
    ) -> ToolRuntimeHandle:
        """Looks up the tool and its settings.

        `variable_pool` is None for a node from an older version of Dify, whose settings are plain values.
        """
        with self._playing.mistakes.watched(ToolNodeError):
            tools = {(tool.provider, tool.name): tool for tool in self._playing.around.tools}
            found = meant_tool(node_data.provider_id, node_data.tool_name, tools)
            if found is None:
                raise ToolRuntimeResolutionError(f"tool {node_data.tool_name} of {node_data.provider_id} not found")
            tool = tools[found]
            declared = [Parameter.model_validate(parameter) for parameter in tool.entity["parameters"]]
            try:
                settings = settings_of(declared, node_data, variable_pool)
            except NodeParameterError as error:
                raise ToolRuntimeResolutionError(error.words) from error
            parameters = [ToolRuntimeParameter(each.name, each.required) for each in declared]
            return ToolRuntimeHandle(_Prepared(tool, parameters, settings))

    @override
    def get_runtime_parameters(self, *, tool_runtime: ToolRuntimeHandle) -> Sequence[ToolRuntimeParameter]:
        return cast("_Prepared", tool_runtime.raw).parameters

    @override
    def invoke(
        self, *, tool_runtime: ToolRuntimeHandle, tool_parameters: Mapping[str, Any], provider_name: str, **_: object
    ) -> Generator[ToolRuntimeMessage]:
        prepared = cast("_Prepared", tool_runtime.raw)
        given = for_plugins({**tool_parameters, **prepared.settings})
        parameters = {name: sent(value) for name, value in given.items()}
        tool = prepared.tool
        around = self._playing.around
        asked = {"provider": tool.provider, "tool": tool.name, "tool_parameters": parameters, "entity": tool.entity}
        with self._playing.mistakes.watched(ToolNodeError):
            for message in around.heard(self._node, "tool", asked, self._answer(tool, parameters, provider_name)):
                yield tool_runtime_message_from_payload(message)

    def _answer(self, tool: Tool, parameters: JsonObject, provider: str) -> Iterator[JsonObject]:
        host = self._playing.around.host
        if host is None:
            raise HostError(f"{self._node} needs a tool plugin, and none was started")
        calls = host.calls(AskedModel(self._node, self._playing), self._playing.around.tools)
        # Rules of Dify that a tool breaks without failing are ignored here; `devhost tool` shows them.
        files = FileMessages(host.files, host.limits, lambda *_: None)
        try:
            yield from self._playing.ending.until_stopped(call_tool(tool, parameters, files, calls.answer))
        except NodeParameterError as error:
            raise ToolRuntimeInvocationError(error.words) from error
        except (RunFailure, RefusedCallError) as failure:
            raise ToolRuntimeInvocationError(_words(failure, provider)) from failure
        if calls.fault is not None:
            raise calls.fault

    @override
    def get_usage(self, *, tool_runtime: ToolRuntimeHandle) -> LLMUsage:
        """Returns zero usage, because the model calls of a plugin's tool do not count for the node."""
        return LLMUsage.empty_usage()

    @override
    def build_file_reference(self, *, mapping: Mapping[str, Any]) -> File:
        return self._playing.files.build_from_mapping(mapping=mapping)


def settings_of(declared: Iterable[Parameter], data: ToolNodeData, pool: VariablePool | None) -> JsonObject:
    """Returns the values from a Tool node's panel before they are cast.

    `pool` is None for a node from an older version of Dify.
    """
    given = {**data.tool_configurations, **{name: each.model_dump() for name, each in data.tool_parameters.items()}}
    if pool is None:
        return panel_values(declared, given, None)
    return panel_values(declared, given, partial(_resolved, pool=pool))


def _resolved(setting: JsonObject, pool: VariablePool) -> object:
    match setting:
        case {"type": "variable", "value": list(selector)}:
            variable = pool.get(selector)
            if variable is None:
                raise ToolRuntimeResolutionError(f"Variable {selector} does not exist")
            return variable.value
        case {"type": "mixed", "value": value}:
            return convert_template(pool, str(value)).text
        case _:
            return setting["value"]


def _words(failure: RunFailure | RefusedCallError, provider: str) -> str:
    """Formats a failure as Dify's node formats the exceptions of its plugin client."""
    match failure:
        case InvocationError():
            return (
                f"An error occurred in the {provider}, please contact the author of {provider} for help, "
                f"error type: {failure.error_type}, error details: {failure.message}"
            )
        case NodeFailedError():
            return failure.shows
        case RefusedCallError():  # from a recording, which already has the words of the node
            return str(failure)
        case _:
            return f"Failed to invoke tool, error: {failure}"
