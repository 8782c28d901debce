"""Casts parameter values as Dify casts them before it sends them to a plugin."""

import contextlib
import json
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import TypeGuard

from devhost.errors import NodeParameterError, about
from devhost.plugin.declaration import Parameter
from devhost.protocol.wire import JsonObject
from devhost.text import SWITCHES

FILE_IDENTITY = "__dify__file__"
PLUGIN_FILE = ("dify_model_identity", "mime_type", "filename", "extension", "size", "type", "url")
"""The keys of a file that a plugin receives (`File.to_plugin_parameter`)."""


def is_file(value: object) -> TypeGuard[JsonObject]:
    """Returns whether the value is a file in its serialized form."""
    return isinstance(value, dict) and value.get("dify_model_identity") == FILE_IDENTITY


def cast_parameters(declared: Iterable[Parameter], values: Mapping[str, object]) -> JsonObject:
    cast: JsonObject = {}
    for parameter in declared:
        with about(f"param.{parameter.name}"):
            cast[parameter.name] = cast_parameter(parameter, values.get(parameter.name))
    return cast


def cast_parameter(parameter: Parameter, value: object) -> object:
    """Casts the value of a parameter. An empty value becomes the default, except 0, False and an empty list of tools.

    Up to Dify 1.16.1 the empty list of tools became the default, too (docs/host-facts.md, "After 1.16.1").
    """
    chooses_no_tool = parameter.type == "array[tools]" and value == []
    if not value and value != 0 and not chooses_no_tool:
        value = parameter.default
        if not value and parameter.required:
            words = f"tool parameter {parameter.name} not found in tool config"
            raise NodeParameterError(words, parameter.name, "is empty: it needs a value")
    if parameter.type == "select" and value is not None:
        options = [option.value for option in parameter.options]
        if parameter.multiple and isinstance(value, list):
            chosen = value
        else:
            chosen = [value]
        if any(one not in options for one in chosen):
            raise NodeParameterError(f"tool parameter {parameter.name} value {value} not in options {options}")
    return cast_value(parameter, value)


# Values of a tool's parameters. `tool-values.jsonl` has recordings from Dify's own code.


def cast_given(declared: Iterable[Parameter], values: Mapping[str, object]) -> JsonObject:
    """Casts values as Dify does when a tool is called. Undeclared values are not changed, and none are added."""
    known = {parameter.name: parameter for parameter in declared}
    return {name: _cast_for_tool(known[name], value) if name in known else value for name, value in values.items()}


def cast_for_call(declared: Iterable[Parameter], values: Mapping[str, object], *, by_plugin: bool) -> JsonObject:
    if by_plugin:
        return cast_called_back(declared, values)
    return cast_given(declared, values)


def cast_called_back(declared: Iterable[Parameter], values: Mapping[str, object]) -> JsonObject:
    """Casts values as Dify does when a plugin calls the tool.

    Parameters that the panel sets and the plugin does not give get their initial value.
    """
    declared = list(declared)
    of_panel = {each.name: initial_value(each, values.get(each.name)) for each in declared if each.form == "form"}
    return cast_given(declared, {**values, **of_panel})


def initial_value(parameter: Parameter, value: object) -> object:
    """Returns a value of the panel for a node without `tool_node_version` or for a call by a plugin."""
    if parameter.multiple:
        return _several(parameter, value)
    return cast_parameter(parameter, value)


def _cast_for_tool(parameter: Parameter, value: object) -> object:
    if parameter.multiple:
        return _several(parameter, value)
    return cast_value(parameter, value)


def _several(parameter: Parameter, value: object) -> object:
    listed = value
    if value is None:
        listed = parameter.default or []
    name = parameter.name
    if not isinstance(listed, list):
        raise NodeParameterError(f"tool parameter {name} must be a list when multiple is true")
    if not all(isinstance(one, str) for one in listed):
        raise NodeParameterError(f"tool parameter {name} must contain only strings")
    if parameter.required and not listed:
        raise NodeParameterError(f"tool parameter {name} not found in tool config", name, "is empty: it needs a value")
    options = [option.value for option in parameter.options]
    if parameter.type == "select" and any(one not in options for one in listed):
        raise NodeParameterError(f"tool parameter {name} value {listed} not in options {options}")
    return listed


