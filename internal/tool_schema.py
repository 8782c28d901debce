"""One tool parameter as the model sees it and as its arguments are checked.

In: a parameter of Dify's tool dict. Out: ToolParameter with a valid JSON Schema, or ParameterUnusable with the reason.
An MCP parameter brings a schema of its own: it is checked over an empty registry, so no remote ``$ref`` is ever
fetched, and its patterns are never run, since one expression could block every session of the process.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry

from internal.wellformed import plain_json

_STRINGS = frozenset({"string", "secret-input", "text-input", "select", "dynamic-select", "date"})
_PLAIN_TYPES: Mapping[str, Mapping[str, Any]] = {
    **{kind: {"type": "string"} for kind in _STRINGS},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "checkbox": {"type": "boolean"},
    "object": {"type": "object"},
    "array": {"type": "array", "items": {}},
    "any": {},
    "date-range": {"type": "object", "properties": {"start": {"type": "string"}, "end": {"type": "string"}}},
}
_FILES = frozenset({"file", "files"})
_NAMED_SCHEMAS = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_PLAIN_VALUES = frozenset({"enum", "const", "default", "examples", "required"})


LARGEST_EXPANSION = 5_000
"""Nodes of a schema with every reference followed: doubling references could keep a processor busy for hours."""

type Check = Callable[[Any], Iterable[ValidationError]]


class ParameterUnusable(Exception):  # noqa: N818 - says what is the matter
    """This parameter cannot be offered to a model."""


@dataclass(frozen=True)
class ToolParameter:
    """A parameter that the model fills in."""

    name: str
    schema: Mapping[str, Any]
    """JSON Schema, as sent to the model."""
    required: bool = False
    default: object = None
    takes_files: bool = False
    """Its values are names of this turn's files."""
    check: Check | None = None
    """Yields what an MCP tool's own schema, which says more than types, holds against a value."""
    note: str = ""


def read_parameter(raw: Mapping[str, Any], *, file_names: Sequence[str] = ()) -> ToolParameter:
    """Read a parameter of form ``llm``.

    Raises:
        ParameterUnusable: with the reason, for the log.
    """
    raw = {str(key): plain_json(value) for key, value in raw.items()}
    if raw.get("form") != "llm":
        raise ParameterUnusable(f"it has the unknown form {raw.get('form')!r}")
    name, kind = raw.get("name"), str(raw.get("type") or "string")
    if not isinstance(name, str) or not name:
        raise ParameterUnusable("it has no name")
    options = tuple(_read_options(raw.get("options")))
    default = raw.get("default")
    default = None if default == "" else default
    note = ""
    check = None
    if kind in _FILES:
        if not file_names:
            raise ParameterUnusable("it takes a file, and this turn has none")
        schema = _file_schema(kind, file_names)
    elif kind not in _PLAIN_TYPES:
        raise ParameterUnusable(f"a model cannot fill in the type {kind!r}")
    else:
        schema = _plain_schema(kind, raw, options)
        own = raw.get("input_schema")
        if isinstance(own, Mapping) and own:
            try:
                schema, check = _own_schema(own, name)
            except _BrokenSchema as broken:
                note = f"its own schema is not used: {broken}"
    description = raw.get("llm_description")
    if isinstance(description, str) and description and not schema.get("description"):
        schema = {**schema, "description": description}
    return ToolParameter(
        name=name,
        schema=schema,
        # With a default there is nothing to ask the model for.
        required=bool(raw.get("required")) and default is None,
        default=default if raw.get("required") else None,
        takes_files=kind in _FILES,
        check=check,
        note=note,
    )


def _own_schema(own: Mapping[str, Any], name: str) -> tuple[dict[str, Any], Check]:
    """An MCP tool's own schema of a parameter: as the model sees it, and as values are checked against it."""
    named = own if isinstance(own.get("$schema", ""), str) else {key: own[key] for key in own if key != "$schema"}
    checked = _checked(json.dumps(named, sort_keys=True))
    return _embed(named, name), checked.iter_errors


def _read_options(raw: object) -> Iterator[str]:
    for option in raw if isinstance(raw, list) else ():
        value = option.get("value") if isinstance(option, Mapping) else option
        if value is not None:
            yield str(value)


def _plain_schema(kind: str, raw: Mapping[str, Any], options: Sequence[str]) -> dict[str, Any]:
    schema = dict(_PLAIN_TYPES[kind])
    if kind == "select" and options:
        schema["enum"] = list(options)
        if raw.get("multiple"):
            schema = {"type": "array", "items": schema}
    if kind == "number":
        bounds = {"minimum": raw.get("min"), "maximum": raw.get("max")}
        schema |= {
            word: bound
            for word, bound in bounds.items()
            if isinstance(bound, int | float) and not isinstance(bound, bool)
        }
    return schema


def _file_schema(kind: str, file_names: Sequence[str]) -> dict[str, Any]:
    one = {"type": "string", "enum": list(file_names)}
    return one if kind == "file" else {"type": "array", "items": one}


class _BrokenSchema(Exception):  # noqa: N818 - as above
    pass


@lru_cache(maxsize=512)
def _checked(canonical: str) -> Validator:
    """The validator of a schema, given as JSON; kept, since a node's tools are the same in every run.

    Raises:
        _BrokenSchema: it is no JSON Schema, refers to what is not in it, or grows without measure.
    """
    own = json.loads(canonical)
    kind = validator_for(own, default=Draft202012Validator)
    try:
        kind.check_schema(own)
    except (SchemaError, RecursionError) as error:
        raise _BrokenSchema(f"not valid JSON Schema ({str(error).partition(chr(10))[0][:200]})") from None
    if _expanded_size(own, own, LARGEST_EXPANSION) <= 0:
        raise _BrokenSchema("too large once its references are followed")
    return kind(_without_patterns(own), registry=Registry())


def _expanded_size(node: object, root: object, budget: int, path: frozenset[str] = frozenset()) -> int:
    """What is left of a budget of nodes when every reference is followed once; one into itself is followed no further.

    Raises:
        _BrokenSchema: a reference leads nowhere.
    """
    budget -= 1
    if budget <= 0:
        return budget
    if isinstance(node, Mapping):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference not in path:
            budget = _expanded_size(_resolve(root, reference), root, budget, path | {reference})
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


def _resolve(schema: object, reference: str) -> object:
    """What a pointer into this very schema means; other references would have to be fetched."""
    if reference != "#" and not reference.startswith("#/"):
        raise _BrokenSchema(f"the reference {reference[:100]!r} leads out of it")
    node = schema
    for part in reference[2:].split("/") if len(reference) > 1 else ():
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or key not in node:
            raise _BrokenSchema(f"the reference {reference[:100]!r} leads nowhere")
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
