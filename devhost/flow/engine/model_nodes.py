"""Makes the engine's own nodes that ask a model or render a template, with devhost's models and templates in them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from graphon.dsl.node_factory import SlimDslNodeFactory
from graphon.enums import BuiltinNodeTypes
from graphon.nodes.base.node import Node
from graphon.nodes.llm import LLMNode
from graphon.nodes.llm.entities import ModelConfig
from graphon.nodes.parameter_extractor.parameter_extractor_node import ParameterExtractorNode
from graphon.nodes.question_classifier import QuestionClassifierNode
from graphon.nodes.template_transform.template_transform_node import TemplateTransformNode
from graphon.prompt_entities import MemoryConfig

from devhost.flow.engine.models.memory import History
from devhost.flow.engine.models.node_model import NodeModel
from devhost.flow.engine.models.ports import NoFiles, PromptsAsSaved
from devhost.flow.engine.nodes.templates import SandboxedTemplates
from devhost.flow.engine.turn.playing import Playing


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
