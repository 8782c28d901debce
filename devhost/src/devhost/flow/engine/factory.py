"""Makes the nodes of a graph: graphon's own, with devhost's models, tools and templates in them."""

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from graphon.dsl.entities import DslCodeSettings, DslCredentials
from graphon.dsl.node_factory import SlimDslNodeFactory, _code_limits
from graphon.entities.graph_config import NodeConfigDict
from graphon.enums import BuiltinNodeTypes, NodeExecutionType
from graphon.nodes.base.node import Node
from graphon.nodes.code.code_node import CodeNode
from graphon.nodes.http_request.config import build_http_request_config
from graphon.nodes.http_request.node import HttpRequestNode, HttpRequestNodeDependencies
from graphon.nodes.human_input.entities import HITLContext, HITLDecision
from graphon.nodes.human_input.human_input_node import HumanInputNode
from graphon.nodes.llm import LLMNode
from graphon.nodes.llm.entities import ModelConfig
from graphon.nodes.parameter_extractor.parameter_extractor_node import ParameterExtractorNode
from graphon.nodes.question_classifier import QuestionClassifierNode
from graphon.nodes.template_transform.template_transform_node import TemplateTransformNode
from graphon.nodes.tool.tool_node import ToolNode
from graphon.prompt_entities import MemoryConfig
from graphon.runtime.init_params import InitParams
from graphon.runtime.runtime_state import RuntimeState
from pydantic import ValidationError

from devhost.errors import FlowFileError
from devhost.flow.engine.models import History, NodeModel, NoFiles, PromptsAsSaved
from devhost.flow.engine.nodes import AgentNode, KnowledgeNode, LocalCode, SandboxedTemplates, ToolRuntime
from devhost.flow.engine.turn import Playing
from devhost.limits import HostLimits
from devhost.text import describe

if TYPE_CHECKING:
    from graphon.nodes.document_extractor import DocumentExtractorNode


@dataclass
class ModelNodeFactory(SlimDslNodeFactory):
    """Its methods take a request of graphon's private class."""

    playing: Playing

    def _create_llm_node(self, request: Any) -> LLMNode:  # noqa: ANN401
        data = LLMNode.validate_node_data(request.data)
        return LLMNode(
            request.node_id,
            data,
            init_params=self.init_params,
            runtime_state=self.runtime_state,
            model_instance=self._model_of(request, data.model),
            memory=self._memory_of(data.memory),
            llm_file_saver=NoFiles(),
            prompt_message_serializer=PromptsAsSaved(),
            jinja2_template_renderer=SandboxedTemplates(),
            default_query_selector=("sys", "query"),
        )

    def _create_question_classifier_node(self, request: Any) -> QuestionClassifierNode:  # noqa: ANN401
        data = QuestionClassifierNode.validate_node_data(request.data)
        return QuestionClassifierNode(
            request.node_id,
            data,
            init_params=self.init_params,
            runtime_state=self.runtime_state,
            model_instance=self._model_of(request, data.model),
            memory=self._memory_of(data.memory),
            llm_file_saver=NoFiles(),
            prompt_message_serializer=PromptsAsSaved(),
            template_renderer=SandboxedTemplates(),
        )

    def _create_parameter_extractor_node(self, request: Any) -> ParameterExtractorNode:  # noqa: ANN401
        data = ParameterExtractorNode.validate_node_data(request.data)
        return ParameterExtractorNode(
            request.node_id,
            data,
            init_params=self.init_params,
            runtime_state=self.runtime_state,
            model_instance=self._model_of(request, data.model),
            memory=self._memory_of(data.memory),
            prompt_message_serializer=PromptsAsSaved(),
        )

    def _create_template_transform_node(self, request: Any) -> TemplateTransformNode:  # noqa: ANN401
        return TemplateTransformNode(
            request.node_id,
            TemplateTransformNode.validate_node_data(request.data),
            init_params=self.init_params,
            runtime_state=self.runtime_state,
            jinja2_template_renderer=SandboxedTemplates(),
        )

    def _model_of(self, request: Any, config: ModelConfig) -> NodeModel:  # noqa: ANN401
        return NodeModel(self.playing.file.nodes[request.node_id], config, self.playing)

    def _memory_of(self, config: MemoryConfig | None) -> History | None:
        """Dify has memory only where there is a conversation."""
        return None if config is None or not self.playing.file.is_chatflow else History(self.playing.turn.history)

    NODE_BUILDERS: ClassVar[Any] = {
        **SlimDslNodeFactory.NODE_BUILDERS,
        BuiltinNodeTypes.LLM: _create_llm_node,
        BuiltinNodeTypes.QUESTION_CLASSIFIER: _create_question_classifier_node,
        BuiltinNodeTypes.PARAMETER_EXTRACTOR: _create_parameter_extractor_node,
        BuiltinNodeTypes.TEMPLATE_TRANSFORM: _create_template_transform_node,
    }


