"""Creates the nodes of a graph: graphon's nodes with devhost's models and tools, and devhost's own nodes."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, override

from graphon.dsl.errors import DslError
from graphon.dsl.node_factory import SlimDslNodeFactory, _code_limits, _TextOnlyFileSaver
from graphon.entities.graph_config import NodeConfigDict
from graphon.enums import BuiltinNodeTypes, NodeExecutionType
from graphon.nodes.base.node import Node
from graphon.nodes.code.code_node import CodeNode
from graphon.nodes.http_request.config import build_http_request_config
from graphon.nodes.http_request.node import HttpRequestNode, HttpRequestNodeDependencies
from graphon.nodes.human_input.human_input_node import HumanInputNode
from graphon.nodes.llm import LLMNode
from graphon.nodes.parameter_extractor.parameter_extractor_node import ParameterExtractorNode
from graphon.nodes.question_classifier import QuestionClassifierNode
from graphon.nodes.template_transform.template_transform_node import TemplateTransformNode
from graphon.nodes.tool.tool_node import ToolNode
from pydantic import ValidationError

from devhost.errors import FlowFileError
from devhost.flow.engine.models import NodeModel, PastMessages, PromptsAsSaved
from devhost.flow.engine.nodes import AgentNode, KnowledgeNode, LimitedTemplates, LocalCode, ToolRuntime
from devhost.flow.engine.turn import RunningTurn
from devhost.limits import HostLimits
from devhost.text import describe
from devhost.trace.flow import FlowNode

SAVER = {"llm_file_saver": _TextOnlyFileSaver()}
"""devhost's models answer with text only."""
NODES: Mapping[str, type[Node[Any]] | None] = {
    BuiltinNodeTypes.AGENT: AgentNode,
    BuiltinNodeTypes.KNOWLEDGE_RETRIEVAL: KnowledgeNode,
    BuiltinNodeTypes.HUMAN_INPUT: HumanInputNode,
    BuiltinNodeTypes.LLM: LLMNode,
    BuiltinNodeTypes.QUESTION_CLASSIFIER: QuestionClassifierNode,
    BuiltinNodeTypes.PARAMETER_EXTRACTOR: ParameterExtractorNode,
    BuiltinNodeTypes.TOOL: ToolNode,
    BuiltinNodeTypes.TEMPLATE_TRANSFORM: TemplateTransformNode,
    BuiltinNodeTypes.HTTP_REQUEST: HttpRequestNode,
    BuiltinNodeTypes.CODE: CodeNode,
    BuiltinNodeTypes.DOCUMENT_EXTRACTOR: None,
}
"""The classes of nodes that need parts from devhost, by type. The engine creates all other nodes.

None stands for a class that is imported only when a flow needs it, because its document readers take more than a second
to import.
"""


@dataclass
class FlowNodeFactory(SlimDslNodeFactory):
    """Creates the nodes of the turn `playing`."""

    playing: RunningTurn

    @override
    def validate_node(self, node_config: NodeConfigDict) -> NodeExecutionType:
        """Raises FlowFileError for data that the node does not accept.

        The engine's own check is skipped for the types in `NODES`, because it looks for plugins and credentials that
        devhost replaces.
        """
        kind = str(node_config["data"].type)
        try:
            if kind not in NODES:
                return super().validate_node(node_config)
            _class_of(kind).validate_node_data(node_config["data"])
        except ValidationError as error:
            raise self._refusal(node_config, describe(error)) from error
        except DslError as error:
            raise self._refusal(node_config, str(error)) from error
        return _class_of(kind).execution_type

    def _refusal(self, node_config: NodeConfigDict, words: str) -> FlowFileError:
        sentence = f"{self._node(node_config)}: {words}"
        return FlowFileError(f"{self.playing.file.path} cannot be played:\n  {sentence}")

    @override
    def create_node(self, node_config: NodeConfigDict) -> Node[Any]:
        """Creates a node. Raises FlowFileError if the node may not run here, even if the flow was not checked."""
        node = self._node(node_config)
        kind = str(node_config["data"].type)
        if (why := self.playing.around.allowed.why_not(node.type, node.data)) is not None:
            raise FlowFileError(f"{node} {why}")
        if kind not in NODES:
            return super().create_node(node_config)
        made: Any = _class_of(kind)
        data = made.validate_node_data(node_config["data"])
        parts = {"init_params": self.init_params, "runtime_state": self.runtime_state, **self._parts(kind, node, data)}
        created: Node[Any] = made(node.id, data, **parts)
        return created

    def _node(self, node_config: NodeConfigDict) -> FlowNode:
        return self.playing.file.nodes[str(node_config["id"])]

    def _parts(self, kind: str, node: FlowNode, data: Any) -> Mapping[str, object]:  # noqa: ANN401 - differs by kind
        """Returns the arguments that devhost passes to a node of this type."""
        playing = self.playing
        host = playing.around.host
        limits = HostLimits() if host is None else host.limits
        templates = LimitedTemplates(limits)
        match kind:
            case BuiltinNodeTypes.AGENT | BuiltinNodeTypes.KNOWLEDGE_RETRIEVAL:
                return {"playing": playing}
            case BuiltinNodeTypes.HUMAN_INPUT:
                return {"hitl_callback": playing.decide}
            case BuiltinNodeTypes.LLM:
                own = {"jinja2_template_renderer": templates, "default_query_selector": ("sys", "query")}
                return {**self._asking(node, data), **SAVER, **own}
            case BuiltinNodeTypes.QUESTION_CLASSIFIER:
                return {**self._asking(node, data), **SAVER, "template_renderer": templates}
            case BuiltinNodeTypes.PARAMETER_EXTRACTOR:
                return self._asking(node, data)
            case BuiltinNodeTypes.TEMPLATE_TRANSFORM:
                return {"jinja2_template_renderer": templates}
            case BuiltinNodeTypes.TOOL:
                return {"tool_file_manager": playing.files, "runtime": ToolRuntime(node, playing)}
            case BuiltinNodeTypes.HTTP_REQUEST:
                files = playing.files
                needed = HttpRequestNodeDependencies(
                    tool_file_manager_factory=lambda: files, file_manager=files, file_reference_factory=files
                )
                return {"http_request_config": build_http_request_config(), "dependencies": needed}
            case BuiltinNodeTypes.CODE:
                return {"code_executor": LocalCode(limits), "code_limits": _code_limits(self.credentials.code)}
        return {}

    def _asking(self, node: FlowNode, data: Any) -> Mapping[str, object]:  # noqa: ANN401 - differs by kind
        """Returns the arguments of a node that calls a model. As in Dify, only a chatflow has memory."""
        remembers = data.memory is not None and self.playing.file.is_chatflow
        return {
            "model_instance": NodeModel(node, data.model, self.playing),
            "memory": PastMessages(self.playing.turn.history) if remembers else None,
            "prompt_message_serializer": PromptsAsSaved(),
        }


def _class_of(kind: str) -> type[Node[Any]]:
    known = NODES[kind]
    if known is None:
        known = importlib.import_module("graphon.nodes.document_extractor").DocumentExtractorNode
    return known
