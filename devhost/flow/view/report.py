"""A turn of a flow as one JSON object, for programs."""

from collections.abc import Sequence
from dataclasses import asdict

from devhost.flow.events import FlowEnded, NodeEnded
from devhost.node.outputs.outputs import Finding
from devhost.node.outputs.report import report
from devhost.protocol.wire import JsonObject

USAGE = ("total_tokens", "total_price", "currency")
"""Of a node's metadata: what a model node or an agent cost."""


def flow_report(nodes: Sequence[NodeEnded], ended: FlowEnded, seconds: float) -> JsonObject:
    """`nodes` in the order in which they ended."""
    return {
        "status": ended.status,
        "outputs": ended.outputs,
        "error": ended.error or None,
        "conversation": dict(ended.conversation),
        "nodes": [node_report(node) for node in nodes],
        "findings": [asdict(finding) for finding in findings_of(nodes)],
        "elapsed_seconds": round(seconds, 3),
    }


def node_report(ended: NodeEnded) -> JsonObject:
    node = ended.node
    run = None if ended.run is None or ended.model is None else report(ended.run, ended.model)
    return {
        "id": node.id,
        "title": node.title,
        "type": node.type,
        "container": node.container,
        "status": ended.status,
        "elapsed_seconds": ended.seconds,
        "inputs": ended.inputs,
        "outputs": ended.outputs,
        "error": ended.error or None,
        "went_on": ended.went_on,
        "round": ended.round,
        "retries": list(ended.retries),
        "usage": {name: ended.metadata[name] for name in USAGE if name in ended.metadata},
        "metadata": ended.metadata,
        "process": ended.process,
        **({} if run is None else {"run": run}),
    }


def findings_of(nodes: Sequence[NodeEnded]) -> list[Finding]:
    """The rules of Dify that the flow's agents broke."""
    return [finding for node in nodes if node.run is not None for finding in node.run.findings]
