"""Dify's Knowledge Retrieval node on the engine, with given segments in the place of a knowledge base.

In: the query that the node selects, and the segments that are given for the node. Out: `result`, as Dify's node gives
it. Which segments fit the query is not asked: they are those that a test wants to be found.
"""

from typing import override

from graphon.entities.base_node_data import BaseNodeData
from graphon.enums import BuiltinNodeTypes, NodeType, WorkflowNodeExecutionStatus
from graphon.node_events.base import NodeRunResult
from graphon.nodes.base.node import Node
from graphon.runtime.init_params import InitParams
from graphon.runtime.runtime_state import RuntimeState
from graphon.variables.segments import StringSegment
from pydantic import Field

from devhost.flow.engine.turn.playing import Playing
from devhost.flow.knowledge import retrieved


class KnowledgeNodeData(BaseNodeData):
    type: NodeType = BuiltinNodeTypes.KNOWLEDGE_RETRIEVAL
    query_variable_selector: list[str] = Field(default_factory=list)


class KnowledgeNode(Node[KnowledgeNodeData]):
    node_type = BuiltinNodeTypes.KNOWLEDGE_RETRIEVAL

    @override
    def __init__(
        self,
        node_id: str,
        data: KnowledgeNodeData,
        *,
        init_params: InitParams,
        runtime_state: RuntimeState,
        playing: Playing,
    ) -> None:
        super().__init__(node_id=node_id, data=data, init_params=init_params, runtime_state=runtime_state)
        self._playing = playing

    @classmethod
    @override
    def version(cls) -> str:
        return "1"

    @override
    def _run(self) -> NodeRunResult:
        query = self.runtime_state.variable_pool.get(self.node_data.query_variable_selector)
        if not isinstance(query, StringSegment):
            return _failed("Query variable is not string type.")
        if not query.value:
            return _failed("Query is required.")
        with self._playing.mistakes.watched():
            found = retrieved(self._playing.around.knowledge, self._playing.file.nodes[self.id])
        return NodeRunResult(
            status=WorkflowNodeExecutionStatus.SUCCEEDED,
            inputs={"query": query.value},
            outputs={"result": found},
        )


def _failed(words: str) -> NodeRunResult:
    """The words are Dify's; they were not compared with a running one."""
    return NodeRunResult(status=WorkflowNodeExecutionStatus.FAILED, error=words, error_type="ValueError")
