"""Why a tool failed, as the model reads it.

In: a failed call. Out: one short text: what the tool itself said of the reason, since most tools raise to explain what
is wrong, or else one word of ours. Tracebacks, directories and secrets are not in it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from internal.host.failures import FailureKind, HostFailure
from internal.text.redaction import KnownSecrets, Redactor

TOOL_FAILED = "tool invoke error: failed to execute tool"
MAX_REASON_LENGTH = 500
"""Characters."""

# For failures without a message of the tool.
_WORDS = {
    FailureKind.TIMEOUT: "timeout",
    FailureKind.RATE_LIMITED: "rate limited",
    FailureKind.UNAUTHORIZED: "unauthorized",
    FailureKind.NOT_FOUND: "not found",
    FailureKind.INVALID_REQUEST: "invalid input",
    FailureKind.TOO_LARGE: "its result is too large",
    FailureKind.UNAVAILABLE: "unavailable",
    FailureKind.CONNECTION: "unavailable",
    FailureKind.CONNECTION_REFUSED: "unavailable",
    FailureKind.CUT_STREAM: "unavailable",
}

_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_ESCAPED_NEWLINE = re.compile(r"\\+n")
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


@dataclass(frozen=True)
class ToolFailure:
    """A call that failed before it had sent its whole result."""

    kind: FailureKind
    message: str
    """For the log, whole."""
    told: str = f"{TOOL_FAILED}: timeout"
    """What the model reads."""

    @classmethod
    def of(cls, failure: HostFailure, secrets: KnownSecrets) -> "ToolFailure":
        said = "" if failure.is_hosts_own else plain_reason(failure.reason, secrets.for_model)
        reason = said or _WORDS.get(failure.kind, "")
        return cls(failure.kind, failure.reason, f"{TOOL_FAILED}: {reason}" if reason else TOOL_FAILED)


TIMED_OUT = ToolFailure(FailureKind.TIMEOUT, "no answer before the run's deadline")
NOT_BEGUN = ToolFailure(FailureKind.TIMEOUT, "the run's deadline came before the call's turn")


def plain_reason(message: str, redactor: Redactor) -> str:
    """The first lines of a message, without secrets, tracebacks and directories."""
    known = redactor.text(message)  # first of all: a secret may have several lines
    lines = "\n".join(line.strip() for line in _without_tracebacks(known) if line.strip())
    reason = _DIRECTORIES.sub(_last_name, redactor.error(lines)).strip()
    return reason if len(reason) <= MAX_REASON_LENGTH else f"{reason[: MAX_REASON_LENGTH - 1]}…"


def _last_name(found: re.Match[str]) -> str:
    """What stays of the directories before a file's name; of a path that ends with one of them, its name."""
    if found["address"] is not None:
        return found["address"]
    if not _PATH_ENDS.match(found.string, found.end()):
        return ""
    named = _LAST_NAME.search(found[0])
    return named[0] if named else ""


def _without_tracebacks(message: str) -> Iterator[str]:
    """The lines of a message; of a traceback only the error that it ends with."""
    before, found, after = message.partition(_TRACEBACK)
    text = before + found + _ESCAPED_NEWLINE.sub("\n", after)
    in_traceback, errors = False, list[str]()
    for line in text.splitlines():
        if _TRACEBACK in line:
            yield line.partition(_TRACEBACK)[0]
            in_traceback = True
        elif in_traceback and line.startswith(_CHAINED):
            errors = []
        elif in_traceback and line[:1].strip():
            errors.append(line)
        elif not in_traceback and not _FRAME.match(line):
            yield line
    yield from errors
