"""Why a tool failed, as the model reads it.

In: a failed call. Out: one short text: what the tool itself said of the reason, since most tools raise to explain what
is wrong, or else one word of ours. Tracebacks, directories and secrets are not in it.
"""

from dataclasses import dataclass

from internal.host.failures import FailureKind, HostFailure
from internal.host.host_message import without_directories, without_tracebacks
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
    reason = without_directories(redactor.error(without_tracebacks(known))).strip()
    return reason if len(reason) <= MAX_REASON_LENGTH else f"{reason[: MAX_REASON_LENGTH - 1]}…"
