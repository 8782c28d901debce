"""What a failure message of the host means: its wrappings, its kind, and its text in plain words."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from internal.text.texts import wellformed

# An error message of the host, unwrapped, and in plain words.

_MAX_WRAPPINGS = 8
"""Dify's own are three."""
_MAX_REASON_LENGTH = 40_000
"""Characters; of a longer message the beginning and the end are kept, half of these each."""

_WRAPPING = re.compile(
    # The daemon could not make the call or not read the answer; what follows is its own message or the one it read.
    r"(?P<call>(?:invoke|read) (?:llm model|tool response|[a-z ]{1,40}?) failed: )"
    r"|request failed: |req_id: ?\S{0,100} |Plugin\w{1,60}(?:Error|Exception): |tool invoke error: "
    r"|failed to execute tool [^\s:][^:\n]{0,200}: |failed to execute tool: "
)
# A number is a status only after a word for it: text may mention a room 503.
STATUS = re.compile(
    r"(?:^|https?(?:/[\d.]+)?|status|code|error)[\s:/=(,]*(40[01348]|413|422|429|50[0234]|529)\b", re.IGNORECASE
)
_STATUS_LINE = re.compile(r"request failed with status code: (\d{3}) and respond with: ?")
# From Go's net and http packages, the daemon's reader and checks, and the SDK's limits.
_HOSTS_OWN = re.compile(
    r'(?:Post|Get) "|(?:dial|read|write) tcp\b|(?:unexpected )?EOF\b|data is nil|magic number mismatch'
    r"|data length is too long|failed to read (?:data|system header)|unmarshal backwards invoke request failed"
    r"|unsupported invoke type|permission denied, you need to enable|invocation exited without response"
    r"|Failed to parse response: "
)
# The field of a request that the daemon refuses; decoders quote its value after it. A tool may speak of a column or
# field called opaque_body, so the path has to lead into the request's messages.
_OPAQUE_FIELD = re.compile(r"prompt_messages[\w.\[\]]{0,80}\bopaque_body")


@dataclass(frozen=True)
class HostMessage:
    """An unwrapped message."""

    reason: str
    """The innermost message; of an unusually long one its beginning and end."""
    error_types: tuple[str, ...] = ()
    """Names of the errors that wrapped each other, the innermost first."""
    status: int | None = None
    """The HTTP status of the answer that was the failure, of Dify's API or of a provider."""
    is_hosts_own: bool = False
    """Whether the message is the host's own (its transport, status or refusal), not the provider's or tool's."""
    names_opaque_body: bool = False


def unwrap(message: str) -> HostMessage:
    """Take a message out of its wrappings, in time linear in its length."""
    reason, is_hosts_own = message, False
    error_types, status = tuple[str, ...](), None
    for _ in range(_MAX_WRAPPINGS):
        if (found := _WRAPPING.match(reason)) and reason[found.end() :].strip():
            reason, is_hosts_own = reason[found.end() :], found["call"] is not None
        elif status is None and (found := _STATUS_LINE.match(reason)):
            status, is_hosts_own = int(found[1]), True
        elif wrapped := _json_at_the_end(reason):
            name, inner = wrapped
            error_types = (name, *error_types) if name else error_types
            if status is None and (found := STATUS.search(reason[: reason.find("{")])):
                status = int(found[1])
            reason, is_hosts_own = inner or name, False
        else:
            break
    reason = reason.strip()
    if field := _OPAQUE_FIELD.search(reason):
        return HostMessage(f"{field[0]} was refused", is_hosts_own=True, names_opaque_body=True)
    is_hosts_own = is_hosts_own or _HOSTS_OWN.match(reason) is not None
    return HostMessage(_shortened(reason), error_types, status, is_hosts_own)


def _json_at_the_end(text: str) -> tuple[str, str] | None:
    """Name and message of an error, one of which may be "", in the JSON objects that Dify and providers write."""
    begin = text.find("{")
    try:
        wrapped = json.loads(text[begin:]) if begin >= 0 else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(wrapped, dict):
        return None
    said = wrapped.get("error_type"), wrapped.get("message")
    # JSON can escape what a text must not hold.
    name, inner = (wellformed(part) if isinstance(part, str) and part.strip() else "" for part in said)
    return (name, inner) if name or inner else None


