"""JSON Schemas that say the same in other words, made equal."""

from collections.abc import Mapping
from typing import Any


def plain_schema(schema: Mapping[str, Any]) -> object:
    """Without titles and descriptions, and with what `$ref` points to in its place."""
    return _plain({key: value for key, value in schema.items() if key != "$defs"}, schema.get("$defs", {}))


def _plain(value: object, definitions: Mapping[str, Any]) -> object:
    if isinstance(value, list):
        return [_plain(each, definitions) for each in value]
    if not isinstance(value, Mapping):
        return value
    if "$ref" in value:
        return _plain(definitions[value["$ref"].rpartition("/")[2]], definitions)
    # A property may be named title; only a text is a title.
    return {
        key: _plain(each, definitions)
        for key, each in value.items()
        if not (key in {"title", "description"} and isinstance(each, str))
    }
