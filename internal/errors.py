"""What ends a run early: the agent's own exceptions, and the errors that Dify knows.

AgentError                 the run cannot go on; its text is written for the developer
├── InvalidParameters      a parameter of the node must be changed before a run makes sense
├── PromptTooLarge         what the node was given does not fit into one request even after trimming
└── ModelCallFailed        the model's side failed for good; says what kind of failure and what the provider said

Each text is redacted where it is raised. What the model can correct is never an exception: it is the text of a tool
result.

Dify knows five errors of ``dify_plugin.errors.model`` by the names of their classes, subclasses not included, and shows
their message alone. For any other class the node shows the traceback that the SDK sends with it
(docs/host-facts.md, "Errors at the node"). ``reported`` therefore turns each exception into exactly one of the five.
"""

import logging
import traceback
from collections.abc import Generator, Iterator
from typing import cast

from dify_plugin.errors.model import (
    InvokeAuthorizationError,
    InvokeBadRequestError,
    InvokeConnectionError,
    InvokeError,
    InvokeRateLimitError,
    InvokeServerUnavailableError,
)

from internal.host.failures import FailureKind

_LOGGER = logging.getLogger(__name__)
_MAX_TRACEBACK_LENGTH = 20_000
"""Characters; the log is a line on stdout."""


class AgentError(Exception):
    """The run cannot go on."""


class InvalidParameters(AgentError):  # noqa: N818 - says what happened
    """A parameter of the node cannot be used as it is."""


class PromptTooLarge(AgentError):  # noqa: N818 - as above
    """The request would not pass the host's line limit."""


class ModelCallFailed(AgentError):  # noqa: N818 - as above
    """The model call failed and nothing is left to try."""

    def __init__(self, text: str, kind: FailureKind) -> None:
        super().__init__(text)
        self.kind = kind


_CLASSES: dict[FailureKind, type[InvokeError]] = {
    FailureKind.RATE_LIMITED: InvokeRateLimitError,
    FailureKind.UNAUTHORIZED: InvokeAuthorizationError,
    FailureKind.CONNECTION: InvokeConnectionError,
    FailureKind.CONNECTION_REFUSED: InvokeConnectionError,
    FailureKind.CUT_STREAM: InvokeConnectionError,
    FailureKind.TIMEOUT: InvokeConnectionError,
    FailureKind.UNAVAILABLE: InvokeServerUnavailableError,
    FailureKind.UNKNOWN: InvokeServerUnavailableError,
}
"""Any other kind is something that the developer has to change: a bad request."""


def reported[T](messages: Iterator[T]) -> Generator[T, None, None]:
    """Pass a run's messages on; what ends the run early is raised as an error that Dify knows.

    The error is raised where no other is being handled: the SDK sends the traceback of the whole chain along.
    """
    try:
        yield from messages
    except AgentError as failure:
        error = node_error(failure)
    except Exception as defect:  # noqa: BLE001 - nothing else may reach the SDK
        log_defect(defect)
        error = InvokeServerUnavailableError(f"internal error: {type(defect).__name__}")
    else:
        return
    raise error from None


def node_error(failure: AgentError) -> InvokeError:
    """The error that Dify knows, with the failure's text on one line."""
    kind = failure.kind if isinstance(failure, ModelCallFailed) else FailureKind.INVALID_REQUEST
    return _CLASSES.get(kind, InvokeBadRequestError)(" ".join(str(failure).split()))


def log_defect(defect: Exception) -> None:
    """Write where a defect arose into the plugin's own log: types and places, since a message may quote a secret."""
    lines, seen = list[str](), cast("BaseException | None", defect)
    while seen is not None:
        lines += [f"{type(seen).__name__} at", *traceback.format_tb(seen.__traceback__)]
        seen = seen.__cause__ or seen.__context__
    _LOGGER.error("internal error: %s", "\n".join(lines)[:_MAX_TRACEBACK_LENGTH])
