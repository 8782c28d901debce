"""References within one JSON Schema, and copies of a schema with each part changed.

References out of the schema are refused, so that nothing is ever fetched.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
PLAIN_VALUES = frozenset({"enum", "const", "default", "examples", "dependentRequired"})
"""Keywords under which no schema stands."""
_NAMED_SCHEMAS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)


class SchemaUnusable(Exception):  # noqa: N818 - says what is the matter
    """The schema cannot be used; the text says why."""


def references_of(schema: Mapping[str, Any]) -> Iterator[str]:
    """The references in a schema; a dialect that does not know one of the keywords lets anything stand there."""
    return (schema[keyword] for keyword in REFERENCES if isinstance(schema.get(keyword), str))


def resolve(schema: object, reference: str) -> object:
    """The schema that a pointer into this very schema means; other references would have to be fetched.

    Raises:
        SchemaUnusable
    """
    shown = repr(reference[:100])
    if not reference.startswith("#"):
        raise SchemaUnusable(f"the reference {shown} leads out of it")
    if reference != "#" and not reference.startswith("#/"):
        raise SchemaUnusable(f"the reference {shown} names an anchor; write a pointer, as '#/$defs/NAME'")
    node = schema
    for key in _keys(reference):
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        elif isinstance(node, list) and key in map(str, range(len(node))):
            node = node[int(key)]
        else:
            raise SchemaUnusable(f"the reference {shown} leads nowhere")
    if not isinstance(node, Mapping | bool):
        raise SchemaUnusable(f"the reference {shown} does not point to a schema")
    return node


def canonical(reference: str) -> str:
    """The reference as the library names the part of the schema."""
    return below("#", *_keys(reference))


def below(pointer: str, *keys: str | int) -> str:
    """The pointer to a part of the schema at a pointer."""
    return "/".join([pointer, *(str(key).replace("~", "~0").replace("/", "~1") for key in keys)])


def _keys(reference: str) -> Iterator[str]:
    # Decoded before it is split: RFC 6901, section 6, and the library does the same.
    return (part.replace("~1", "/").replace("~0", "~") for part in unquote(reference).split("/")[1:])


def schemas_in(schema: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The schemas right inside a schema, each with the keyword that it stands under."""
    for keyword, value in schema.items():
        if keyword in PLAIN_VALUES:
            continue
        if keyword in _NAMED_SCHEMAS and isinstance(value, Mapping):
            items: Iterable[object] = value.values()
        else:
            items = value if isinstance(value, list) else [value]
        yield from ((keyword, item) for item in items)


def rewritten(node: object, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Any:  # noqa: ANN401 - JSON
    """A copy of a schema in which each schema is changed, the innermost first."""
    if isinstance(node, list):
        return [rewritten(item, change) for item in node]
    if not isinstance(node, Mapping):
        return node
    copy: dict[str, Any] = {}
    for key, value in node.items():
        if key in PLAIN_VALUES:
            copy[key] = value
        elif key in _NAMED_SCHEMAS and isinstance(value, Mapping):
            copy[key] = {name: rewritten(item, change) for name, item in value.items()}
        else:
            copy[key] = rewritten(value, change)
    return change(copy)


def embedded(own: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The schema as it must read below ``properties/NAME``: its local references start there now."""
    escaped = quote(name.replace("~", "~0").replace("/", "~1"), safe="~")

    def moved(part: Mapping[str, Any]) -> Mapping[str, Any]:
        copy = {key: value for key, value in part.items() if key != "$schema"}
        for keyword in REFERENCES:
            if isinstance(reference := part.get(keyword), str):
                copy[keyword] = f"#/properties/{escaped}{reference[1:]}"
        return copy

    return dict(rewritten(own, moved))
