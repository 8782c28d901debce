"""Makes the nodes of a graph: graphon's own, and devhost's in the place of those that ask Dify's services."""

from dataclasses import dataclass
from typing import Any, ClassVar

from graphon.dsl.entities import DslCredentials
from graphon.entities.graph_config import NodeConfigDict
from graphon.enums import BuiltinNodeTypes, NodeExecutionType
from graphon.nodes.base.node import Node
from graphon.nodes.human_input.entities import HITLContext, HITLDecision
from graphon.nodes.human_input.human_input_node import HumanInputNode
from graphon.runtime.init_params import InitParams
from graphon.runtime.runtime_state import RuntimeState
from pydantic import ValidationError

from devhost.errors import FlowFileError
from devhost.flow.engine.model_nodes import MODEL_NODES
from devhost.flow.engine.nodes.agent_node import AgentNode
from devhost.flow.engine.nodes.knowledge_node import KnowledgeNode
from devhost.flow.engine.outside_nodes import OUTSIDE_NODES, OutsideNodeFactory
from devhost.flow.engine.turn.playing import Playing
from devhost.text.yaml_file import describe


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
