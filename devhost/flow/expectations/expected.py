"""The expectations of a turn as pydantic checks them. In: plain data. Out: a frozen `FlowExpected`."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from devhost.evaluation.checks.expected import CallsExpected, Checked, TextExpected, Texts
from devhost.text.json_value import json_value
from devhost.trace.flow.lines import FlowStatus, NodeStatus


class ValueExpected(TextExpected):
    """What is expected of a text; of another value `equals` compares the value, the rest its JSON."""

    equals: Annotated[Any, BeforeValidator(json_value)] = None

    @property
    def compares(self) -> bool:
        """Whether `equals` is given: null is a value, too."""
        return "equals" in self.model_fields_set


def _value(value: object) -> object:
    """A value alone must be equal."""
    return value if isinstance(value, dict) else {"equals": value}


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


type _NodeStatuses = Annotated[tuple[NodeStatus, ...], BeforeValidator(_listed)]
type _FlowStatuses = Annotated[tuple[FlowStatus, ...], BeforeValidator(_listed)]
type _Value = Annotated[ValueExpected, BeforeValidator(_value)]
type _Values = Mapping[str, _Value]


class NodeExpected(Checked):
    """Of several runs of the node in one turn, the last; the calls are those of all its runs."""

    status: _NodeStatuses = ()
    """Any of these."""
    error: _Value | None = None
    outputs: _Values = Field(default_factory=dict)
    """By name; `plan.0` and `structured_output.topic` name what is inside one."""
    calls: CallsExpected | None = None
    """The tool calls of an Agent node."""


class FlowExpected(Checked):
    status: _FlowStatuses = ("succeeded", "partial-succeeded")
    """Any of these."""
    error: _Value | None = None
    answer: _Value | None = None
    """Of a chatflow."""
    outputs: _Values = Field(default_factory=dict)
    """Of the flow: what its End node lists."""
    conversation: _Values = Field(default_factory=dict)
    """The conversation variables after the turn."""
    ran: Texts = ()
    """Nodes, by id or title."""
    not_run: Texts = ()
    nodes: Mapping[str, NodeExpected] = Field(default_factory=dict)
    """By id or title; a node that is expected something of must have run."""

    def named(self) -> Iterator[tuple[str, str]]:
        """The nodes, each with the key that names it."""
        for key, names in (("ran", self.ran), ("not_run", self.not_run), ("nodes", self.nodes)):
            yield from ((key, name) for name in names)
