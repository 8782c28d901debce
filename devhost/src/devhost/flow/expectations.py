"""What a flow's script expects of a turn, in the words of `devhost.evaluation`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from devhost.evaluation.checks import CallsExpected, Check, Checked, TextExpected, Texts, text_checks
from devhost.text import json_value
from devhost.trace.flow import FlowStatus, NodeStatus

# The expectations of a turn as pydantic checks them.


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


# A value in JSON, and what is expected of it.

LONGEST = 600
"""Characters of a value in a sentence."""


@dataclass(frozen=True)
class Missing:
    there_are: tuple[str, ...]

    def __str__(self) -> str:
        return f"nothing; there are: {', '.join(self.there_are) or 'none'}"


def found_at(values: Mapping[str, object], path: str) -> object:
    """The value at a path such as `plan.0`; else `Missing`, with the names at the place where the path ends."""
    found: object = values
    for name in path.split("."):
        inside = _parts(found)
        if name not in inside:
            return Missing(tuple(inside))
        found = inside[name]
    return found


def value_checks(name: str, expected: ValueExpected, value: object) -> Iterator[Check]:
    text = value if isinstance(value, str) else _written(value)
    if expected.compares:
        same = _same(expected.equals, value)
        yield Check(f"{name} equals", _written(expected.equals), "" if same else _short(_written(value)))
    for check in text_checks(name, expected, text):
        yield replace(check, found=_short(check.found))


def _parts(value: object) -> Mapping[str, object]:
    match value:
        case dict():
            return {str(key): inside for key, inside in value.items()}
        case list() | tuple():
            return {str(number): inside for number, inside in enumerate(value)}
        case _:
            return {}


def _same(expected: object, value: object) -> bool:
    """The line break at the end of a text in YAML does not count; true is not 1."""
    if isinstance(expected, str) and isinstance(value, str):
        return expected.strip() == value.strip()
    return _written(expected) == _written(value)


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
