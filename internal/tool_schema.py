"""One tool parameter as the model sees it and as its arguments are checked.

In: a parameter of Dify's tool dict. Out: ToolParameter with a valid JSON Schema, or ParameterUnusable with the reason.
An MCP parameter brings a schema of its own: it is checked over an empty registry, so no remote ``$ref`` is ever
fetched, and its patterns are never run, since one expression could block every session of the process.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry

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
    options: tuple[str, ...] = ()
    takes_files: bool = False
    """Its values are names of this turn's files."""
    check: Callable[[Any], Iterable[ValidationError]] | None = None
    """Yields what an MCP tool's own schema, which says more than types, holds against a value."""
    note: str = ""


def read_parameter(raw: Mapping[str, Any], *, file_names: Sequence[str] = ()) -> ToolParameter:
    """Read a parameter of form ``llm``.

    Raises:
        ParameterUnusable: with the reason, for the log.
    """
    name, kind = raw.get("name"), str(raw.get("type") or "string")
    if not isinstance(name, str) or not name:
        raise ParameterUnusable("it has no name")
    options = tuple(_read_options(raw.get("options")))
    default = raw.get("default")
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
                schema, check = _embed(own, name), _validator(own).iter_errors
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
        options=options if kind == "select" else (),
        takes_files=kind in _FILES,
        check=check,
        note=note,
    )


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


def _validator(own: Mapping[str, Any]) -> Validator:
    schema = _without_patterns(own)
    kind = validator_for(schema, default=Draft202012Validator)
    return kind(schema, registry=Registry())


def _embed(own: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The schema as it must read below ``properties/NAME``: its local references start there now."""
    schema = _without_patterns(own)
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise _BrokenSchema(f"not valid JSON Schema ({error.message[:200]})") from None
    escaped = name.replace("~", "~0").replace("/", "~1")

    def moved(node: object) -> object:
        if isinstance(node, list):
            return [moved(item) for item in node]
        if not isinstance(node, Mapping):
            return node
        copy = {key: moved(value) for key, value in node.items()}
        reference = node.get("$ref")
        if isinstance(reference, str):
            if not _resolves(own, reference):
                raise _BrokenSchema(f"the reference {reference[:100]!r} leads nowhere")
            copy["$ref"] = f"#/properties/{escaped}{reference[1:]}"
        return copy

    return {key: moved(value) for key, value in own.items() if key != "$schema"}


def _resolves(schema: object, reference: str) -> bool:
    """Whether a reference is a pointer into this very schema; others would have to be fetched."""
    if reference != "#" and not reference.startswith("#/"):
        return False
    node = schema
    for part in reference[2:].split("/") if len(reference) > 1 else ():
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or key not in node:
            return False
        node = node[key]
    return True


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