def cast_value(parameter: Parameter, value: object) -> object:
    """Casts a value to the parameter's type. Defaults and options are handled before."""
    if parameter.multiple and parameter.type in {"select", "dynamic-select"}:
        if isinstance(value, list):
            given = value
        elif value is None or value == "":
            given = []
        else:
            given = [value]
        return [str(one) for one in given]
    try:
        return _cast(parameter.type, value)
    except ValueError as error:
        mistake = ""
        if parameter.type == "number":
            mistake = f"must be a number, got {reprlib.repr(value)}"
        raise NodeParameterError(str(error), parameter.name, mistake) from error


def doubts(declared: Iterable[Parameter], values: Mapping[str, object]) -> Iterator[str]:
    """Yields warnings about values that the widgets of Dify's panel do not allow but that Dify nevertheless casts.

    No warning quotes a value, because it may be a secret.
    """
    for parameter in declared:
        value = values.get(parameter.name)
        number = None
        if parameter.type == "boolean" and value and isinstance(value, str) and value.lower() not in SWITCHES:
            yield f"{parameter.name} is neither true nor false: Dify sends true"
        if parameter.type == "number":
            with contextlib.suppress(ValueError):  # the node refuses such a value
                number = _number(value)
        if number is not None and parameter.min is not None and number < parameter.min:
            yield f"{parameter.name} is less than {parameter.min}, its minimum in Dify's panel"
        if number is not None and parameter.max is not None and number > parameter.max:
            yield f"{parameter.name} is more than {parameter.max}, its maximum in Dify's panel"


def _cast(kind: str, value: object) -> object:  # noqa: C901, PLR0912 - one case per type, each a line or two
    match kind:
        case "boolean":
            return bool(SWITCHES.get(value.lower(), value) if isinstance(value, str) else value)
        case "number":
            return _number(value)
        case "files" | "system-files":
            if isinstance(value, list):
                return value
            return [value]
        case "array":
            return _read(value, list, [value])
        case "date" if value is None or value == "":
            return ""
        case "date":
            return _date(value, "date")
        case "date-range":
            return _dates(value)
        case "file" if isinstance(value, list):
            if len(value) != 1:
                raise ValueError("This parameter only accepts one file but got multiple files while invoking.")
            return value[0]
        case "model-selector" | "app-selector" if not isinstance(value, dict):
            raise ValueError("The selector must be a dictionary.")
        case "array[tools]" if value and not isinstance(value, list):
            raise ValueError("The tools selector must be a list.")
        # In Dify a single file is a File object, which the rule does not allow. In devhost a file is a dictionary.
        case "any" if value and (is_file(value) or not isinstance(value, str | dict | list | int | float)):
            raise ValueError("The var selector must be a string, dictionary, list or number.")
        case "file" | "model-selector" | "app-selector" | "array[tools]" | "any":
            return value
        case "object":
            return _read(value, dict, {})
        case _:  # string, secret-input, select and all others
            if value is None:
                return ""
            return str(value)


def _number(value: object) -> int | float | None:
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and value:
        if "." in value:
            return float(value)
        return int(value)
    return None


def _read(value: object, kind: type, otherwise: object) -> object:
    """Returns the value if it has this type, or the parsed value of a JSON text; else `otherwise`."""
    if isinstance(value, kind):
        return value
    with contextlib.suppress(ValueError):
        if isinstance(value, str) and isinstance(read := json.loads(value), kind):
            return read
    return otherwise


def _date(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"The {name} parameter must be a string in YYYY-MM-DD format.")  # noqa: TRY004 - the value is wrong
    try:
        day = date.fromisoformat(value)
    except ValueError:
        raise ValueError(f"The {name} parameter must be a valid date in YYYY-MM-DD format.") from None
    if day.isoformat() != value:
        raise ValueError(f"The {name} parameter must use YYYY-MM-DD format.")
    return value


def _dates(value: object) -> dict[str, str]:
    """Returns the start and the end of a date range, or only one of them."""
    match value:
        case None | "":
            return {}
        case dict():
            ends = {end: _date(value[end], f"date-range {end}") for end in ("start", "end") if value.get(end)}
            if len(ends) == 2 and ends["start"] > ends["end"]:  # noqa: PLR2004 - both
                raise ValueError("The date-range start date must not be after the end date.")
            return ends
        case str() if isinstance(read := _read(value, dict, None), dict):
            return _dates(read)
        case str() if not value.strip():
            return {}
        case str():
            return {"start": _date(value.strip(), "date-range start")}
        case _:
            raise ValueError("The date-range parameter must be a JSON object, JSON string, or empty.")
