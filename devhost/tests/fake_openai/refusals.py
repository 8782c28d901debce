"""The API's errors: status, headers' counterpart in the body, and the words, as OpenAI's own (2026)."""

from collections.abc import Sequence
from typing import Any

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