def _shortened(text: str) -> str:
    half = _MAX_REASON_LENGTH // 2
    return text if len(text) <= _MAX_REASON_LENGTH else f"{text[:half]} … {text[-half:]}"


_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_ESCAPED_NEWLINE = re.compile(r"\\+n")
_ERROR_BEGINS = re.compile(r"\b(?=\w{1,60}(?:Error|Exception): )")  # in a traceback on one line
_FRAME = re.compile(r"\s+(?:at\s\S.*[:(]|File \".*\", line \d)")  # of JavaScript and Java, of Python

# The directories of an absolute path, or an address, which stays: a URL, or the path that an HTTP method asks for.
_DIRECTORIES = re.compile(
    r"\bfile://(?:[^\s\"'`<>/]*+/)++"
    r"|(?P<address>\b\w{1,20}://[^\s\"'<>]*+|\b(?:GET|HEAD|PUT|POST|PATCH|DELETE|url:) /[^\s\"'<>]*+)"
    r"|(?<=[\"'`])/(?:[^\"'`\n/]*+/)++(?=[^\"'`\n/]*+[\"'`])"  # in quotes a name may hold spaces
    r"|(?<![\w.:/\\\]}%<~-])/(?:[^\s\"'`<>|()\[\]{},;:/]++/++)++"
    r"|(?<!\w)[A-Za-z]:(?:\\{1,4}|/(?!/))(?:[^\\/:*?\"'<>|\r\n]{1,100}+(?:\\{1,4}|/))*+"
    r"|(?<![\w\\])\\{2,8}[\w.$-]{1,100}+\\{1,4}(?:[^\\/:*?\"'<>|\r\n]{1,100}+\\{1,4})++"
)
_PATH_ENDS = re.compile(r"\.?(?:[\s\"'`<>|()\[\]{},;:]|$)")
_LAST_NAME = re.compile(r"[^\\/]++[\\/]++$")


def without_directories(text: str) -> str:
    """A text in which only the names of files stay of their paths; addresses stay."""
    return _DIRECTORIES.sub(_last_name, text)


def _last_name(found: re.Match[str]) -> str:
    """What stays of the directories before a file's name; of a path that ends with one of them, its name."""
    if found["address"] is not None:
        return found["address"]
    if not _PATH_ENDS.match(found.string, found.end()):
        return ""
    named = _LAST_NAME.search(found[0])
    return named[0] if named else ""


def without_tracebacks(text: str) -> str:
    """The lines of a text that are not blank; of a traceback only the error that it ends with."""
    before, found, after = text.partition(_TRACEBACK)
    kept, errors, in_traceback = list[str](), list[str](), False
    for line in (before + found + _ESCAPED_NEWLINE.sub("\n", after)).splitlines():
        if _TRACEBACK in line:
            start, _, rest = line.partition(_TRACEBACK)
            kept.append(start)
            in_traceback, errors = True, _ERROR_BEGINS.split(rest)[1:][-1:]
        elif in_traceback and line.startswith(_CHAINED):
            errors = []
        elif in_traceback and line[:1].strip():
            errors.append(line)
        elif not in_traceback and not _FRAME.match(line):
            kept.append(line)
    return "\n".join(line.strip() for line in [*kept, *errors] if line.strip())


# What kind of failure a message of the host means.
#
# The SDK reports every failed backwards call as a bare ``Exception(message)``, so its text is all there is
# (docs/host-facts.md, "Failed calls").


class FailureKind(StrEnum):
    """The values stand in error messages."""

    RATE_LIMITED = "rate limited"
    UNAVAILABLE = "unavailable"
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
            r"connection|ECONNREFUSED|disconnected|network",
            r"reset by peer|broken pipe|\bdns\b|name resolution|unreachable",
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
