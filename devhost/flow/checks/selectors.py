"""The variables that a node refers to, found in its data: in templates, and where a selector stands."""

import re
from collections.abc import Iterator, Mapping

from devhost.flow.document import FlowNode

type Selector = tuple[str, ...]

_IN_A_TEXT = re.compile(r"\{\{#([a-zA-Z0-9_]{1,50}(?:\.[a-zA-Z_][a-zA-Z0-9_]{0,29}){1,10})#\}\}")
_SELECTOR_KEYS = frozenset({"query", "variable", "iterator_selector", "output_selector"})
"""Keys that hold a selector if they hold a list; so does every key that ends so."""
_ENDING = "selector"
_SOURCES = ("type", "input_type", "value_type")
"""Keys that say with "variable" that the value beside them is a selector."""


def selectors_of(node: FlowNode) -> frozenset[Selector]:
    return frozenset(_found(_read(node)))


def _read(node: FlowNode) -> Mapping[str, object]:
    """Of a Variable Assigner that clears a variable, the value is not read."""
    items = node.data.get("items")
    if node.type != "assigner" or not isinstance(items, list):
        return node.data
    return {**node.data, "items": [_without_unread(item) for item in items if isinstance(item, dict)]}


def _without_unread(item: Mapping[str, object]) -> Mapping[str, object]:
    if item.get("operation") != "clear":
        return item
    return {key: value for key, value in item.items() if key != "value"}


def _found(value: object, key: str = "") -> Iterator[Selector]:
    match value:
        case str():
            yield from (tuple(name.split(".")) for name in _IN_A_TEXT.findall(value))
        case dict():
            if any(value.get(source) == "variable" for source in _SOURCES):
                yield from _selector(value.get("value"))
            for name, inner in value.items():
                yield from _found(inner, str(name))
        case list() if key.endswith(_ENDING) or key in _SELECTOR_KEYS:
            yield from _selector(value)
        case list():
            for inner in value:
                if key == "variables" and isinstance(inner, list):  # of a Variable Aggregator
                    yield from _selector(inner)
                yield from _found(inner)


def _selector(value: object) -> Iterator[Selector]:
    if isinstance(value, list) and len(value) > 1 and all(isinstance(part, str) for part in value):
        yield tuple(value)
