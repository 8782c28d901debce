"""Sentences for the log, stop reasons, and the errors that end a run early: the agent's own and Dify's five."""

import logging
import traceback
from collections.abc import Callable, Generator, Iterator
from enum import StrEnum
from typing import Self

from dify_plugin.entities.model.llm import LLMModelConfig
from dify_plugin.errors.model import (
    InvokeAuthorizationError,
    InvokeBadRequestError,
    InvokeConnectionError,
    InvokeError,
    InvokeRateLimitError,
    InvokeServerUnavailableError,
)

from internal.host.failures import FailureKind, HostFailure
from prompt import error_texts


class _Sentence(str):
    """A sentence for the log. A log without contents shows ``OurWords``, but only the size of ``Quoting``.

    A plain ``str`` is therefore a type error.
    """

    __slots__ = ()

    def of(self, name: str) -> Self:
        """Return the sentence with the name of a tool or parameter before it. The type stays the same."""
        return type(self)(f"{name}: {self}")


class OurWords(_Sentence):
    """A sentence without quotations. A log without contents may show it."""


class Quoting(_Sentence):
    """A sentence that quotes a value, a schema, or the words of a user, a model, a tool or the host."""


type Sentence = OurWords | Quoting
type Note = Callable[[Sentence], None]


class StopReason(StrEnum):
    """The reason why the tool phase ended. The last four describe the final turn and take precedence."""

    ANSWERED = "answered"
    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    TOKEN_LIMIT = "token_limit"  # noqa: S105 - a word
    CALL_LIMIT = "call_limit"
    SIZE_LIMIT = "size_limit"
    """The run has reached its memory limit, or one turn of the model has reached its maximum length."""
    REPEATED_CALLS = "repeated_calls"
    UNPARSED_CALL = "unparsed_call"
    """The model wrote a call as text, was told that it did not run, and wrote one again."""
    APPROVAL_REQUIRED = "approval_required"
    MODEL_FAILED = "model_failed"
    """The model failed after a call that the user had approved. An error would lose the state with its result."""
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    EMPTY = "empty"
    ANSWER_INVALID = "answer_invalid"


_LOGGER = logging.getLogger(__name__)
_MAX_ERROR_LENGTH = 4_000
"""Maximum characters of an error that the node shows."""
_MAX_TRACEBACK_LENGTH = 20_000
"""Maximum characters of a traceback in the log, which is a single line on stdout."""


class AgentError(Exception):
    """An error that ends the run. The text is for the node and ``detail`` for the log; both are already redacted."""

    def __init__(self, text: str, detail: str = "") -> None:
        super().__init__(text)
        self.detail = detail or text


class InvalidParameters(AgentError):  # noqa: N818 - the name says what happened
    """A parameter of the node cannot be used as it is."""


class ModelCallFailed(AgentError):  # noqa: N818 - as above
    """The model call failed and nothing is left to try."""

    def __init__(self, text: str, kind: FailureKind, detail: str) -> None:
        super().__init__(text, detail)
        self.kind = kind

    @classmethod
    def of(cls, model: LLMModelConfig, failure: HostFailure) -> "ModelCallFailed":
        """Describe how a call of this model failed. The provider's message is quoted only if no other advice helps."""
        named = f"model {model.model} ({model.provider.rpartition('/')[2]})"
        said = failure.said_plainly() or error_texts.SEE_THE_LOG
        sentence = error_texts.MODEL_FAILED[failure.kind].format(model=named, said=said)
        advice = ""
        if failure.remedy:
            advice = f" ({failure.remedy})"
        return cls(f"{sentence}.{advice}", failure.kind, f"{failure.kind}: {failure.reason}{advice}")

    def then(self, later: "ModelCallFailed") -> "ModelCallFailed":
        """Combine this failure with a later failure of another model, which provides the advice."""
        return ModelCallFailed(f"{self} {later}", later.kind, f"{self.detail}; {later.detail}")


# Dify recognizes the five errors by the exact names of their classes, not by subclasses, and shows only their message.
# For any other class the node shows the traceback that the SDK sends (docs/host-facts.md, "Errors at the node").
_AT_THE_NODE: dict[FailureKind, type[InvokeError]] = {
    FailureKind.RATE_LIMITED: InvokeRateLimitError,
    FailureKind.QUOTA_SPENT: InvokeRateLimitError,
    FailureKind.UNAUTHORIZED: InvokeAuthorizationError,
    FailureKind.CONNECTION: InvokeConnectionError,
    FailureKind.CUT_STREAM: InvokeConnectionError,
    FailureKind.TIMEOUT: InvokeConnectionError,
    FailureKind.UNAVAILABLE: InvokeServerUnavailableError,
    FailureKind.CONTEXT_LENGTH: InvokeBadRequestError,
    FailureKind.TOO_LARGE: InvokeBadRequestError,
    FailureKind.CONTENT_FILTER: InvokeBadRequestError,
    FailureKind.EMPTY: InvokeServerUnavailableError,
    FailureKind.INVALID_REQUEST: InvokeBadRequestError,
    FailureKind.NOT_FOUND: InvokeBadRequestError,
    FailureKind.UNKNOWN: InvokeServerUnavailableError,
}


def reported[T](messages: Iterator[T]) -> Generator[T, None, None]:
    """Yield the messages of a run, and raise every failure as one of the five errors that Dify knows.

    The error is raised outside of any exception handler, because the SDK would otherwise send the traceback of the
    whole chain.
    """
    try:
        yield from messages
    except AgentError as failure:
        error = node_error(failure)
    except Exception as defect:  # noqa: BLE001 - nothing else may reach the SDK
        log_defect(defect)
        error = InvokeServerUnavailableError(error_texts.INTERNAL_ERROR.format(name=type(defect).__name__))
    else:
        return
    raise error from None


def node_error(failure: AgentError) -> InvokeError:
    """Return the error of Dify's that corresponds to a failure, with its text on one line."""
    kind = FailureKind.INVALID_REQUEST
    if isinstance(failure, ModelCallFailed):
        kind = failure.kind
    return _AT_THE_NODE[kind](" ".join(str(failure).split())[:_MAX_ERROR_LENGTH])


def log_defect(defect: BaseException) -> None:
    """Write the types and places of a defect to the plugin's log, without messages, which may quote a secret."""
    lines = list[str]()
    seen = [defect]
    for each in seen:
        lines += [f"{type(each).__name__} at", *traceback.format_tb(each.__traceback__)]
        if cause := each.__cause__ or each.__context__:
            seen += [cause]
    _LOGGER.error("internal error: %s", "\n".join(lines)[:_MAX_TRACEBACK_LENGTH])
