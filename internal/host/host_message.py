"""An error message of the host, unwrapped, and in plain words.

In: what a failed backwards call reports: a bare text in which the daemon, Dify's API and the plugin that failed have
wrapped each other's messages (docs/host-facts.md, "Failed calls"). Out: the innermost message, what the wrappings said
about it, and its text without tracebacks and directories.
"""

import json
import re
from dataclasses import dataclass

from internal.text.wellformed import wellformed

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
