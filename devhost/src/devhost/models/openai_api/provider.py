"""What both of OpenAI's APIs have in common: failures, parameters and turn events."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import openai

from devhost.models.backend import MediaPart, ModelCallError
from devhost.models.catalog import facts_of, has_reasoning_modes, has_verbosity, is_openais
from devhost.models.usage import TokenCounts
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets

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
    "InvokeConnectionError": "check that a server runs there, or set OPENAI_BASE_URL",
    "InvokeAuthorizationError": "check OPENAI_API_KEY",
}
_NOT_FOUND = 404
_HELPS_NOT_FOUND = "check the path in OPENAI_BASE_URL, the model's name and --api"
_PAGE = "an HTML page instead of JSON"
_LONGEST = 1_000
"""Characters of a server's own text."""
_HTML = re.compile(r"\s*<(?:!doctype|html|head|body)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.{1,200}?)</title>", re.IGNORECASE | re.DOTALL)


def failure(error_type: str, message: str) -> ModelCallError:
    """The message for a refused key quotes nothing, as in Dify's openai plugin, so no part of the key is shown."""
    if error_type == "InvokeAuthorizationError":
        return ModelCallError(error_type, "[models] Incorrect model credentials provided, please check and try again. ")
    return ModelCallError(error_type, f"[models] {_DESCRIPTIONS[error_type]}, {message}")


def refused(message: str) -> ModelCallError:
    """A request that the provider's API cannot express."""
    return failure("InvokeBadRequestError", message)


def cut_off(missing: str) -> ModelCallError:
    return failure("InvokeConnectionError", f"the stream ended without {missing}: stream cut off")


def failed_in_stream(code: str | None, message: str, kind: str | None = None) -> ModelCallError:
    error_type = _IN_STREAM.get(code or "") or _IN_STREAM.get(kind or "") or "InvokeBadRequestError"
    return failure(error_type, f"{code or kind or 'error'}: {message}")


def refuse_a_page(content_type: str) -> None:
    """A web page has no events, so that it would read as an empty stream."""
    if content_type.startswith("text/html"):
        raise failure("InvokeBadRequestError", f"the answer is {_PAGE}")


@contextmanager
def provider_failures(key: str, url: str) -> Iterator[None]:
    """Turns every failure of the call inside into a ModelCallError without the key; `url` has no credentials."""
    try:
        yield
    except (ModelCallError, openai.APIError, ValueError) as error:
        worded = _worded(error)
        said = " ".join(Secrets([key]).masked(worded.message).split())
        said = f"{said[:_LONGEST]}…" if len(said) > _LONGEST else said
        is_a_page = getattr(error, "status_code", None) == _NOT_FOUND or _PAGE in worded.message
        help_ = _HELPS_NOT_FOUND if is_a_page else _HELPS.get(worded.error_type)
        where = f"server: {url}; {help_}" if help_ else f"server: {url}"
        raise ModelCallError(worded.error_type, f"{said} ({where})") from None


@contextmanager
def reading_the_stream() -> Iterator[None]:
    """The client does not check events: one with an unexpected shape fails where it is first used."""
    try:
        yield
    except (AttributeError, TypeError, LookupError, ValueError, RecursionError) as error:
        detail = f"an event is not of the form that the API gives it ({type(error).__name__}: {error})"
        if isinstance(error, ValueError):  # an event that is not valid JSON
            detail = str(error)
        said = f"[models] Error: the server's stream cannot be read: {detail}"
        raise ModelCallError("InvokeError", said) from error


def _worded(error: ModelCallError | openai.APIError | ValueError) -> ModelCallError:
    if isinstance(error, ModelCallError):
        return error
    if isinstance(error, ValueError):  # a text with half a character, for instance
        return ModelCallError("InvokeError", f"[models] Error: the request cannot be sent: {error}")
    for raised, error_type in _RAISED:
        if isinstance(error, raised):
            cause = f" {error.__cause__}" if isinstance(error, openai.APIConnectionError) and error.__cause__ else ""
            return failure(error_type, f"{error}{_page_or_text(error)}{cause}")
    return failed_in_stream(error.code, error.message, error.type)


