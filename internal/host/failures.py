"""Parses failure messages of the host: removes wrappings, finds the kind (error_words.toml), and words them plainly.

The SDK reports every failed call as a bare ``Exception(message)``, so the text is the only information
(docs/host-facts.md, "Failed calls").
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from internal.text.texts import wellformed
from prompt import error_texts


class FailureKind(StrEnum):
    """The kinds of failures, whose values appear in error messages."""

    RATE_LIMITED = "rate limited"
    QUOTA_SPENT = "quota used up"
    """The quota or the balance is used up, which, unlike a rate limit, does not end within a minute."""
    UNAVAILABLE = "unavailable"
    CONNECTION = "connection failed"
    CUT_STREAM = "stream cut off"
    CONTEXT_LENGTH = "context length exceeded"
    CONTENT_FILTER = "content filter"
    EMPTY = "nothing returned"
    INVALID_REQUEST = "invalid request"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not found"
    TOO_LARGE = "too large"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown error"


class HostFailure(Exception):  # noqa: N818 - the name says what happened
    """A failed call to the host. For a model it becomes ModelCallFailed, and for a tool a result."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.reason, error_types, status, is_hosts_own = _unwrap(message)
        """The innermost message, which comes from the provider or the tool unless ``is_hosts_own``."""
        self.is_hosts_own = is_hosts_own or _HOSTS_OWN.match(self.reason) is not None
        """Whether the message is the host's own, because its transport failed or it refused the request."""
        self.kind = _kind(self.reason, error_types, status)
        field = _OPAQUE_FIELD.search(self.reason)
        self.names_opaque_body = field is not None
        self.misses_thinking = error_words().missing_thinking.search(self.reason) is not None
        """Whether the provider requires earlier thinking that the request did not have."""
        self.refuses_long_description = error_words().long_description.search(self.reason) is not None
        """Whether the provider refuses the description of a tool or a parameter because of its length."""
        if field:
            self.reason = f"{field[0]} was refused"
            self.is_hosts_own = True
            self.kind = FailureKind.INVALID_REQUEST

    @property
    def is_transient(self) -> bool:
        """Whether the same call may succeed a few seconds later."""
        return self.kind in error_words().transient

    @property
    def remedy(self) -> str:
        """Advice for the developer about a failure of the model; "" if the message suggests none."""
        if self.misses_thinking:
            return error_texts.SWITCH_THINKING_OFF
        if error_words().responses_alone.search(self.reason):
            return error_texts.CHOOSE_RESPONSES
        return ""

    def said_plainly(self) -> str:
        """Return the provider's message in a form that users may read; "" if nothing readable is left."""
        said = without_tracebacks(self.reason)
        if self.is_hosts_own or "Traceback" in said:
            return ""
        if found := _PROVIDERS_MESSAGE.search(said) or _PROVIDERS_MESSAGE.search(said.replace('\\"', '"')):
            said = re.sub(r"\\(.)", r"\1", found["message"])
        said = _IDS.sub("", without_directories(_BEFORE_MESSAGE.sub("", said)))
        return " ".join(said.split())[:300].rstrip(".: ")


# The message in a provider's JSON, or in Python's repr of it.
_PROVIDERS_MESSAGE = re.compile(r"""(["'])message\1\s*:\s*(["'])(?P<message>(?:\\.|(?!\2)[^\\])++)\2""", re.DOTALL)
_BEFORE_MESSAGE = re.compile(r"^(?:\[[^\]\n]{1,100}\] )?(?:[A-Z][\w ]{1,40}Error, |Error: )?(?:Error code: \d+ - )?")
_IDS = re.compile(
    r"(?<!\s)\s*+\(?(?:\b(?:in|for|of) )?"
    r"(?:\b(?:organization|project|(?:request )?id):? )?\b(?:org|proj|req)[-_]\w{2,}\)?"
)

_MAX_WRAPPINGS = 8
"""Maximum number of nested wrappings. Dify itself adds three."""
_HALF = 20_000
"""Number of characters that are kept at the beginning and at the end of a longer message."""
_READ_FOR_KIND = 4_000
"""Number of characters at the beginning and at the end that are searched for the kind, because there are many
patterns."""
_WRAPPING = re.compile(
    # The daemon could not make the call or read the answer. The daemon's own message or the received message follows.
    r"(?P<call>(?:invoke|read) (?:llm model|tool response|[a-z ]{1,40}?) failed: )"
    r"|request failed: |req_id: ?\S{0,100} |Plugin\w{1,60}(?:Error|Exception): |tool invoke error: "
    r"|failed to execute tool [^\s:][^:\n]{0,200}: |failed to execute tool: "
)
_STATUS_LINE = re.compile(r"request failed with status code: (\d{3}) and respond with: ?")
# Messages of Go's net and http packages, the daemon's reader and checks, and the SDK's limits.
_HOSTS_OWN = re.compile(
    r'(?:Post|Get) "|(?:dial|read|write) tcp\b|(?:unexpected )?EOF\b|data is nil|magic number mismatch'
    r"|data length is too long|failed to read (?:data|system header)|unmarshal backwards invoke request failed"
    r"|unsupported invoke type|permission denied, you need to enable|invocation exited without response"
    r"|Failed to parse response: "
)
# The field of a request that the daemon refuses. Decoders quote its value after it. A tool may mention a column or
# field called opaque_body, so the path must point into the request's messages.
_OPAQUE_FIELD = re.compile(r"prompt_messages[\w.\[\]]{0,80}\bopaque_body")
# A number counts as a status only after a word such as "status", because a text may mention a room 503.
_STATUS = re.compile(
    r"""(?:^|https?(?:/[\d.]+)?|status|code|error)[\s:/=(,"']*(40[0-4]|408|413|422|429|50[0234]|529)\b""", re.IGNORECASE
)


