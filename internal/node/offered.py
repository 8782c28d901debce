"""Schemas as a model is told them, in a form that no API refuses; values are checked against the tool's own schema.

The rules and their sources are in docs/model-facts.md, "Names and schemas that APIs refuse".
"""

from collections.abc import Mapping
from typing import Any

from internal.node.schema import rewritten


def offered_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a schema, and of each schema in it, in the form that a model is told."""
    offered: dict[str, Any] = rewritten(schema, _with_items)
    return offered


def _with_items(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """An array says what its items are, if only that they may be anything."""
    if "array" not in _types(part) or "items" in part:
        return part
    return {**part, "items": {}}


def _types(part: Mapping[str, Any]) -> list[str]:
    """The types that a schema names."""
    named = part.get("type", [])
    if isinstance(named, str):
        return [named]
    return [each for each in named if isinstance(each, str)]
