"""The schema that an MCP tool brings for a parameter of its own.

In: that schema. Out: the schema as it reads inside the tool's, and a check of values against it, or SchemaUnusable with
the reason. Checked over an empty registry, so no remote ``$ref`` is ever fetched; patterns are never run, since one
expression could block every session of the process.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry

from internal.schema.check import Check
from internal.schema.dialect import REFERENCES, without_patterns
from internal.text.fairness import give_way, in_turns

MAX_SCHEMAS = 4_096
"""Schemas that are kept ready; nodes with 600 tools have been seen."""
MAX_EXPANSION = 5_000
"""Nodes of a schema with every reference followed: doubling references could keep a processor busy for hours."""

_MAX_CHAIN_LENGTH = 50
"""References that may lead from one to the next; checking a value takes several of Python's frames for each."""
_NAMED_SCHEMAS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
_PLAIN_VALUES = frozenset({"enum", "const", "default", "examples"})
_FOR_THE_SAME_VALUE = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
"""Keywords whose schemas go no level deeper into the value."""


class SchemaUnusable(Exception):  # noqa: N818 - says what is the matter
    """The schema cannot be used; the text says why."""


def own_schema(own: Mapping[str, Any], name: str) -> tuple[dict[str, Any], Check]:
    """An MCP tool's own schema of a parameter: as the model sees it, and as values are checked against it."""
    named = own if isinstance(own.get("$schema", ""), str) else {key: own[key] for key in own if key != "$schema"}
    return _embed(named, name), check_of(named)


def check_of(schema: Mapping[str, Any]) -> Check:
    """The check of values against a schema.

    Raises:
        SchemaUnusable: it is no JSON Schema, refers to what is not in it or in a circle, or grows without measure.
    """
    if not isinstance(schema.get("$schema", ""), str):
        raise SchemaUnusable("its $schema must be a text")
    return _checked(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=MAX_SCHEMAS)
def _checked(canonical: str) -> Check:
    """The check of a schema, given as JSON; kept, since a node's tools are the same in every run."""
    give_way()  # It takes some 10 ms, and a node may have hundreds of tools.
    own = json.loads(canonical)
    kind = validator_for(own, default=Draft202012Validator)
    try:
        _check_schema(kind, own)
    except (SchemaError, RecursionError) as error:
        raise SchemaUnusable(f"not valid JSON Schema ({str(error).partition(chr(10))[0][:200]})") from None
    if _expanded_size(own, own, MAX_EXPANSION) <= 0:
        raise SchemaUnusable("too large once its references are followed")
    # A property of that name counts too, which costs less than telling names from keywords.
    pattern, names_by_pattern = '"pattern":' in canonical, '"patternProperties":' in canonical
    dialect = without_patterns(kind, pattern=pattern, names_by_pattern=names_by_pattern)
    return Check(own, dialect(own, registry=Registry()))


def _check_schema(kind: type[Validator], own: Mapping[str, Any]) -> None:
    """Hold a schema against its dialect, property by property: a thousand of them take a third of a second.

    Raises:
        SchemaError
    """
    properties = own.get("properties")
    if isinstance(properties, Mapping):
        for part in in_turns(properties.values()):
            kind.check_schema(part)
        own = {**own, "properties": {}}
    kind.check_schema(dict(own))


def _expanded_size(
    node: object,
    root: object,
    budget: int,
    path: frozenset[str] = frozenset(),
    here: frozenset[str] = frozenset(),
) -> int:
    """What is left of a budget of nodes when every reference is followed once; one into itself is followed no further.

    Of the references on the path, those in ``here`` speak of the same value as the node.

    Raises:
        SchemaUnusable: a reference leads nowhere, or back to itself for the same value, which no check would end for.
    """
    budget -= 1
    if budget <= 0 or not isinstance(node, Mapping):
        return budget
    for reference in _references_of(node):
        if reference in here:
            raise SchemaUnusable(f"the reference {reference[:100]!r} leads in a circle")
        if len(here) == _MAX_CHAIN_LENGTH:
            raise SchemaUnusable(f"more than {_MAX_CHAIN_LENGTH} references lead from one to the next")
        target = resolve(root, reference)
        if reference not in path:
            budget = _expanded_size(target, root, budget, path | {reference}, here | {reference})
    for keyword, item in _schemas_in(node):
        if keyword not in {"$defs", "definitions"}:
            budget = _expanded_size(item, root, budget, path, here if keyword in _FOR_THE_SAME_VALUE else frozenset())
    return budget


def _references_of(schema: Mapping[str, Any]) -> Iterator[str]:
    """A dialect that does not know one of the keywords lets anything stand there."""
    return (schema[keyword] for keyword in REFERENCES if isinstance(schema.get(keyword), str))


def rewritten(node: object, change: Callable[[Mapping[str, Any], str], Mapping[str, Any]], keyword: str = "") -> Any:  # noqa: ANN401 - JSON in, JSON out
    """A copy of a schema in which each schema is changed, the innermost first; ``change`` is told where it stands."""
    if isinstance(node, list):
        return [rewritten(item, change, keyword) for item in node]
    if not isinstance(node, Mapping):
        return node
    copy: dict[str, Any] = {}
    for key, value in node.items():
        if key in _PLAIN_VALUES:
            copy[key] = value
        elif key in _NAMED_SCHEMAS and isinstance(value, Mapping):
            copy[key] = {name: rewritten(item, change, key) for name, item in value.items()}
        else:
            copy[key] = rewritten(value, change, key)
    return change(copy, keyword)


def _schemas_in(schema: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The schemas right inside a schema, each with the keyword that it stands under."""
    for keyword, value in schema.items():
        if keyword in _PLAIN_VALUES:
            continue
        if keyword in _NAMED_SCHEMAS and isinstance(value, Mapping):
            items: Iterable[object] = value.values()
        else:
            items = value if isinstance(value, list) else [value]
        yield from ((keyword, item) for item in items)


def _embed(own: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The schema as it must read below ``properties/NAME``: its local references start there now."""
    escaped = name.replace("~", "~0").replace("/", "~1").replace("%", "%25")

    def moved(node: object) -> Any:  # noqa: ANN401 - JSON in, JSON out
        if isinstance(node, list):
            return [moved(item) for item in node]
        if not isinstance(node, Mapping):
            return node
        copy = {key: moved(value) for key, value in node.items() if key != "$schema"}
        for keyword in REFERENCES:
            if isinstance(reference := node.get(keyword), str):
                copy[keyword] = f"#/properties/{escaped}{reference[1:]}"
        return copy

    return dict(moved(own))


def resolve(schema: object, reference: str) -> object:
    """The schema that a pointer into this very schema means; other references would have to be fetched."""
    if not reference.startswith("#"):
        raise SchemaUnusable(f"the reference {reference[:100]!r} leads out of it")
    if reference != "#" and not reference.startswith("#/"):
        raise SchemaUnusable(
            f"the reference {reference[:100]!r} names an anchor; write where it leads, as '#/$defs/NAME'"
        )
    node = schema
    # Decoded before it is split: RFC 6901, section 6, and the check does the same.
    for part in unquote(reference).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        elif isinstance(node, list) and key in map(str, range(len(node))):
            node = node[int(key)]
        else:
            raise SchemaUnusable(f"the reference {reference[:100]!r} leads nowhere")
    if not isinstance(node, Mapping | bool):
        raise SchemaUnusable(f"the reference {reference[:100]!r} leads to what is no schema")
    return node
