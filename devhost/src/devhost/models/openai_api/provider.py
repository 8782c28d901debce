"""What both of OpenAI's APIs have in common: failures, what a stream says, parts of a prompt, formats of an answer."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import openai

from devhost.models.backend import MediaPart, ModelCallError
from devhost.models.usage import TokenCounts
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets

type Api = Literal["responses", "chat"]

# A provider's failures in the words in which Dify's openai plugin passes them on.

_DESCRIPTIONS = {
    "InvokeConnectionError": "Connection Error",
    "InvokeServerUnavailableError": "Server Unavailable Error",
    "InvokeRateLimitError": "Rate Limit Error",
    "InvokeBadRequestError": "Bad Request Error",
}
_RAISED: tuple[tuple[type[openai.APIError], str], ...] = (
    (openai.APIConnectionError, "InvokeConnectionError"),
    (openai.InternalServerError, "InvokeServerUnavailableError"),
    (openai.RateLimitError, "InvokeRateLimitError"),
    (openai.AuthenticationError, "InvokeAuthorizationError"),
    (openai.PermissionDeniedError, "InvokeAuthorizationError"),
    (openai.APIStatusError, "InvokeBadRequestError"),
)
_IN_STREAM = {
    "rate_limit_exceeded": "InvokeRateLimitError",
    "insufficient_quota": "InvokeRateLimitError",
    "server_error": "InvokeServerUnavailableError",
    "server_is_overloaded": "InvokeServerUnavailableError",
}
"""Codes, and types, of errors that come after the 200."""
_HELPS = {
    "InvokeConnectionError": "; check that a server runs there, or set OPENAI_BASE_URL",
    "InvokeAuthorizationError": "; check OPENAI_API_KEY",
}
_LONGEST = 1_000
"""Characters of a server's own text."""


def failure(error_type: str, message: str) -> ModelCallError:
    """The message for a refused key quotes nothing, as in Dify's openai plugin, so no part of the key is shown."""
    if error_type == "InvokeAuthorizationError":
        return ModelCallError(error_type, "[models] Incorrect model credentials provided, please check and try again.")
    return ModelCallError(error_type, f"[models] {_DESCRIPTIONS[error_type]}, {message}")


def refused(message: str) -> ModelCallError:
    """A request that the provider's API cannot express."""
    return failure("InvokeBadRequestError", message)


def cut_off(missing: str) -> ModelCallError:
    return failure("InvokeConnectionError", f"the stream ended without {missing}: stream cut off")


def failed_in_stream(code: str | None, message: str, kind: str | None = None) -> ModelCallError:
    error_type = _IN_STREAM.get(code or "") or _IN_STREAM.get(kind or "") or "InvokeBadRequestError"
    return failure(error_type, f"{code or kind or 'error'}: {message}")


@contextmanager
def provider_failures(key: str, url: str) -> Iterator[None]:
    """Turns every failure of the call inside into a ModelCallError without the key; `url` has no credentials."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - a server's stream may have any form; Dify passes on any error, too
        worded = _worded(error)
        said = " ".join(Secrets([key]).masked(worded.message).split())
        said = f"{said[:_LONGEST]}…" if len(said) > _LONGEST else said
        where = f"(server: {url}{_HELPS.get(worded.error_type, '')})"
        raise ModelCallError(worded.error_type, f"{said} {where}") from None


def _worded(error: Exception) -> ModelCallError:
    match error:
        case ModelCallError():
            return error
        case openai.APIConnectionError() | openai.APIStatusError():
            kind = next(kind for raised, kind in _RAISED if isinstance(error, raised))
            # The client's own sentence says neither why there is no connection, nor what came that is not JSON.
            more = error.__cause__ or (error.body if isinstance(error.body, str) else "")
            return failure(kind, f"{error} - {more}" if more else str(error))
        case openai.APIError():
            return failed_in_stream(error.code, error.message, error.type)
    return ModelCallError("InvokeError", f"[models] Error: {type(error).__name__}: {error}")


# What a provider's stream says, whichever API it came over: pieces of text, and the end of the turn with its calls.
# Text carries thoughts as `<think>` blocks, which `ThoughtText` opens and closes.


@dataclass(frozen=True)
class Finished:
    reason: str
    calls: tuple[JsonObject, ...] = ()
    opaque_body: Any = None
    tokens: TokenCounts | None = None
    """None when the server did not count."""


type TurnEvent = str | Finished

_BLOCK = re.compile(r"<think>\n.*?\n</think>\n*", re.DOTALL)


class ThoughtText:
    """Joins thoughts and answer into one text, with the thoughts between tags."""

    def __init__(self) -> None:
        self._thinking = False

    def thought(self, text: str) -> str:
        if not text:
            return ""
        opening = "" if self._thinking else "<think>\n"
        self._thinking = True
        return opening + text

    def words(self, text: str) -> str:
        return self.end() + text if text else ""

    def end(self) -> str:
        if not self._thinking:
            return ""
        self._thinking = False
        return "\n</think>\n"


def without_thoughts(text: str) -> str:
    """The text for a provider: without the thoughts that `ThoughtText` put in."""
    return _BLOCK.sub("", text)


# What both APIs take alike: parts of a prompt, and formats of an answer.


def data_url(part: MediaPart) -> str:
    return f"data:{part.mime_type};base64,{part.base64_data}"


def filename(part: MediaPart) -> str:
    return part.filename or f"file.{part.format}"


def taken_format(params: JsonObject) -> tuple[str, JsonObject]:
    """Takes `response_format` out of the parameters, with the schema that `json_schema` holds for it.

    That is `{"name": …, "schema": …}`, or a bare schema, as JSON or as its text.
    """
    kind, schema = str(params.pop("response_format", "text")), params.pop("json_schema", None)
    if kind != "json_schema":
        return kind, {}
    try:
        given = json.loads(schema) if isinstance(schema, str) else schema
    except ValueError as error:
        raise refused(f"json_schema is not valid JSON: {error}") from error
    if not isinstance(given, dict):
        raise refused("response_format=json_schema needs json_schema, a JSON object")
    return kind, given if "schema" in given else {"name": "answer", "schema": given}
