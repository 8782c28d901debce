"""What came of a turn of a flow. In: its nodes and its end. Out: an `Outcome`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from devhost.evaluation.checks.observed import Call, Observed
from devhost.flow.events import FlowEnded, NodeEnded
from devhost.protocol.wire import JsonObject


@dataclass(frozen=True)
class NodeOutcome:
    """Of a node's last run."""

    status: str
    error: str
    outputs: JsonObject
    calls: tuple[Call, ...]
    """Of all its runs."""


@dataclass(frozen=True)
class Outcome:
    status: str
    error: str
    outputs: JsonObject
    conversation: Mapping[str, object]
    nodes: Mapping[str, NodeOutcome]
    """Those that ran, by id."""

    @classmethod
    def of(cls, nodes: Iterable[NodeEnded], ended: FlowEnded) -> Self:
        """`nodes`: in the order in which they ended."""
        outcomes: dict[str, NodeOutcome] = {}
        for node in nodes:
            before = outcomes.get(node.node.id)
            calls = () if before is None else before.calls
            outcomes[node.node.id] = NodeOutcome(node.status, node.error, node.outputs, (*calls, *_calls(node)))
        return cls(ended.status, ended.error, ended.outputs, ended.conversation, outcomes)


def _calls(ended: NodeEnded) -> tuple[Call, ...]:
    return () if ended.run is None else Observed.of([ended.run]).calls