def _unwrap(message: str) -> tuple[str, list[str], int | None, bool]:
    """Return the innermost message, error names from the inside out, an HTTP status, and ``is_hosts_own``."""
    reason = message
    is_hosts_own = False
    error_types = list[str]()
    status = None
    for _ in range(_MAX_WRAPPINGS):
        if (found := _WRAPPING.match(reason)) and reason[found.end() :].strip():
            reason = reason[found.end() :]
            is_hosts_own = found["call"] is not None
        elif status is None and (found := _STATUS_LINE.match(reason)):
            status = int(found[1])
            is_hosts_own = True
        elif wrapped := _json_at_the_end(reason):
            name, inner = wrapped
            if name:
                error_types[:0] = [name]
            else:
                error_types[:0] = []
            if status is None and (found := _STATUS.search(reason[: reason.find("{")])):
                status = int(found[1])
            reason = inner or name
            is_hosts_own = False
        else:
            break
    reason = reason.strip()
    if len(reason) <= 2 * _HALF:
        short = reason
    else:
        short = f"{reason[:_HALF]} … {reason[-_HALF:]}"
    return short, error_types, status, is_hosts_own


def _json_at_the_end(text: str) -> tuple[str, str] | None:
    """Return the name and the message of an error from the JSON of Dify or a provider. Either may be ""."""
    begin = text.find("{")
    try:
        wrapped = None
        if begin >= 0:
            wrapped = json.loads(text[begin:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(wrapped, dict):
        return None
    name = _text_of(wrapped, "error_type")
    code = _text_of(wrapped, "code")
    message = _text_of(wrapped, "message")
    if not message and (name or code):  # TGI and xAI use this form
        message = _text_of(wrapped, "error")
    if message:
        name = name or code
    if not name and not message:
        return None
    return name, message


def _text_of(wrapped: dict[str, Any], field: str) -> str:
    """Return the text of a field, or "", made well-formed, because JSON can escape forbidden characters."""
    value = wrapped.get(field)
    if isinstance(value, str) and value.strip():
        return wellformed(value)
    return ""


_ESCAPED_NEWLINE = re.compile(r"(?<!\\)\\++n")
_FRAMES = re.compile(
    r"Traceback \(most recent call last\):?"
    r"(?: +File (?:(?!Traceback).)*(?=\b\w{1,60}(?:Error|Exception): )|(?:\n[ \t]+.*)*)"
)
_CHAINED = re.compile(r"(?m)(?:^\S.*\n){0,5}\n(?:During handling of|The above exception was the direct cause of) .*\n")
_FRAME = re.compile(r"\s+(?:at\s\S.*[:(]|File \".*\", line \d)")  # frames of JavaScript and Java, and of Python
# An absolute path. A URL, or the path after an HTTP method, is an address and not a path.
_NAME = r"[^\s\"'`<>|()\[\]{},;:/]"
_DIRECTORIES = re.compile(
    r"(?P<address>\b(?!file:)\w{1,20}://[^\s\"'<>]*+|\b(?:GET|HEAD|PUT|POST|PATCH|DELETE|url:) /[^\s\"'<>]*+)"
    rf"|(?:\bfile://|(?<![\w.:/\\\]}}%<~-]))/(?P<directory>{_NAME}++/++)(?:{_NAME}++/++)*+{_NAME}*+"
)


def without_directories(text: str) -> str:
    """Replace each absolute path in a text with its last name. Addresses stay unchanged."""
    return _DIRECTORIES.sub(_last_name, text)


def _last_name(path: re.Match[str]) -> str:
    """Return the last name with a letter or digit in a path, and the text after it. An address stays unchanged."""
    text = path[0]
    if path["address"]:
        return text
    end = path.end("directory") - path.start()
    last = next((at for at in range(len(text) - 1, end - 1, -1) if text[at].isalnum() or text[at] == "_"), -1)
    if last < 0:
        return text
    return text[text.rfind("/", 0, last) + 1 :]


def without_tracebacks(text: str) -> str:
    """Remove blank lines from a text, and everything but the final error from a traceback."""
    if found := _FRAMES.search(text):
        after = _ESCAPED_NEWLINE.sub("\n", text[found.start() :])
        text = text[: found.start()] + "\n" + _FRAMES.sub("", _CHAINED.sub("", after))
    return "\n".join(line.strip() for line in text.splitlines() if line.strip() and not _FRAME.match(line))


_SERVER_ERRORS = 500
_ESCAPED = re.compile(r"(?<!\\)\\++u([\da-fA-F]{4})")
_URL = re.compile(r"(?<!\w)\w{1,20}://[^\s\"'<>#]*+")

# Plugins use these names for every failure, so the provider's own words are more precise.
_COLLECTIVE = frozenset({None, FailureKind.INVALID_REQUEST, FailureKind.CONNECTION, FailureKind.UNAVAILABLE})
_OVER: dict[str, frozenset[FailureKind | None]] = {
    "nothing": frozenset({None}),
    "names for every failure": _COLLECTIVE,
    "anything": frozenset({None, *FailureKind}),
}


@dataclass(frozen=True)
class Wording:
    """The words with which providers report a kind of failure: docs/model-facts.md, "How providers word errors"."""

    kind: FailureKind
    words: re.Pattern[str]
    provider: str
    source: str
    date: str
    over: frozenset[FailureKind | None]
    """The kinds that these words override, if a name or a status suggests such a kind."""

    @classmethod
    def read(cls, kind: str, words: str, over: str = "names for every failure", **read: str) -> "Wording":
        """Create a wording from a row of the file. ``read`` has the provider, the source and the date of reading."""
        if over not in _OVER:
            raise ValueError(f"{over!r} is not one of {', '.join(map(repr, _OVER))}")
        return cls(FailureKind(kind), re.compile(words, re.IGNORECASE), over=_OVER[over], **read)

    def is_in(self, text: str) -> bool:
        """Return whether the text has the words and, if they name a limit, a request above this limit."""
        found = self.words.search(text)
        if found is None or "limit" not in self.words.groupindex:
            return found is not None
        limit, requested = (int(found[name].replace(",", "")) for name in ("limit", "requested"))
        return requested > limit


def read_wordings(rows: list[dict[str, str]]) -> tuple[Wording, ...]:
    """Parse the rows of the file. Raises ``ValueError`` with the wrong row and the reason."""
    wordings = []
    for number, row in enumerate(rows, start=1):
        try:
            wordings.append(Wording.read(**row))
        except (TypeError, ValueError, re.error) as mistake:
            raise ValueError(f"{_FILE.name}, wording {number}: {mistake}") from mistake
    return tuple(wordings)


_FILE = Path(__file__).with_name("error_words.toml")


@dataclass(frozen=True)
class ErrorWords:
    """The content of error_words.toml. The file explains its parts."""

    wordings: tuple[Wording, ...]
    types: Mapping[str, FailureKind]
    any_type: re.Pattern[str]
    statuses: Mapping[int, FailureKind]
    transient: frozenset[FailureKind]
    missing_thinking: re.Pattern[str]
    long_description: re.Pattern[str]
    responses_alone: re.Pattern[str]


@cache
def error_words() -> ErrorWords:
    """Return the content of the file, which is read at the first failure, because compiling its patterns takes time."""
    read = tomllib.loads(_FILE.read_text("utf-8"))
    return ErrorWords(
        wordings=read_wordings(read["wording"]),
        types={name: FailureKind(kind) for name, kind in read["names"].items()},
        any_type=re.compile("|".join(read["names"])),
        statuses={int(status): FailureKind(kind) for status, kind in read["statuses"].items()},
        transient=frozenset(map(FailureKind, read["transient"])),
        missing_thinking=re.compile(read["missing_thinking"], re.IGNORECASE),
        long_description=re.compile(read["long_description"], re.IGNORECASE),
        responses_alone=re.compile(read["responses_alone"], re.IGNORECASE),
    )


def _kind(reason: str, error_types: list[str], status: int | None) -> FailureKind:
    """Determine the kind from the name of the innermost error, or else from a status or the words in its text.

    Plugins use some names for every failure; then a status is more precise. Some words are more precise than a name or
    a status. Only the fragment of an address is searched, because the rest may contain a timeout as a parameter.
    """
    words = _URL.sub("", without_tracebacks(reason) or reason)
    words = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), words)
    if len(words) > 2 * _READ_FOR_KIND:
        words = f"{words[:_READ_FOR_KIND]} … {words[-_READ_FOR_KIND:]}"
    if error_types:
        words = f"{error_types[0][:100]}: {words}"
    known = error_words()
    named = known.any_type.search(" ".join(error_types)) or known.any_type.search(words)
    kind = None
    if named:
        kind = known.types[named[0]]
    if kind in _COLLECTIVE:
        found = _STATUS.search(words)
        if found:
            status = int(found[1])
        elif kind is not None:
            status = None
    if kind in _COLLECTIVE and status is not None:
        other = FailureKind.INVALID_REQUEST
        if status >= _SERVER_ERRORS:
            other = FailureKind.UNAVAILABLE
        kind = known.statuses.get(status, other)
    told = (row.kind for row in known.wordings if kind in row.over and row.is_in(words))
    return next(told, kind or FailureKind.UNKNOWN)
