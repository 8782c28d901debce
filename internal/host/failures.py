"""What kind of failure a message of the host means.

The SDK reports every failed backwards call as a bare ``Exception(message)``, so its text is all there is
(docs/host-facts.md, "Failed calls"). In: that text. Out: a FailureKind.
"""

import re
from enum import StrEnum

from internal.host.host_message import STATUS, HostMessage, unwrap, without_directories, without_tracebacks


class FailureKind(StrEnum):
    """The values stand in error messages."""

    RATE_LIMITED = "rate limited"
    UNAVAILABLE = "unavailable"
    CONNECTION_REFUSED = "connection refused"
    CONNECTION = "connection failed"
    CUT_STREAM = "stream cut off"
    CONTEXT_LENGTH = "context length exceeded"
    INVALID_REQUEST = "invalid request"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not found"
    TOO_LARGE = "too large"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown error"


class HostFailure(Exception):  # noqa: N818 - says what happened
    """A call to the host failed.

    Never leaves ``internal``: a failed model call becomes ModelCallFailed, a failed tool call becomes a tool result.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        unwrapped = unwrap(message)
        self.kind = _kind_of(unwrapped)
        self.reason = unwrapped.reason
        """The innermost message: what the provider or tool itself said, unless ``is_hosts_own``."""
        self.is_hosts_own = unwrapped.is_hosts_own
        """Whether the message is only the host's: its transport broke, or it refused the request."""
        self.names_opaque_body = unwrapped.names_opaque_body

    def said_plainly(self) -> str:
        """What the provider said, in words that users may read; "" where nothing of the kind is left."""
        said = without_tracebacks(self.reason[:_MAX_SEARCHED_LENGTH])
        if self.is_hosts_own or "Traceback" in said:
            return ""
        if found := _PROVIDERS_MESSAGE.search(said) or _PROVIDERS_MESSAGE.search(said.replace('\\"', '"')):
            said = re.sub(r"\\(.)", r"\1", found["message"])
        said = _IDS.sub("", without_directories(_BEFORE_MESSAGE.sub("", said)))
        return " ".join(said.split())[:_MAX_SAID_LENGTH].rstrip(".: ")


_MAX_SAID_LENGTH = 300
"""Characters."""
# In the JSON of a provider, or the repr of it.
_PROVIDERS_MESSAGE = re.compile(
    r"""(["'])message\1\s*:\s*(["'])(?P<message>(?:\\.|(?!\2)[^\\])++)\2""",
    re.DOTALL,
)
_BEFORE_MESSAGE = re.compile(r"^(?:\[[^\]\n]{1,100}\] )?(?:[A-Z][\w ]{1,40}Error, |Error: )?(?:Error code: \d+ - )?")
_IDS = re.compile(
    r"\s*\(?(?:\b(?:in|for|of) )?(?:\b(?:organization|project|(?:request )?id):? )?\b(?:org|proj|req)[-_]\w{2,}\)?"
)

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

# Names that Dify and the SDK give to a provider's error, and the words by which the SDK describes them, where Dify
# passes on the message alone (docs/host-facts.md, "Failed calls"). They count before the words around them, because the
# text of a rate limit may mention tokens, and that of a bad request a limit.
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
    "Rate Limit Error": FailureKind.RATE_LIMITED,
    "Server Unavailable Error": FailureKind.UNAVAILABLE,
    "Connection Error": FailureKind.CONNECTION,
    "Incorrect model credentials": FailureKind.UNAUTHORIZED,
    "Bad Request Error": FailureKind.INVALID_REQUEST,
}
_ERROR_TYPE = re.compile("|".join(_ERROR_TYPES))

_STATUSES = {
    401: FailureKind.UNAUTHORIZED,
    403: FailureKind.UNAUTHORIZED,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.TIMEOUT,
    429: FailureKind.RATE_LIMITED,
    504: FailureKind.TIMEOUT,
}
_SERVER_ERRORS = 500

_MAX_SEARCHED_LENGTH = 8_000
"""Characters of a message's beginning, and of its end, in which words are looked for."""
# Addresses do not tell the kind of a failure: URLs, paths with a query, names that were looked up.
_ADDRESS = re.compile(
    r"(?<!\w)\w{1,20}://[^\s\"'<>]*+|(?<![^\s\"'])/[^\s\"'<>?]*+\?[^\s\"'<>]*+"
    r"|(?:\blookup |\bhost=['\"]?)[^\s'\",]*+|(?<![\w.-])[\w-]{1,63}(?:\.[\w-]{1,63}){1,10}:\d{1,5}\b"
)

_CONTEXT_LENGTH = re.compile(
    r"context[_ ]length|maximum context|context window|prompt is too long|input is too long|too many (input )?tokens"
    r"|reduce the length|exceeds? the (model'?s )?(maximum|max|limit of) ((?!output|completion).){0,40}tokens",
    re.IGNORECASE,
)