MODEL_NODES: dict[str, type[Node[Any]]] = {
    BuiltinNodeTypes.LLM: LLMNode,
    BuiltinNodeTypes.QUESTION_CLASSIFIER: QuestionClassifierNode,
    BuiltinNodeTypes.PARAMETER_EXTRACTOR: ParameterExtractorNode,
}
"""Those whose model the engine would look for among installed plugins."""


# Makes the nodes that reach outside of the engine: tools, files, HTTP and code.


@dataclass
class OutsideNodeFactory(ModelNodeFactory):
    """Its methods take a request of graphon's private class."""

    def validate_node(self, node_config: NodeConfigDict) -> NodeExecutionType:
        if str(node_config["data"].type) != BuiltinNodeTypes.DOCUMENT_EXTRACTOR:
            return super().validate_node(node_config)
        extractor = _extractor()
        extractor.validate_node_data(node_config["data"])
        return extractor.execution_type

    def _create_tool_node(self, request: Any) -> ToolNode:  # noqa: ANN401
        return ToolNode(
            request.node_id,
            ToolNode.validate_node_data(request.data),
            init_params=self.init_params,
            runtime_state=self.runtime_state,
            tool_file_manager=self.playing.files,
            runtime=ToolRuntime(self.playing.file.nodes[request.node_id], self.playing),
        )

    def _create_document_extractor_node(self, request: Any) -> Node[Any]:  # noqa: ANN401
        extractor = _extractor()
        return extractor(
            request.node_id,
            extractor.validate_node_data(request.data),
            init_params=self.init_params,
            runtime_state=self.runtime_state,
        )

    def _create_http_request_node(self, request: Any) -> HttpRequestNode:  # noqa: ANN401
        self._refuse_if_not_allowed(request.node_id)
        files = self.playing.files
        return HttpRequestNode(
            request.node_id,
            HttpRequestNode.validate_node_data(request.data),
            init_params=self.init_params,
            runtime_state=self.runtime_state,
            http_request_config=build_http_request_config(),
            dependencies=HttpRequestNodeDependencies(
                tool_file_manager_factory=lambda: files, file_manager=files, file_reference_factory=files
            ),
        )

    def _create_code_node(self, request: Any) -> CodeNode:  # noqa: ANN401
        self._refuse_if_not_allowed(request.node_id)
        host = self.playing.around.host
        return CodeNode(
            request.node_id,
            CodeNode.validate_node_data(request.data),
            init_params=self.init_params,
            runtime_state=self.runtime_state,
            code_executor=LocalCode(HostLimits() if host is None else host.limits),
            code_limits=_code_limits(DslCodeSettings()),
        )

    def _refuse_if_not_allowed(self, node_id: str) -> None:
        """Also for a caller that does not check the flow before."""
        node = self.playing.file.nodes[node_id]
        if (why := self.playing.around.allowed.why_not(node.type, node.data)) is not None:
            raise FlowFileError(f"{node} {why}")

    NODE_BUILDERS: ClassVar[Any] = {
        **ModelNodeFactory.NODE_BUILDERS,
        BuiltinNodeTypes.TOOL: _create_tool_node,
        BuiltinNodeTypes.DOCUMENT_EXTRACTOR: _create_document_extractor_node,
        BuiltinNodeTypes.HTTP_REQUEST: _create_http_request_node,
        BuiltinNodeTypes.CODE: _create_code_node,
    }


