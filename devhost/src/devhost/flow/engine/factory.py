"""Makes the nodes of a graph: graphon's own with devhost's models and tools, and devhost's for Dify's services."""

import importlib
from dataclasses import dataclass
from typing import Any, ClassVar

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
from graphon.nodes.parameter_extractor.parameter_extractor_node import ParameterExtractorNode
from graphon.nodes.question_classifier import QuestionClassifierNode
from graphon.nodes.template_transform.template_transform_node import TemplateTransformNode
from graphon.nodes.tool.tool_node import ToolNode
from graphon.runtime.init_params import InitParams
from graphon.runtime.runtime_state import RuntimeState
from pydantic import ValidationError

from devhost.errors import FlowFileError
from devhost.flow.engine.models import History, NodeModel, NoFiles, PromptsAsSaved
from devhost.flow.engine.nodes import AgentNode, KnowledgeNode, LocalCode, SandboxedTemplates, ToolRuntime
from devhost.flow.engine.turn import Playing
from devhost.limits import HostLimits
from devhost.text import describe


@dataclass
class FlowNodeFactory(SlimDslNodeFactory):
    """Its methods take a request of graphon's private class."""

    playing: Playing

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
        if kind not in OWN_NODES and kind != BuiltinNodeTypes.DOCUMENT_EXTRACTOR:
            return super().validate_node(node_config)
        node_class = OWN_NODES[kind] if kind in OWN_NODES else _extractor()
        node_class.validate_node_data(node_config["data"])
        return node_class.execution_type

    def _made(self, kind: Any, request: Any, **parts: object) -> Any:  # noqa: ANN401
        data = kind.validate_node_data(request.data)
        given = {"init_params": self.init_params, "runtime_state": self.runtime_state, **parts}
        return kind(request.node_id, data, **given)

    def _asking(self, kind: Any, request: Any, **parts: object) -> Any:  # noqa: ANN401
        """A node that asks a model. Dify has memory only where there is a conversation."""
        data, playing = kind.validate_node_data(request.data), self.playing
        remembers = data.memory is not None and playing.file.is_chatflow
        return self._made(
            kind,
            request,
            model_instance=NodeModel(playing.file.nodes[request.node_id], data.model, playing),
            memory=History(playing.turn.history) if remembers else None,
            prompt_message_serializer=PromptsAsSaved(),
            **parts,
        )

    def _create_llm_node(self, request: Any) -> Any:  # noqa: ANN401
        templates, query = SandboxedTemplates(), ("sys", "query")
        parts = {"llm_file_saver": NoFiles(), "jinja2_template_renderer": templates, "default_query_selector": query}
        return self._asking(LLMNode, request, **parts)

    def _create_question_classifier_node(self, request: Any) -> Any:  # noqa: ANN401
        return self._asking(
            QuestionClassifierNode, request, llm_file_saver=NoFiles(), template_renderer=SandboxedTemplates()
        )

    def _create_parameter_extractor_node(self, request: Any) -> Any:  # noqa: ANN401
        return self._asking(ParameterExtractorNode, request)

    def _create_template_transform_node(self, request: Any) -> Any:  # noqa: ANN401
        return self._made(TemplateTransformNode, request, jinja2_template_renderer=SandboxedTemplates())

    def _create_tool_node(self, request: Any) -> Any:  # noqa: ANN401
        runtime = ToolRuntime(self.playing.file.nodes[request.node_id], self.playing)
        return self._made(ToolNode, request, tool_file_manager=self.playing.files, runtime=runtime)

    def _create_document_extractor_node(self, request: Any) -> Any:  # noqa: ANN401
        return self._made(_extractor(), request)

    def _create_http_request_node(self, request: Any) -> Any:  # noqa: ANN401
        self._refuse_if_not_allowed(request.node_id)
        files = self.playing.files
        needed = HttpRequestNodeDependencies(
            tool_file_manager_factory=lambda: files, file_manager=files, file_reference_factory=files
        )
        return self._made(
            HttpRequestNode, request, http_request_config=build_http_request_config(), dependencies=needed
        )

    def _create_code_node(self, request: Any) -> Any:  # noqa: ANN401
        self._refuse_if_not_allowed(request.node_id)
        host = self.playing.around.host
        executor = LocalCode(HostLimits() if host is None else host.limits)
        return self._made(CodeNode, request, code_executor=executor, code_limits=_code_limits(DslCodeSettings()))

    def _refuse_if_not_allowed(self, node_id: str) -> None:
        """Also for a caller that does not check the flow before."""
        node = self.playing.file.nodes[node_id]
        if (why := self.playing.around.allowed.why_not(node.type, node.data)) is not None:
            raise FlowFileError(f"{node} {why}")

    def _create_agent_node(self, request: Any) -> Any:  # noqa: ANN401
        return self._made(AgentNode, request, playing=self.playing)

    def _create_human_input_node(self, request: Any) -> Any:  # noqa: ANN401
        playing = self.playing

        def decide(context: HITLContext) -> HITLDecision:
            with playing.mistakes.watched():
                return playing.forms.decide(context)

        return self._made(HumanInputNode, request, hitl_callback=decide)

    def _create_knowledge_node(self, request: Any) -> Any:  # noqa: ANN401
        return self._made(KnowledgeNode, request, playing=self.playing)

    NODE_BUILDERS: ClassVar[Any] = {
        **SlimDslNodeFactory.NODE_BUILDERS,
        BuiltinNodeTypes.LLM: _create_llm_node,
        BuiltinNodeTypes.QUESTION_CLASSIFIER: _create_question_classifier_node,
        BuiltinNodeTypes.PARAMETER_EXTRACTOR: _create_parameter_extractor_node,
        BuiltinNodeTypes.TEMPLATE_TRANSFORM: _create_template_transform_node,
        BuiltinNodeTypes.TOOL: _create_tool_node,
        BuiltinNodeTypes.DOCUMENT_EXTRACTOR: _create_document_extractor_node,
        BuiltinNodeTypes.HTTP_REQUEST: _create_http_request_node,
        BuiltinNodeTypes.CODE: _create_code_node,
        BuiltinNodeTypes.AGENT: _create_agent_node,
        BuiltinNodeTypes.HUMAN_INPUT: _create_human_input_node,
        BuiltinNodeTypes.KNOWLEDGE_RETRIEVAL: _create_knowledge_node,
    }


OWN_NODES: dict[str, type[Node[Any]]] = {
    BuiltinNodeTypes.AGENT: AgentNode,
    BuiltinNodeTypes.HUMAN_INPUT: HumanInputNode,
    BuiltinNodeTypes.KNOWLEDGE_RETRIEVAL: KnowledgeNode,
    BuiltinNodeTypes.LLM: LLMNode,
    BuiltinNodeTypes.QUESTION_CLASSIFIER: QuestionClassifierNode,
    BuiltinNodeTypes.PARAMETER_EXTRACTOR: ParameterExtractorNode,
    BuiltinNodeTypes.TOOL: ToolNode,
}
"""Those whose model, plugin or service the engine would look for elsewhere, by type."""


def _extractor() -> Any:  # noqa: ANN401
    """Only for a flow that has one: its readers of documents take more than a second to import."""
    return importlib.import_module("graphon.nodes.document_extractor").DocumentExtractorNode
