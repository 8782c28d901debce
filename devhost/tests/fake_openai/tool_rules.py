"""What both APIs demand of function tools and of their calls."""

import json
import re
from collections.abc import Mapping

from jsonschema_rs import ValidationError, meta

from fake_openai.refusals import Refusal

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_MAX_NAME_LENGTH = 64


def check_tool(name: str, schema: Mapping[str, object] | None, place: str) -> None:
    check_name(name, f"{place}.name")
    if schema is None:
        return
    if schema.get("type") != "object":
        kind = schema.get("type")
        raise _bad_schema(name, f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'", place)
    if not isinstance(schema.get("properties", {}), dict):
        raise _bad_schema(name, "object schema missing properties", place)
    try:
        meta.validate(dict(schema))
    except ValidationError as error:
        where = "/".join(str(part) for part in error.instance_path)
        raise _bad_schema(name, f"In context=({where}), {error.message}", place) from error


def check_name(name: str, param: str) -> None:
    if len(name) > _MAX_NAME_LENGTH:
        said = f"Invalid '{param}': string too long. Expected a string with maximum length {_MAX_NAME_LENGTH}."
        raise Refusal(said, param=param, code="string_above_max_length")
    if not _NAME.fullmatch(name):
        said = f"Invalid '{param}': string does not match pattern. Expected a string that matches '^[a-zA-Z0-9_-]+$'."
        raise Refusal(said, param=param, code="invalid_value")


def check_arguments(arguments: str, param: str) -> None:
    try:
        parsed = json.loads(arguments)
    except ValueError as error:
        raise Refusal(f"Invalid '{param}': not valid JSON.", param=param, code="invalid_value") from error
    if not isinstance(parsed, dict):
        raise Refusal(f"Invalid '{param}': expected a JSON object.", param=param, code="invalid_value")


def _bad_schema(name: str, reason: str, place: str) -> Refusal:
    return Refusal(
        f"Invalid schema for function '{name}': {reason}.",
        param=f"{place}.parameters",
        code="invalid_function_parameters",
    )