def _page_or_text(error: openai.APIError) -> str:
    """What a server said that is not JSON; a proxy or a wrong address answers with a whole HTML page."""
    body = error.body
    if not isinstance(body, str) or not body:
        return ""
    if not _HTML.match(body):
        return f" - {body}"
    title = _TITLE.search(body)
    return f" - {_PAGE}" + (f" with the title {' '.join(title.group(1).split())!r}" if title else "")


# The parameters of a model, as rules for the entity.

type Api = Literal["responses", "chat"]
_MOST_TOKENS = 128_000


def parameter_rules(api: Api, model: str) -> tuple[JsonObject, ...]:
    return tuple(_rules(api, model))


def _rules(api: Api, model: str) -> Iterator[JsonObject]:
    efforts = facts_of(model).efforts
    ours = is_openais(model)
    yield _rule("max_tokens", "int", min=1, max=_MOST_TOKENS if ours else None)
    if not efforts:
        yield _rule("temperature", "float", min=0, max=2)
        yield _rule("top_p", "float", min=0, max=1)
        if api == "chat":
            yield _rule("presence_penalty", "float", min=-2, max=2)
            yield _rule("frequency_penalty", "float", min=-2, max=2)
            yield _rule("seed", "int")
    if efforts or not ours:
        yield _rule("reasoning_effort", "string", options=list(efforts))
    if api == "responses" and (efforts or not ours):
        yield _rule("reasoning_summary", "string", options=["auto", "concise", "detailed"])
    if api == "responses" and has_reasoning_modes(model):
        yield _rule("reasoning_mode", "string", options=["standard", "pro"])
        yield _rule("reasoning_context", "string", options=["auto", "current_turn", "all_turns"])
    if has_verbosity(model):
        yield _rule("verbosity", "string", options=["low", "medium", "high"])
    yield _rule("response_format", "string", options=["text", "json_object", "json_schema"])
    yield _rule("json_schema", "text")
    if ours:
        yield _rule("service_tier", "string", options=["auto", "default", "flex", "priority"])


def _rule(name: str, kind: str, **more: object) -> JsonObject:
    label = {"en_US": name}
    common = {"name": name, "use_template": None, "label": label, "type": kind, "help": None, "required": False}
    return {**common, "default": None, "min": None, "max": None, "precision": None, "options": [], **more}


# What a provider's stream says, whichever API it came over: text, pieces of tool calls, and the end of the turn. Text
# carries thoughts as `<think>` blocks, which `ThoughtText` opens and closes.


@dataclass(frozen=True)
class Finished:
    reason: str
    calls: tuple[JsonObject, ...] = ()
    opaque_body: Any = None
    tokens: TokenCounts | None = None
    """None when the server did not count."""


type TurnEvent = str | tuple[JsonObject, ...] | Finished
"""A text; tool calls, or fragments of them, in the form of a chunk's `tool_calls`; or the end."""

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


def text_of(value: object) -> str:
    """The text of a field that may be absent; the client passes on any value that the server sent."""
    if not isinstance(value, str | None):
        raise TypeError(f"{value!r} is not a text")
    return value or ""


def without_thoughts(text: str) -> str:
    """The text for a provider: without the thoughts that `ThoughtText` put in."""
    return _BLOCK.sub("", text)


# What both APIs take alike: parts of a prompt, and formats of an answer.


def data_url(part: MediaPart) -> str:
    return f"data:{part.mime_type};base64,{part.base64_data}"


def filename(part: MediaPart) -> str:
    return part.filename or f"file.{part.format}"


def answer_format(params: JsonObject, wrapped: Callable[[JsonObject], JsonObject]) -> JsonObject | None:
    """`response_format` and `json_schema` as the API's format, whose schema is `wrapped`; None for text."""
    match params.get("response_format"):
        case "json_schema":
            return {"type": "json_schema", **wrapped(_named_schema(params.get("json_schema")))}
        case "json_object":
            return {"type": "json_object"}
    return None


def _named_schema(text: str | None) -> JsonObject:
    """The node's JSON text: `{"name": …, "schema": …}`, or a bare schema."""
    try:
        given = json.loads(text) if text else None
    except ValueError as error:
        raise refused(f"json_schema is not valid JSON: {error}") from error
    if not isinstance(given, dict):
        raise refused("response_format=json_schema needs json_schema, a JSON object")
    return given if "schema" in given else {"name": "answer", "schema": given}