# The first match names the kind. Time-outs come first, because a call that timed out must never count as one that was
# refused before it began, whatever else its text mentions.
_WORDS: tuple[tuple[FailureKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile("|".join(patterns), re.IGNORECASE))
    for kind, *patterns in (
        # The daemon closes a connection on which the API says nothing for its read timeout (240 s).
        (
            FailureKind.TIMEOUT,
            r"exited without response|timed? ?-?out|deadline exceeded|use of closed network connection",
        ),
        (FailureKind.RATE_LIMITED, r"rate.?limit|too many requests|quota exceeded|exceeded your current quota"),
        (FailureKind.CONNECTION_REFUSED, r"connection refused|ECONNREFUSED|actively refused"),
        (
            FailureKind.CUT_STREAM,
            r"failed to read (?:data|system header|(?:the )?(?:response|body|stream|chunk))",
            r"unexpected eof|incomplete chunked|stream (?:ended|closed|cut)",
        ),
        (FailureKind.CONNECTION, r"no such host|(?:^|: )EOF$"),
        (FailureKind.TOO_LARGE, r"data length is too long"),
        (
            FailureKind.UNAUTHORIZED,
            r"unauthorized|forbidden|permission.?denied|authentication.?(?:error|failed)",
            r"(?:invalid|incorrect)[ _]api[ _]key|api key not valid",
        ),
        (FailureKind.NOT_FOUND, r"not[ _]found|does not exist|no such"),
        (
            FailureKind.UNAVAILABLE,
            r"overloaded|unavailable|internal server error|bad gateway|data is nil|magic number mismatch",
        ),
        (
            FailureKind.CONNECTION,
            r"connection|disconnected|network|reset by peer|broken pipe|\bdns\b|name resolution|unreachable",
        ),
        (
            FailureKind.INVALID_REQUEST,
            r"bad request|invalid|validation error|unmarshal|unsupported|must be",
        ),
    )
)


def classify(message: str) -> FailureKind:
    """The kind of failure that a message of the host reports."""
    return _kind_of(unwrap(message))


def _kind_of(message: HostMessage) -> FailureKind:
    """By the name of the innermost error; else by a status in its words, the status of Dify's answer, its words.

    Under the name of a bad request providers pass on every status, so there the status tells more.
    """
    if message.names_opaque_body:
        return FailureKind.INVALID_REQUEST
    words = _searched(message)
    kind = _named_kind(message, words)
    if kind in {None, FailureKind.INVALID_REQUEST} and (found := STATUS.search(words)):
        kind = _kind_of_status(int(found[1]))
    if kind is None and message.status is not None:
        kind = _kind_of_status(message.status)
    if kind in {None, FailureKind.INVALID_REQUEST} and _CONTEXT_LENGTH.search(words):
        return FailureKind.CONTEXT_LENGTH
    if kind is FailureKind.CONNECTION and "refused" in words.lower():
        return FailureKind.CONNECTION_REFUSED
    return kind or next((kind for kind, pattern in _WORDS if pattern.search(words)), FailureKind.UNKNOWN)


def _searched(message: HostMessage) -> str:
    """The text in which words are looked for: the innermost message and its error's name, without addresses."""
    reason = without_tracebacks(message.reason) or message.reason
    if len(reason) > 2 * _MAX_SEARCHED_LENGTH:
        reason = f"{reason[:_MAX_SEARCHED_LENGTH]}\n{reason[-_MAX_SEARCHED_LENGTH:]}"
    named = f"{message.error_types[0][:100]}: " if message.error_types else ""
    return named + _ADDRESS.sub("", reason)


def _named_kind(message: HostMessage, words: str) -> FailureKind | None:
    """By the name of the innermost error that has a known one."""
    named = next((name for name in message.error_types if name in _ERROR_TYPES), None)
    if named is None and (found := _ERROR_TYPE.search(words)):
        named = found.group()
    return _ERROR_TYPES[named] if named else None


def _kind_of_status(status: int) -> FailureKind:
    other = FailureKind.UNAVAILABLE if status >= _SERVER_ERRORS else FailureKind.INVALID_REQUEST
    return _STATUSES.get(status, other)


_REMEDIES = (
    # docs/model-facts.md, "Tools over Chat Completions".
    (
        re.compile(r"\btools?\b.{0,100}not supported.{0,100}/chat/completions", re.IGNORECASE),
        "choose the Responses protocol in the model's settings",
    ),
)


def remedy_for(failure: HostFailure) -> str | None:
    """What the developer can do about a failure of the model, if its text tells."""
    said = failure.reason[:_MAX_SEARCHED_LENGTH]
    return next((remedy for words, remedy in _REMEDIES if words.search(said)), None)


def is_transient(kind: FailureKind) -> bool:
    """Whether the same call may succeed a few seconds later."""
    return kind in _TRANSIENT