OUTSIDE_NODES: dict[str, type[Node[Any]]] = {
    BuiltinNodeTypes.TOOL: ToolNode,
}


def _extractor() -> "type[DocumentExtractorNode]":
    """Only for a flow that has one: its readers of documents take more than a second to import."""
    return importlib.import_module("graphon.nodes.document_extractor").DocumentExtractorNode  # type: ignore[no-any-return]


# Makes the nodes of a graph: graphon's own, and devhost's in the place of those that ask Dify's services.


@dataclass
class FlowNodeFactory(OutsideNodeFactory):
    @classmethod
    def of(cls, playing: Playing, init_params: InitParams, state: RuntimeState) -> "FlowNodeFactory":
        return cls(init_params.graph_config, init_params, state, DslCredentials(), [], playing)

    def validate_node(self, node_config: NodeConfigDict) -> NodeExecutionType:
        """FlowFileError for data that the node does not take."""
        try:
            return self._validated(node_config)
        except ValidationError as error:
            file = self.playing.file
            node = file.nodes[str(node_config["id"])]
            raise FlowFileError(f"{file.path} cannot be played:\n  {node}: {describe(error)}") from error

    def _validated(self, node_config: NodeConfigDict) -> NodeExecutionType:
        """The engine looks for the plugins and credentials of the nodes that devhost replaces: devhost has its own."""
        kind = str(node_config["data"].type)
        if kind not in OWN_NODES:
            return super().validate_node(node_config)
        node_class = OWN_NODES[kind]
        node_class.validate_node_data(node_config["data"])
        return node_class.execution_type

    def _create_agent_node(self, request: Any) -> AgentNode:  # noqa: ANN401 - graphon's private class
        return AgentNode(
            request.node_id,
            AgentNode.validate_node_data(request.data),
            init_params=self.init_params,
            runtime_state=self.runtime_state,
            playing=self.playing,
        )

    def _create_human_input_node(self, request: Any) -> HumanInputNode:  # noqa: ANN401 - graphon's private class
        playing = self.playing

        def decide(context: HITLContext) -> HITLDecision:
            with playing.mistakes.watched():
                return playing.forms.decide(context)

        return HumanInputNode(
            request.node_id,
            HumanInputNode.validate_node_data(request.data),
            init_params=self.init_params,
            runtime_state=self.runtime_state,
            hitl_callback=decide,
        )

    def _create_knowledge_node(self, request: Any) -> KnowledgeNode:  # noqa: ANN401 - graphon's private class
        return KnowledgeNode(
            request.node_id,
            KnowledgeNode.validate_node_data(request.data),
            init_params=self.init_params,
            runtime_state=self.runtime_state,
            playing=self.playing,
        )

    NODE_BUILDERS: ClassVar[Any] = {
        **OutsideNodeFactory.NODE_BUILDERS,
        BuiltinNodeTypes.AGENT: _create_agent_node,
        BuiltinNodeTypes.HUMAN_INPUT: _create_human_input_node,
        BuiltinNodeTypes.KNOWLEDGE_RETRIEVAL: _create_knowledge_node,
    }


OWN_NODES: dict[str, type[Node[Any]]] = {
    BuiltinNodeTypes.AGENT: AgentNode,
    BuiltinNodeTypes.HUMAN_INPUT: HumanInputNode,
    BuiltinNodeTypes.KNOWLEDGE_RETRIEVAL: KnowledgeNode,
    **MODEL_NODES,
    **OUTSIDE_NODES,
}
"""The nodes that devhost makes, by type."""
