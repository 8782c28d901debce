"""A provider's failures in the words in which Dify's openai plugin passes them on.

In: what the openai client raises, and the errors inside its streams. Out: `ModelCallError` with one sentence: Dify's
words without the key, then the server's URL and what would help.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import openai

from devhost.models.backend import ModelCallError
from devhost.text.secrets import Secrets

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
        said = _on_one_line(Secrets([key]).masked(worded.message))
        help_ = _help(error, worded)
        where = f"server: {url}; {help_}" if help_ else f"server: {url}"
        raise ModelCallError(worded.error_type, f"{said} ({where})") from None


def _help(error: Exception, worded: ModelCallError) -> str:
    if getattr(error, "status_code", None) == _NOT_FOUND or _PAGE in worded.message:
        return _HELPS_NOT_FOUND
    return _HELPS.get(worded.error_type, "")


def _on_one_line(text: str) -> str:
    line = " ".join(text.split())
    return f"{line[:_LONGEST]}…" if len(line) > _LONGEST else line


@contextmanager
def reading_the_stream() -> Iterator[None]:
    """The client does not check events: one with an unexpected shape fails where it is first used."""
    try:
        yield
    except (AttributeError, TypeError, LookupError, ValueError, RecursionError) as error:
        said = f"[models] Error: the server's stream cannot be read: {_detail(error)}"
        raise ModelCallError("InvokeError", said) from error


def _detail(error: Exception) -> str:
    if isinstance(error, ValueError):  # an event that is not valid JSON
        return str(error)
    return f"an event is not of the form that the API gives it ({type(error).__name__}: {error})"


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
