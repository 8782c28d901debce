"""The API's errors in OpenAI's words (2026), the models that the fake has, and what both APIs demand of tools."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
from jsonschema_rs import meta
from pydantic import ValidationError


class Refusal(Exception):  # noqa: N818 - what the server answers instead
    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}


def unknown_key(key: str) -> Refusal:
    said = f"Incorrect API key provided: {key}. You can find your API key in your account."
    return Refusal(said, status=401, code="invalid_api_key")


def rate_limited() -> Refusal:
    said = "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 30000. Please try again in 1s."
    return Refusal(said, status=429, kind="tokens", code="rate_limit_exceeded")


def server_error() -> Refusal:
    said = "The server had an error while processing your request. Sorry about that!"
    return Refusal(said, status=500, kind="server_error")


def context_too_long() -> Refusal:
    said = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return Refusal(said, param="input", code="context_length_exceeded")


def no_such_model(model: str) -> Refusal:
    said = f"The model `{model}` does not exist or you do not have access to it."
    return Refusal(said, status=404, code="model_not_found")


def unsupported(param: str, hint: str = "") -> Refusal:
    said = f"Unsupported parameter: '{param}' is not supported with this model.{hint}"
    return Refusal(said, param=param, code="unsupported_parameter")


def of_schema(error: ValidationError, body: object) -> Refusal:
    """The first thing that a request's shape has wrong."""
    # Of the members of a union, the one that got furthest knows best what is wrong.
    first = max(error.errors(), key=lambda finding: len(finding["loc"]))
    param = _path(first["loc"], body)
    match first["type"]:
        case "extra_forbidden":
            return Refusal(f"Unknown parameter: '{param}'.", param=param, code="unknown_parameter")
        case "missing":
            return Refusal(f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")
        case "union_tag_not_found":
            missing = f"{param}.{'role' if param.startswith('messages') else 'type'}"
            return Refusal(
                f"Missing required parameter: '{missing}'.", param=missing, code="missing_required_parameter"
            )
        case "literal_error" | "union_tag_invalid":
            said = f"Invalid value: '{_value(first, param)}'. {first['msg']}."
            return Refusal(said, param=param, code="invalid_value")
        case _:
            return Refusal(f"Invalid type for '{param}': {first['msg']}.", param=param, code="invalid_type")


def _value(finding: Any, param: str) -> object:  # noqa: ANN401 - pydantic's details
    value = finding["input"]
    return value.get("role" if param.startswith("messages") else "type") if isinstance(value, dict) else value


def _path(location: Sequence[int | str], body: object) -> str:
    """`input[2].arguments`, without the names of union members that pydantic puts in between."""
    path, node = "", body
    for position, part in enumerate(location):
        if isinstance(node, list) and isinstance(part, int):
            path += f"[{part}]"
            node = node[part] if part < len(node) else None
        elif isinstance(node, dict) and (part in node or position == len(location) - 1):
            path += f".{part}" if path else str(part)
            node = node.get(part)
    return path


# The models, and what each takes: the fake's own knowledge, not devhost's.


@dataclass(frozen=True)
class Profile:
    efforts: frozenset[str] = frozenset()
    """Empty: it does not reason."""
    default_effort: str = "medium"
    is_openais: bool = True
    chat_takes_tools_with_effort: bool = True

    @property
    def reasons(self) -> bool:
        return bool(self.efforts)


_MODELS = {
    "gpt-5": Profile(frozenset({"minimal", "low", "medium", "high"})),
    "gpt-5.4": Profile(frozenset({"none", "low", "medium", "high", "xhigh"}), default_effort="none"),
    "gpt-5.6-terra": Profile(
        frozenset({"none", "low", "medium", "high", "xhigh", "max"}), chat_takes_tools_with_effort=False
    ),
    "gpt-4.1": Profile(),
    "llama3.2": Profile(is_openais=False),
}


def profile(model: str) -> Profile:
    if model not in _MODELS:
        raise no_such_model(model)
    return _MODELS[model]


# Function tools and their calls.

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
    except jsonschema_rs.ValidationError as error:
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
