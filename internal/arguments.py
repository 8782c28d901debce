"""A tool call's arguments checked against what the model was told of the tool.

In: a JSON object. Out: the values to call the tool with, coerced by type where nothing is lost by it, or
ArgumentsInvalid, whose text is what the model reads.
"""

import contextlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from referencing.exceptions import Unresolvable

from internal.mcp_schema import Check
from internal.tool_schema import ToolParameter
from internal.toolbox import ArgumentForm, Tool, Toolbox
from internal.tooling import json_type, refuse_constant, refuse_unwritable
from internal.wellformed import LARGEST_EXACT

_LONGEST_QUOTE = 200
_VALIDATION_ERROR = "tool arguments validation error: "


class ArgumentsInvalid(Exception):  # noqa: N818 - its text is what the model reads
    """The arguments do not fit the tool."""


class _Unchecked(Exception):  # noqa: N818 - says what happened
    """The schema leads nowhere or in a circle, or the engine cannot count that far."""


def validate_arguments(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Check arguments against the tool's schema, coercing by type.

    Returns:
        The arguments to send, without the developer's fixed values.

    Raises:
        ArgumentsInvalid: naming every argument that does not fit and what would.
    """
    if tool.form is not None:
        return _validate_form(tool.form, arguments)
    problems = [
        f"unknown argument {_cut(repr(name))}; valid arguments are: {', '.join(tool.parameters) or 'none'}"
        for name in arguments
        if name not in tool.parameters
    ]
    valid: dict[str, Any] = {}
    for name, parameter in tool.parameters.items():
        given = arguments.get(name)
        if given is not None:
            valid[name] = coerce(given, parameter.schema)
            problems += _problems(parameter, valid[name])
        elif parameter.required and name in arguments and _takes_null(parameter):
            valid[name] = None
        elif parameter.required:
            problems.append(f"missing required argument {name!r}")
        elif parameter.default is not None:
            valid[name] = parameter.default
    if problems:
        raise ArgumentsInvalid(_VALIDATION_ERROR + "; ".join(problems))
    return valid


def _validate_form(form: ArgumentForm, arguments: Mapping[str, Any]) -> dict[str, Any]:
    value = coerce(dict(arguments), form.schema)
    try:
        problems = list(_schema_problems(form.check, value, ""))
    except _Unchecked:
        problems = ["they could not be checked against the schema"]
    if problems or not isinstance(value, dict):
        raise ArgumentsInvalid(_VALIDATION_ERROR + "; ".join(problems))
    return value


def _problems(parameter: ToolParameter, value: object) -> Iterator[str]:
    expected = parameter.schema.get("type")
    if isinstance(expected, str) and not _is_of_type(value, expected):
        yield f"parameter {parameter.name!r} must be {_article(expected)}, got {json_type(value)}"
        return
    items = parameter.schema.get("items")
    options = parameter.schema.get("enum") or (items.get("enum") if isinstance(items, Mapping) else None)
    if parameter.check is None and options:
        for item in value if isinstance(value, list) else [value]:
            if item not in options:
                quoted = _cut(repr(item))
                yield f"parameter {parameter.name!r} value {quoted} not in options {list(options)!r}"
    yield from _bound_problems(parameter, value)
    if parameter.check is not None:
        # A tool's schema that leads nowhere checks nothing: the tool itself is still there to refuse.
        with contextlib.suppress(_Unchecked):
            yield from _schema_problems(parameter.check, value, parameter.name)


def _takes_null(parameter: ToolParameter) -> bool:
    """Whether null is a value of its own; elsewhere models write it for what they leave out."""
    if parameter.check is None:
        return False
    with contextlib.suppress(_Unchecked):
        return not list(_schema_problems(parameter.check, None, parameter.name))
    return False


def _bound_problems(parameter: ToolParameter, value: object) -> Iterator[str]:
    if parameter.check is not None or isinstance(value, bool) or not isinstance(value, int | float):
        return
    least, most = parameter.schema.get("minimum"), parameter.schema.get("maximum")
    if least is not None and value < least:
        yield f"parameter {parameter.name!r} value {value} is below the minimum {least}"
    if most is not None and value > most:
        yield f"parameter {parameter.name!r} value {value} is above the maximum {most}"


def _schema_problems(check: Check, value: object, name: str) -> Iterator[str]:
    try:
        errors = list(check(value))
    except (Unresolvable, RecursionError, ArithmeticError, AttributeError, TypeError):
        # The last two where a reference leads to what only looks like a schema.
        raise _Unchecked from None
    for error in errors[:3]:
        where = name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
        yield f"parameter {where.removeprefix('.') or '(all)'!r}: {_cut(error.message)}"


def coerce(value: object, schema: object) -> object:
    """Give a value the type its schema asks for where nothing is lost by it; anything else comes back as it is."""
    if not isinstance(schema, Mapping):
        return value
    expected = _expected_type(schema)
    if isinstance(value, str) and expected in {"number", "integer", "boolean", "array", "object"}:
        parsed = _parse_text(value.strip(), expected)
        value = value if parsed is None else parsed
    elif expected == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        value = json.dumps(value)
    elif expected == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, dict) and isinstance(properties := schema.get("properties"), Mapping):
        return {key: coerce(item, properties.get(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [coerce(item, schema.get("items")) for item in value]
    return value


def _expected_type(schema: Mapping[str, Any]) -> str | None:
    """The one type besides null that the schema asks for, None when it leaves a choice."""
    named = schema.get("type")
    kinds = [kind for kind in (named if isinstance(named, list) else [named]) if kind != "null"]
    return kinds[0] if len(kinds) == 1 and isinstance(kinds[0], str) else None


def _parse_text(text: str, expected: str) -> object:
    """What a text such as "7", "true" or "[1]" says, when that is of the expected type; else None."""
    lowered = text.lower()
    if expected == "boolean":
        return {"true": True, "false": False}.get(lowered)
    try:
        value = json.loads(text, parse_constant=refuse_constant)
        refuse_unwritable(value)
    except (ValueError, RecursionError):
        return None
    if expected == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value if _is_of_type(value, expected) else None


def _is_of_type(value: object, expected: str) -> bool:
    if isinstance(value, bool):
        return expected == "boolean"
    if isinstance(value, float) and not math.isfinite(value):
        return False
    if expected == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    kinds: Mapping[str, type | tuple[type, ...]] = {
        "string": str,
        "number": (int, float),
        "boolean": bool,
        "array": list,
        "object": dict,
        "null": type(None),
    }
    return isinstance(value, kinds.get(expected, object))


def _article(expected: str) -> str:
    return f"{'an' if expected[0] in 'aeiou' else 'a'} {expected}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"


def call_parameters(tool: Tool, arguments: Mapping[str, Any], toolbox: Toolbox) -> dict[str, Any]:
    """What a call sends: valid arguments with file names exchanged for the files, and the developer's values on top."""
    parameters = {name: _as_sent(tool.parameters[name], value, toolbox) for name, value in arguments.items()}
    return {**parameters, **tool.fixed}


def _as_sent(parameter: ToolParameter, value: object, toolbox: Toolbox) -> object:
    if parameter.takes_files:
        return _files_for(value, toolbox)
    # As a number it would be rounded on its way; Dify casts the text of a number parameter back.
    return str(value) if parameter.is_number and _is_rounded(value) else value


def rounded_arguments(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Names of the arguments within which the host rounds an integer."""
    return [name for name, value in arguments.items() if not tool.parameters[name].is_number and _is_rounded(value)]


def _is_rounded(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_is_rounded, value.values()))
    if isinstance(value, list):
        return any(map(_is_rounded, value))
    return isinstance(value, int) and abs(value) > LARGEST_EXACT


def _files_for(value: object, toolbox: Toolbox) -> object:
    if isinstance(value, list):
        return [_files_for(item, toolbox) for item in value]
    return toolbox.files[str(value)].model_dump(mode="json")
