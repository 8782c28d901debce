"""The schema that an MCP tool brings for a parameter of its own.

In: that schema. Out: the schema as it reads inside the tool's, and a check of values against it, or SchemaUnusable with
the reason. Checked over an empty registry, so no remote ``$ref`` is ever fetched; patterns are never run, since one
expression could block every session of the process.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry

LARGEST_EXPANSION = 5_000
"""Nodes of a schema with every reference followed: doubling references could keep a processor busy for hours."""

type Check = Callable[[Any], Iterable[ValidationError]]

_NAMED_SCHEMAS = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_PLAIN_VALUES = frozenset({"enum", "const", "default", "examples", "required"})


class SchemaUnusable(Exception):  # noqa: N818 - says what is the matter
    """The schema cannot be used; the text says why."""


def own_schema(own: Mapping[str, Any], name: str) -> tuple[dict[str, Any], Check]:
    """An MCP tool's own schema of a parameter: as the model sees it, and as values are checked against it."""
    named = own if isinstance(own.get("$schema", ""), str) else {key: own[key] for key in own if key != "$schema"}
    return _embed(named, name), check_of(named)


def check_of(schema: Mapping[str, Any]) -> Check:
    """The check of values against a schema.

    Raises:
        SchemaUnusable: it is no JSON Schema, refers to what is not in it, or grows without measure.
    """
    return _checked(json.dumps(schema, sort_keys=True)).iter_errors


@lru_cache(maxsize=512)
def _checked(canonical: str) -> Validator:
    """The validator of a schema, given as JSON; kept, since a node's tools are the same in every run."""
    own = json.loads(canonical)
    kind = validator_for(own, default=Draft202012Validator)
    try:
        kind.check_schema(own)
    except (SchemaError, RecursionError) as error:
        raise SchemaUnusable(f"not valid JSON Schema ({str(error).partition(chr(10))[0][:200]})") from None
    if _expanded_size(own, own, LARGEST_EXPANSION) <= 0:
        raise SchemaUnusable("too large once its references are followed")
    return kind(_without_patterns(own), registry=Registry())


def _expanded_size(node: object, root: object, budget: int, path: frozenset[str] = frozenset()) -> int:
    """What is left of a budget of nodes when every reference is followed once; one into itself is followed no further.

    Raises:
        SchemaUnusable: a reference leads nowhere.
    """
    budget -= 1
    if budget <= 0:
        return budget
    if isinstance(node, Mapping):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference not in path:
            budget = _expanded_size(resolve(root, reference), root, budget, path | {reference})
        for key, item in node.items():
            if key not in {"$defs", "definitions"}:
                budget = _expanded_size(item, root, budget, path)
    elif isinstance(node, list):
        for item in node:
            budget = _expanded_size(item, root, budget, path)
    return budget


def _embed(own: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The schema as it must read below ``properties/NAME``: its local references start there now."""
    escaped = name.replace("~", "~0").replace("/", "~1")

    def moved(node: object) -> Any:  # noqa: ANN401 - JSON in, JSON out
        if isinstance(node, list):
            return [moved(item) for item in node]
        if not isinstance(node, Mapping):
            return node
        copy = {key: moved(value) for key, value in node.items() if key != "$schema"}
        if isinstance(node.get("$ref"), str):
            copy["$ref"] = f"#/properties/{escaped}{node['$ref'][1:]}"
        return copy

    return dict(moved(own))


def resolve(schema: object, reference: str) -> object:
    """What a pointer into this very schema means; other references would have to be fetched."""
    if reference != "#" and not reference.startswith("#/"):
        raise SchemaUnusable(f"the reference {reference[:100]!r} leads out of it")
    node = schema
    for part in reference[2:].split("/") if len(reference) > 1 else ():
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or key not in node:
            raise SchemaUnusable(f"the reference {reference[:100]!r} leads nowhere")
        node = node[key]
    return node


def _without_patterns(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that no regular expression is run for; ``additionalProperties`` runs those of its sibling too."""
    left_out = {"pattern", "patternProperties"}
    if "patternProperties" in schema:
        left_out |= {"additionalProperties", "unevaluatedProperties"}
    return {key: _plain_node(key, value) for key, value in schema.items() if key not in left_out}


def _plain_node(key: str, value: object) -> object:
    if key in _PLAIN_VALUES:
        return value
    if isinstance(value, Mapping):
        if key in _NAMED_SCHEMAS:
            return {name: _plain_node("", item) for name, item in value.items()}
        return _without_patterns(value)
    if isinstance(value, list):
        return [_plain_node("", item) for item in value]
    return value
