"""One tool parameter as the model sees it and as its arguments are checked.

In: a parameter of Dify's tool dict. Out: ToolParameter with a valid JSON Schema, or ParameterUnusable with the reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from internal.node.secrets import SECRET_TYPE
from internal.schema.check import Check, check_of
from internal.schema.references import SchemaUnusable, embedded
from internal.schema.repair import repaired
from internal.text.fairness import in_turns
from internal.text.notes import Quoting, Sentence

_STRINGS = frozenset({"string", SECRET_TYPE, "text-input", "select", "dynamic-select", "date"})
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


class ParameterUnusable(Exception):  # noqa: N818 - says what is the matter
    """This parameter cannot be offered to a model; the reason quotes nothing."""


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
    is_number: bool = False
    """Dify reads its values from text too, exactly."""
    is_secret: bool = False
    """What the model gives it stays out of log, text and variables."""
    own_check: Check | None = None
    """Of an MCP tool's own schema, which says more than types."""
    notes: tuple[Sentence, ...] = ()

    @cached_property
    def check(self) -> Check:
        return self.own_check or check_of(self.schema)


def read_parameter(raw: Mapping[str, Any], *, file_names: Sequence[str] = ()) -> ToolParameter:
    """Read a parameter of form ``llm``.

    Raises:
        ParameterUnusable: with the reason, for the log.
    """
    name, kind = raw["name"], raw["type"]
    default = raw.get("default")
    default = None if default == "" else default
    notes: list[Sentence] = []
    check = None
    if kind in _FILES:
        if not file_names:
            raise ParameterUnusable("it takes a file, and this turn has none")
        schema = _file_schema(kind, file_names)
    elif kind not in _PLAIN_TYPES:
        raise ParameterUnusable(f"a model cannot fill in the type {kind!r}")
    else:
        schema = _plain_schema(kind, raw)
        if own := raw.get("input_schema"):
            try:
                usable = repaired(own, notes.append)
                schema, check = embedded(usable, name), check_of(usable)
            except SchemaUnusable as broken:
                notes.append(Quoting(f"its own schema is not used: {broken}"))
    description = raw.get("llm_description")
    if description and not schema.get("description"):
        schema = {**schema, "description": description}
    return ToolParameter(
        name=name,
        schema=schema,
        # With a default there is nothing to ask the model for.
        required=bool(raw.get("required")) and default is None,
        default=default if raw.get("required") else None,
        takes_files=kind in _FILES,
        is_number=kind == "number",
        is_secret=kind == SECRET_TYPE,
        own_check=check,
        notes=tuple(dict.fromkeys(notes)),
    )


def _plain_schema(kind: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    schema = dict(_PLAIN_TYPES[kind])
    if kind == "select" and raw.get("options"):
        schema["enum"] = [option["value"] for option in in_turns(raw["options"])]
        if raw.get("multiple"):
            schema = {"type": "array", "items": schema}
    if kind == "number":
        bounds = {"minimum": raw.get("min"), "maximum": raw.get("max")}
        schema |= {word: bound for word, bound in bounds.items() if bound is not None}
    return schema


def _file_schema(kind: str, file_names: Sequence[str]) -> dict[str, Any]:
    one = {"type": "string", "enum": list(file_names)}
    return one if kind == "file" else {"type": "array", "items": one}
