"""Schemas as a model is told them, in a form that no API refuses; values are checked against the tool's own schema.

The rules and their sources are in docs/model-facts.md, "Names and schemas that APIs refuse".
"""

import json
from collections.abc import Mapping
from typing import Any

from internal.node.schema import rewritten
from prompt import template


def offered_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a schema, and of each schema in it, in the form that a model is told."""
    offered: dict[str, Any] = rewritten(schema, _offered_part)
    return offered


def _offered_part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return _with_items(_with_options_described(part))


def _with_options_described(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Only texts stay in an ``enum``, and only where a text may stand; elsewhere the description says the values."""
    options = part.get("enum")
    if not isinstance(options, list):
        return part
    types = _types(part)
    if all(isinstance(option, str) for option in options) and (not types or "string" in types):
        return part
    values = ", ".join(json.dumps(option, ensure_ascii=False) for option in options)
    said = [str(part.get("description") or ""), template.OPTIONS_OF_PARAMETER.format(values=values)]
    others = {key: value for key, value in part.items() if key != "enum"}
    return {**others, "description": "\n".join(filter(None, said))}


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
