"""Makes the nodes that reach outside of the engine: tools, files, HTTP and code."""

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from graphon.dsl.entities import DslCodeSettings
from graphon.dsl.node_factory import _code_limits
from graphon.entities.graph_config import NodeConfigDict
from graphon.enums import BuiltinNodeTypes, NodeExecutionType
from graphon.nodes.base.node import Node
from graphon.nodes.code.code_node import CodeNode
from graphon.nodes.http_request.config import build_http_request_config
from graphon.nodes.http_request.node import HttpRequestNode, HttpRequestNodeDependencies
from graphon.nodes.tool.tool_node import ToolNode

from devhost.errors import FlowFileError
from devhost.flow.engine.model_nodes import ModelNodeFactory
from devhost.flow.engine.nodes.local_code import LocalCode
from devhost.flow.engine.nodes.tool_runtime import ToolRuntime
from devhost.limits import HostLimits

if TYPE_CHECKING:
    from graphon.nodes.document_extractor import DocumentExtractorNode


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
