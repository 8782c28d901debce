"""What kind of failure a host's message means.

The SDK reports every failed backwards call as a bare ``Exception(message)``, so its text is all there is. In: that
text. Out: a FailureKind. The provider facts are those of dify-plugin 0.10.2 and Dify 1.14 (August 2026).
"""

import json
import re
from enum import StrEnum


class FailureKind(StrEnum):
    """Values are words a person can read in an error message."""

    RATE_LIMITED = "rate limited"
    UNAVAILABLE = "unavailable"
    CONNECTION_REFUSED = "connection refused"
    CONNECTION = "connection failed"
    CUT_STREAM = "stream cut off"
    CONTEXT_LENGTH = "context length exceeded"
    INVALID_REQUEST = "invalid request"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not found"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown error"


class HostFailure(Exception):  # noqa: N818 - names what happened on the host's side
    """A backwards call failed on the host's side.

    Never leaves ``internal``: a failed model call becomes ModelCallFailed, a failed tool call becomes a tool result.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.kind = classify(message)
        self.reason = _innermost_message(message)
        """What the provider or tool itself said."""


_TRANSIENT = frozenset(
    {
        FailureKind.RATE_LIMITED,
        FailureKind.UNAVAILABLE,
        FailureKind.CONNECTION_REFUSED,
        FailureKind.CONNECTION,
        FailureKind.CUT_STREAM,
        FailureKind.TIMEOUT,
    }
)

# Names that Dify and the SDK give to a provider's error; they win over the words around them, since a rate limit's text
# may well speak of tokens, and a bad request's of a limit.
_ERROR_TYPES = {
    "InvokeRateLimitError": FailureKind.RATE_LIMITED,
    "InvokeServerUnavailableError": FailureKind.UNAVAILABLE,
    "InvokeConnectionError": FailureKind.CONNECTION,
    "InvokeAuthorizationError": FailureKind.UNAUTHORIZED,
    "InvokeBadRequestError": FailureKind.INVALID_REQUEST,
    "ToolProviderCredentialValidationError": FailureKind.UNAUTHORIZED,
    "ToolParameterValidationError": FailureKind.INVALID_REQUEST,
    "ToolProviderNotFoundError": FailureKind.NOT_FOUND,
    "ToolNotFoundError": FailureKind.NOT_FOUND,
}
_ERROR_TYPE = re.compile("|".join(_ERROR_TYPES))
# Dify's own field for it, with the backslashes of the JSON that it stands in; possessive: hostile text is read once.
_TYPE_FIELD = re.compile(rf'(?<!\\)(\\*+)"error_type\\*+"\s*+:\s*+\\*+"({_ERROR_TYPE.pattern})\b')

_CONTEXT_LENGTH = re.compile(
    r"context[_ ]length|maximum context|context window|prompt is too long|input is too long|too many (input )?tokens"
    r"|reduce the length|exceeds? the (model'?s )?(maximum|max|limit of) ((?!output|completion).){0,40}tokens",
    re.IGNORECASE,
)

# A number means a status only where one is spoken of: a room 503 may be booked.
_STATUS = r"(?:^|https?(?:/[\d.]+)?|status|code|error)[\s:/=(]*"

# In this order: the first that is found names the kind. Time-outs come first, since a call that timed out must never be
# taken for one that was turned away, whatever else its text speaks of.
_WORDS: tuple[tuple[re.Pattern[str], FailureKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (rf"exited without response|timed? ?-?out|deadline exceeded|{_STATUS}(?:408|504)\b", FailureKind.TIMEOUT),
        (rf"rate.?limit|too many requests|quota exceeded|{_STATUS}429\b", FailureKind.RATE_LIMITED),
        (r"connection refused|ECONNREFUSED|actively refused", FailureKind.CONNECTION_REFUSED),
        (r"failed to read|unexpected eof|incomplete chunked|stream (ended|closed|cut)", FailureKind.CUT_STREAM),
        (rf"unauthorized|forbidden|invalid api key|permission denied|{_STATUS}40[13]\b", FailureKind.UNAUTHORIZED),
        (rf"not found|does not exist|no such|{_STATUS}404\b", FailureKind.NOT_FOUND),
        (
            rf"overloaded|unavailable|internal server error|bad gateway|{_STATUS}5(?:00|02|03|29)\b",
            FailureKind.UNAVAILABLE,
        ),
        (r"connection|network|dns|name resolution|unreachable", FailureKind.CONNECTION),
        (
            rf"bad request|invalid|validation error|unsupported|must be|{_STATUS}4(?:00|22)\b",
            FailureKind.INVALID_REQUEST,
        ),
    )
)


def classify(message: str) -> FailureKind:
    """Say what kind of failure the host's message reports."""
    kind = _named_kind(message)
    if kind in {None, FailureKind.INVALID_REQUEST} and _CONTEXT_LENGTH.search(message):
        return FailureKind.CONTEXT_LENGTH
    if kind is FailureKind.CONNECTION and re.search(r"refused", message, re.IGNORECASE):
        return FailureKind.CONNECTION_REFUSED
    if kind is not None:
        return kind
    return next((kind for words, kind in _WORDS if words.search(message)), FailureKind.UNKNOWN)


def _named_kind(message: str) -> FailureKind | None:
    """What the innermost error calls itself; a traceback beside it may name any other type."""
    fields = list(_TYPE_FIELD.finditer(message))
    if fields:
        return _ERROR_TYPES[max(fields, key=lambda found: len(found[1]))[2]]
    named = _ERROR_TYPE.search(message)
    return _ERROR_TYPES[named.group()] if named else None


def is_transient(kind: FailureKind) -> bool:
    """Whether the same call may well succeed a few seconds later."""
    return kind in _TRANSIENT


def _innermost_message(message: str) -> str:
    """The words inside: Dify wraps them, with a traceback, into the JSON of its own error, more than once."""
    begin = message.find("{")
    try:
        wrapped = json.loads(message[begin:]) if begin >= 0 else None
    except (ValueError, RecursionError):
        return message
    inner = wrapped.get("message") if isinstance(wrapped, dict) else None
    return _innermost_message(inner) if isinstance(inner, str) and inner else message
