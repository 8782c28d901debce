"""What a failure message of the host means: its wrappings, its kind, and its text in plain words.

The SDK reports every failed call as a bare ``Exception(message)``: its text is all there is (docs/host-facts.md,
"Failed calls").
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from internal.text.texts import wellformed


class FailureKind(StrEnum):
    """The values are written in error messages."""

    RATE_LIMITED = "rate limited"
    QUOTA_SPENT = "quota used up"
    """The quota or the balance is spent: unlike a rate limit, it does not come back within a minute."""
    UNAVAILABLE = "unavailable"
    CONNECTION = "connection failed"
    CUT_STREAM = "stream cut off"
    CONTEXT_LENGTH = "context length exceeded"
    CONTENT_FILTER = "content filter"
    INVALID_REQUEST = "invalid request"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not found"
    TOO_LARGE = "too large"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown error"


class HostFailure(Exception):  # noqa: N818 - says what happened
    """A call to the host failed: a model's becomes ModelCallFailed, a tool's a result."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.reason, error_types, status, is_hosts_own = _unwrap(message)
        """The innermost message: what the provider or tool itself said, unless ``is_hosts_own``."""
        self.is_hosts_own = is_hosts_own or _HOSTS_OWN.match(self.reason) is not None
        """Whether the message is only the host's: its transport broke, or it refused the request."""
        self.kind, field = _kind(self.reason, error_types, status), _OPAQUE_FIELD.search(self.reason)
        self.names_opaque_body = field is not None
        self.misses_thinking = _MISSING_THINKING.search(self.reason) is not None
        """Whether the provider wants thinking blocks back that the model's plugin did not send."""
        if field:
            self.reason, self.is_hosts_own, self.kind = f"{field[0]} was refused", True, FailureKind.INVALID_REQUEST

    @property
    def is_transient(self) -> bool:
        """Whether the same call may succeed a few seconds later."""
        return self.kind in _TRANSIENT

    @property
    def remedy(self) -> str:
        """What the developer can do about a failure of the model, if its text tells."""
        if self.misses_thinking:
            return "switch thinking off in the model's settings"
        return "choose the Responses protocol in the model's settings" if _RESPONSES_ALONE.search(self.reason) else ""

    def said_plainly(self) -> str:
        """What the provider said, in words that users may read; "" where nothing of the kind is left."""
        said = without_tracebacks(self.reason)
        if self.is_hosts_own or "Traceback" in said:
            return ""
        if found := _PROVIDERS_MESSAGE.search(said) or _PROVIDERS_MESSAGE.search(said.replace('\\"', '"')):
            said = re.sub(r"\\(.)", r"\1", found["message"])
        said = _IDS.sub("", without_directories(_BEFORE_MESSAGE.sub("", said)))
        return " ".join(said.split())[:300].rstrip(".: ")


_TRANSIENT = frozenset(
    {
        FailureKind.RATE_LIMITED,
        FailureKind.UNAVAILABLE,
        FailureKind.CONNECTION,
        FailureKind.CUT_STREAM,
        FailureKind.TIMEOUT,
    }
)
# docs/model-facts.md, "Tools over Chat Completions".
_RESPONSES_ALONE = re.compile(r"\btools?\b.{0,100}not supported.{0,100}/chat/completions", re.IGNORECASE)
# docs/model-facts.md, "Thinking blocks".
_MISSING_THINKING = re.compile(r"expected .?thinking.? or .?redacted_thinking.?, but found", re.IGNORECASE)
# In the JSON of a provider, or Python's repr of it.
_PROVIDERS_MESSAGE = re.compile(r"""(["'])message\1\s*:\s*(["'])(?P<message>(?:\\.|(?!\2)[^\\])++)\2""", re.DOTALL)
_BEFORE_MESSAGE = re.compile(r"^(?:\[[^\]\n]{1,100}\] )?(?:[A-Z][\w ]{1,40}Error, |Error: )?(?:Error code: \d+ - )?")
_IDS = re.compile(
    r"\s*\(?(?:\b(?:in|for|of) )?(?:\b(?:organization|project|(?:request )?id):? )?\b(?:org|proj|req)[-_]\w{2,}\)?"
)

