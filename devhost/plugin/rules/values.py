"""Rules for defaults, options and output schemas, which strategies and tools share.

In: the value, after its type was checked. Out: the same value, or pydantic's error.
"""

from typing import Any, LiteralString

import jsonschema_rs
from pydantic import StrictBool, StrictFloat, StrictInt, StrictStr, ValidationInfo
from pydantic_core import PydanticCustomError

from devhost.plugin.rules.fields import Checked, I18n, Text

type Basic = StrictStr | StrictBool | StrictInt | StrictFloat
RESERVED = frozenset({"text", "files", "json"})
"""Outputs of every node: Dify fails a node whose plugin sends a variable of such a name."""


class Option(Checked):
    value: Text
    label: I18n


def fitting(default: Basic | None, checked: ValidationInfo) -> Basic | None:
    """One with which Dify builds the parameter; type and options of the parameter are checked before."""
    kind, options = checked.data.get("type"), checked.data.get("options")
    if default is None or default == "" or checked.data.get("multiple"):
        return default
    if kind == "select" and options is not None:
        values = [option.value for option in options]
        if default not in values:
            context = {"default": repr(default), "values": ", ".join(values) or "none"}
            raise PydanticCustomError("default_fits", "{default} is not among the options: {values}", context)
    if kind == "number" and isinstance(default, str) and not _reads_as_number(default):
        raise PydanticCustomError("default_fits", "{default} is not a number", {"default": repr(default)})
    return default


def _reads_as_number(text: str) -> bool:
    """As in Dify's cast: 1e3 without a dot is not one."""
    try:
        float(text) if "." in text else int(text)
    except ValueError:
        return False
    return True


def json_schema(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    """Of a tool: the daemon refuses another."""
    return _schema(schema, "json_schema")


def node_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Of a strategy: the daemon takes any object, and Dify lists its properties as the node's variables."""
    _schema(schema, "node_schema")
    properties = schema.get("properties")
    if taken := sorted(RESERVED & set(properties if isinstance(properties, dict) else ())):
        context = {"taken": ", ".join(taken)}
        raise PydanticCustomError("node_schema", "Dify uses these names itself, and fails the node: {taken}", context)
    return schema


def _schema[T: dict[str, Any] | None](schema: T, rule: LiteralString) -> T:
    try:
        jsonschema_rs.validator_for({} if schema is None else schema)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise PydanticCustomError(rule, "not a JSON Schema: {why}", {"why": str(error)[:200]}) from None
    return schema