_MAX_WRAPPINGS = 8
"""Dify's own are three."""
_HALF = 20_000
"""Characters; of a longer message so much of the beginning and of the end is kept."""
_WRAPPING = re.compile(
    # The daemon could not make the call or not read the answer; what follows is its own message or the one it read.
    r"(?P<call>(?:invoke|read) (?:llm model|tool response|[a-z ]{1,40}?) failed: )"
    r"|request failed: |req_id: ?\S{0,100} |Plugin\w{1,60}(?:Error|Exception): |tool invoke error: "
    r"|failed to execute tool [^\s:][^:\n]{0,200}: |failed to execute tool: "
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
# A number is a status only after a word for it: text may mention a room 503.
_STATUS = re.compile(
    r"(?:^|https?(?:/[\d.]+)?|status|code|error)[\s:/=(,]*(40[01348]|413|422|429|50[0234]|529)\b", re.IGNORECASE
)


def _unwrap(message: str) -> tuple[str, list[str], int | None, bool]:
    """The innermost message, error names from the inside out, an HTTP status, whether the message is the host's own."""
    reason, is_hosts_own = message, False
    error_types, status = list[str](), None
    for _ in range(_MAX_WRAPPINGS):
        if (found := _WRAPPING.match(reason)) and reason[found.end() :].strip():
            reason, is_hosts_own = reason[found.end() :], found["call"] is not None
        elif status is None and (found := _STATUS_LINE.match(reason)):
            status, is_hosts_own = int(found[1]), True
        elif wrapped := _json_at_the_end(reason):
            name, inner = wrapped
            error_types[:0] = [name] if name else []
            if status is None and (found := _STATUS.search(reason[: reason.find("{")])):
                status = int(found[1])
            reason, is_hosts_own = inner or name, False
        else:
            break
    reason = reason.strip()
    short = reason if len(reason) <= 2 * _HALF else f"{reason[:_HALF]} … {reason[-_HALF:]}"
    return short, error_types, status, is_hosts_own


def _json_at_the_end(text: str) -> tuple[str, str] | None:
    """Name and message of an error, one of which may be "", in the JSON objects that Dify and providers write."""
    begin = text.find("{")
    try:
        wrapped = json.loads(text[begin:]) if begin >= 0 else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(wrapped, dict):
        return None
    name = _text_of(wrapped, "error_type")
    message = _text_of(wrapped, "message")
    if name and not message:  # TGI's form
        message = _text_of(wrapped, "error")
    if not name and not message:
        return None
    return name, message


def _text_of(wrapped: dict[str, Any], field: str) -> str:
    """A field's text, "" where there is none; JSON can escape what a text must not hold."""
    value = wrapped.get(field)
    if isinstance(value, str) and value.strip():
        return wellformed(value)
    return ""


_ESCAPED_NEWLINE = re.compile(r"\\+n")
_FRAMES = re.compile(
    r"Traceback \(most recent call last\):?"
    r"(?: +File (?:(?!Traceback).)*(?=\b\w{1,60}(?:Error|Exception): )|(?:\n[ \t]+.*)*)"
)
_CHAINED = re.compile(r"(?m)(?:^\S.*\n){0,5}\n(?:During handling of|The above exception was the direct cause of) .*\n")
_FRAME = re.compile(r"\s+(?:at\s\S.*[:(]|File \".*\", line \d)")  # of JavaScript and Java, of Python
# The directories before the last name of a path. An address stays: a URL, or the path that an HTTP method asks for.
_NAME = r"[^\s\"'`<>|()\[\]{},;:/]"
_DIRECTORIES = re.compile(
    r"(?P<address>\b(?!file:)\w{1,20}://[^\s\"'<>]*+|\b(?:GET|HEAD|PUT|POST|PATCH|DELETE|url:) /[^\s\"'<>]*+)"
    rf"|(?:\bfile://|(?<![\w.:/\\\]}}%<~-]))/(?:{_NAME}++/++)+(?={_NAME}*\w)"
)


def without_directories(text: str) -> str:
    """A text in which only the last names of absolute paths stay; addresses stay."""
    return _DIRECTORIES.sub(lambda found: found["address"] or "", text)


def without_tracebacks(text: str) -> str:
    """The lines of a text that are not blank; of a traceback only the error that it ends with."""
    if found := _FRAMES.search(text):
        after = _ESCAPED_NEWLINE.sub("\n", text[found.start() :])
        text = text[: found.start()] + "\n" + _FRAMES.sub("", _CHAINED.sub("", after))
    return "\n".join(line.strip() for line in text.splitlines() if line.strip() and not _FRAME.match(line))


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
_URL = re.compile(r"(?<!\w)\w{1,20}://[^\s\"'<>]*+")

_OVER_NOTHING: frozenset[FailureKind | None] = frozenset({None})
"""Where neither the name of the error nor an HTTP status tells the kind."""
_OVER_BAD_REQUEST = _OVER_NOTHING | {FailureKind.INVALID_REQUEST}
"""Under the name of a bad request providers pass on every failure."""
_OVER_RATE_LIMIT = _OVER_BAD_REQUEST | {FailureKind.RATE_LIMITED}
_MEMORY = "documentation, from memory"
_READ = "2026-11"


@dataclass(frozen=True)
class Wording:
    """How a provider words a kind of failure: a pattern in any case, and where and when the words were read."""

    kind: FailureKind
    words: str
    provider: str
    source: str = _MEMORY
    date: str = _READ
    over: frozenset[FailureKind | None] = _OVER_BAD_REQUEST
    """The kinds, told by a name or a status, to which the words are preferred."""


_ANY = "any"
_OURS = "recordings and reports"
# docs/model-facts.md, "How providers word errors". The first row that matches names the kind.
WORDINGS: tuple[Wording, ...] = (
    Wording(FailureKind.QUOTA_SPENT, r"insufficient_quota|billing_hard_limit_reached", "OpenAI", over=_OVER_RATE_LIMIT),
    Wording(FailureKind.QUOTA_SPENT, r"credit balance is too low|\bbilling_error\b", "Anthropic"),
    Wording(
        FailureKind.QUOTA_SPENT,
        r"exceeded_current_quota_error",
        "Moonshot",
        "tests of public clients",
        over=_OVER_RATE_LIMIT,
    ),
    Wording(FailureKind.QUOTA_SPENT, r"insufficient balance", "DeepSeek", over=_OVER_RATE_LIMIT),
    Wording(FailureKind.QUOTA_SPENT, r"余额不足", "Zhipu (1113)", over=_OVER_RATE_LIMIT),
    Wording(FailureKind.QUOTA_SPENT, r"insufficient credits", "OpenRouter", over=_OVER_RATE_LIMIT),
    Wording(FailureKind.QUOTA_SPENT, r"\bArrearage\b", "DashScope"),
    # "Too many tokens" is a prompt that is too long elsewhere, so this row stands before those.
    Wording(
        FailureKind.RATE_LIMITED,
        r"\b(?:throttling|service ?quota ?exceeded)exception\b|too many (?:tokens|requests)[\w ]{0,20}, please wait",
        "Bedrock",
        "plugin bedrock 0.0.80, reports",
    ),
    Wording(FailureKind.RATE_LIMITED, r"\brate_limit_error\b", "Anthropic, in a stream", "client anthropic 2.14.0"),
    Wording(FailureKind.CONTENT_FILTER, r"\bcontent_filter\b|content management policy", "Azure OpenAI, Moonshot"),
    Wording(
        FailureKind.CONTENT_FILTER,
        r"potentially violating our usage policy|\bcontent_policy_violation\b",
        "OpenAI",
    ),
    Wording(FailureKind.CONTENT_FILTER, r"blocked by content filtering policy", "Anthropic"),
    Wording(
        FailureKind.CONTENT_FILTER,
        r"\bdata_?inspection_?failed\b|data may contain inappropriate content",
        "DashScope",
    ),
    Wording(FailureKind.CONTENT_FILTER, r"content exists risk", "DeepSeek"),
    Wording(FailureKind.CONTENT_FILTER, r"request was rejected because it was considered high risk", "Moonshot"),
    Wording(FailureKind.CONTENT_FILTER, r"不安全或敏感内容", "Zhipu (1301)"),
    Wording(FailureKind.CONTENT_FILTER, r"SensitiveContentDetected", "Volcengine"),
    Wording(FailureKind.CONTENT_FILTER, r"(?:input|output) new_sensitive", "MiniMax"),
    Wording(
        FailureKind.CONTEXT_LENGTH,
        r"context[_ ]length|maximum context|context window|prompt is too long|input is too long"
        r"|too many (input )?tokens|reduce the length"
        r"|exceeds? the (model'?s )?(maximum|max|limit of) ((?!output|completion).){0,40}tokens",
        "OpenAI, Anthropic, Bedrock, Gemini, Mistral, MiniMax, DeepSeek, OpenRouter, vLLM",
        "reports",
    ),
    Wording(
        FailureKind.CONTEXT_LENGTH,
        r"exceed context limit|\brequest_too_large\b",
        "Anthropic",
        "continuedev/continue 6080 (2025-06); the second from memory",
    ),
    Wording(FailureKind.CONTEXT_LENGTH, r"exceeded model token limit", "Moonshot", "tests of public clients"),
    Wording(FailureKind.CONTEXT_LENGTH, r"range of input length should be", "DashScope", "tests of public clients"),
    Wording(
        FailureKind.CONTEXT_LENGTH, r"prompt exceeds max length|prompt 超长", "Zhipu (1261)", "tests of public clients"
    ),
    Wording(FailureKind.CONTEXT_LENGTH, r"exceed max message tokens", "Volcengine"),
    Wording(FailureKind.CONTEXT_LENGTH, r"maximum prompt length is", "xAI", "tests of public clients"),
    Wording(
        FailureKind.CONTEXT_LENGTH, r"must be less than max_seq_len", "SiliconFlow", "langgenius/dify 19394 (2025-05)"
    ),
    Wording(FailureKind.CONTEXT_LENGTH, r"longer than the maximum model length of", "vLLM", "tests of public clients"),
    Wording(
        FailureKind.CONTEXT_LENGTH,
        r"exceed_context_size_error|exceeds the available context size",
        "llama.cpp",
        "tests of public clients; the first from memory",
    ),
    Wording(
        FailureKind.CONTEXT_LENGTH,
        r"\binputs`? (?:must have less than|tokens \+ `?max_new_tokens`? must be)",
        "TGI",
    ),
    Wording(FailureKind.CONTEXT_LENGTH, r"reduce your message size", "Groq (413)"),
    Wording(
        FailureKind.UNAVAILABLE,
        r"""\boverloaded_error\b|["']type["']: ?["']error["'], ?["']error["']: ?\{[^{}]{0,300}["']api_error["']""",
        "Anthropic, in a stream",
        "client anthropic 2.14.0; the names from memory",
    ),
    Wording(FailureKind.UNAVAILABLE, r"server had an error (?:while )?processing your request", "OpenAI, in a stream"),
    Wording(
        FailureKind.UNAVAILABLE,
        r"\b(?:internal ?server|model ?not ?ready|model ?error|service ?unavailable)exception\b",
        "Bedrock",
        "plugin bedrock 0.0.80; the last from memory",
    ),
    Wording(FailureKind.TIMEOUT, r"\bmodel ?timeout ?exception\b", "Bedrock", "plugin bedrock 0.0.80"),
    Wording(FailureKind.CUT_STREAM, r"\bmodel ?stream ?error ?exception\b", "Bedrock", "plugin bedrock 0.0.80"),
    Wording(
        FailureKind.UNAUTHORIZED,
        r"\b(?:access ?denied|expired ?token|unrecognized ?client|invalid ?signature)exception\b",
        "Bedrock",
        "plugin bedrock 0.0.80; all but the first from memory",
    ),
    Wording(FailureKind.NOT_FOUND, r"\bresource ?not ?found ?exception\b", "Bedrock", "plugin bedrock 0.0.80"),
    # The words of Dify's daemon and of transports, and words that many use: they tell something only by themselves.
    # The daemon closes a connection on which the API says nothing for its read timeout (240 s).
    Wording(
        FailureKind.TIMEOUT,
        r"exited without response|timed? ?-?out|deadline exceeded|use of closed network connection",
        _ANY,
        _OURS,
        over=_OVER_NOTHING,
    ),
    Wording(
        FailureKind.RATE_LIMITED,
        r"rate.?limit|too many requests|quota exceeded|exceeded your current quota",
        _ANY,
        _OURS,
        over=_OVER_NOTHING,
    ),
    Wording(
        FailureKind.CUT_STREAM,
        r"failed to read (?:data|system header|response)|unexpected eof|incomplete chunked|stream ended",
        _ANY,
        _OURS,
        over=_OVER_NOTHING,
    ),
    Wording(FailureKind.CONNECTION, r"connection refused|no such host|(?:^|: )EOF$", _ANY, _OURS, over=_OVER_NOTHING),
    Wording(FailureKind.TOO_LARGE, r"data length is too long", _ANY, _OURS, over=_OVER_NOTHING),
    Wording(
        FailureKind.UNAUTHORIZED,
        r"unauthorized|forbidden|permission.?denied|(?:invalid|incorrect)[ _]api[ _]key|api key not valid",
        _ANY,
        _OURS,
        over=_OVER_NOTHING,
    ),
    Wording(FailureKind.NOT_FOUND, r"not[ _]found|does not exist|no such", _ANY, _OURS, over=_OVER_NOTHING),
    Wording(
        FailureKind.UNAVAILABLE,
        r"overloaded|unavailable|internal server error|bad gateway|data is nil|magic number mismatch",
        _ANY,
        _OURS,
        over=_OVER_NOTHING,
    ),
    Wording(
        FailureKind.CONNECTION,
        r"connection|disconnected|network|reset by peer|broken pipe|name resolution",
        _ANY,
        _OURS,
        over=_OVER_NOTHING,
    ),
    Wording(
        FailureKind.INVALID_REQUEST,
        r"bad request|invalid|validation error|validationexception|unmarshal|unsupported",
        _ANY,
        _OURS,
        over=_OVER_NOTHING,
    ),
)


def _kind(reason: str, error_types: list[str], status: int | None) -> FailureKind:
    """By the name of the innermost error; else by a status in its words, the status of Dify's answer, its words.

    Under the name of a bad request providers pass on every status, so there the status tells more. Some words tell
    more than either. An address, which may have a time-out as a parameter, tells nothing.
    """
    words = _URL.sub("", without_tracebacks(reason) or reason)
    words = f"{error_types[0][:100]}: {words}" if error_types else words
    named = _ERROR_TYPE.search(" ".join(error_types)) or _ERROR_TYPE.search(words)
    kind, is_open = _ERROR_TYPES[named[0]] if named else None, {None, FailureKind.INVALID_REQUEST}
    if kind in is_open:
        found = _STATUS.search(words)
        status = int(found[1]) if found else status if kind is None else None
    if kind in is_open and status is not None:
        other = FailureKind.UNAVAILABLE if status >= _SERVER_ERRORS else FailureKind.INVALID_REQUEST
        kind = _STATUSES.get(status, other)
    return next((row.kind for row in WORDINGS if kind in row.over and _says(row, words)), kind or FailureKind.UNKNOWN)


def _says(row: Wording, words: str) -> bool:
    return re.search(row.words, words, re.IGNORECASE) is not None
