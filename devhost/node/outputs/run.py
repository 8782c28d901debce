"""The result of one run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from devhost.errors import InvocationError, NodeFailedError, RunFailure, RunStoppedError
from devhost.node.outputs.error import NodeError, node_error
from devhost.node.outputs.outputs import Finding, NodeOutputs
from devhost.node.outputs.usage import spent
from devhost.protocol.golang.values import marshalled
from devhost.protocol.node_stream import failed
from devhost.protocol.wire import JsonObject

ANSWERED = "answered"
STOPPED: Mapping[str, str] = {
    "iteration_limit": "stopped at the limit of rounds",
    "time_limit": "stopped at the limit of time",
    "token_limit": "stopped at the limit of tokens",
    "call_limit": "stopped at the limit of tool calls",
    "repeated_calls": "stopped because the model repeated its calls",
    "approval_required": "waits for the user's approval",
    "model_failed": "stopped because the model failed",
    "length": "cut at the model's limit of output",
    "content_filter": "cut by the provider's content filter",
    "empty": "ended without an answer",
    "answer_invalid": "ended without a valid answer",
}
"""What each stop reason of this repository's strategies means; README.md lists them."""


@dataclass(frozen=True)
class RunError:
    """Why a run did not end well."""

    kind: str
    """The plugin's own error type, the rule that failed the node, or which limit ended the run."""
    message: str
    traceback: str | None = None
    node: NodeError | None = None
    """What the node shows; None if a person stopped the run, or if it did not begin."""

    @classmethod
    def of(cls, failure: RunFailure) -> Self:
        match failure:
            case InvocationError():
                return cls(
                    failure.error_type, failure.message, failure.traceback, node_error(marshalled(failed(failure)))
                )
            case NodeFailedError():
                return cls(failure.rule, str(failure), node=NodeError(failure.shows))
            case RunStoppedError():
                return cls(type(failure).__name__, str(failure))
            case _:
                return cls(type(failure).__name__, str(failure), node=node_error(marshalled(failed(failure))))


@dataclass(frozen=True)
class CallsMade:
    """What the strategy and the tools that it called asked of the host."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """By the calls' type: llm, tool, …"""
    sent: Mapping[str, JsonObject] = field(default_factory=dict)
    """By the id of the request, the parameters of each call of a tool."""
    spent: JsonObject = field(default_factory=lambda: spent([]))
    """The usage that the answers of models brought, summed."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """By the id of the request, the name of each tool that was called, in the order of the calls."""


@dataclass(frozen=True)
class Ending:
    """How a run ended."""

    words: str
    level: Literal["good", "limited", "bad"]
    stop_reason: str = ""
    """As the strategy wrote it; empty if it wrote none."""

    def __str__(self) -> str:
        return f"{self.words} ({self.stop_reason})" if self.stop_reason not in ("", ANSWERED) else self.words


@dataclass(frozen=True)
class Run:
    """One run of the node: its outputs, its error or None, and the rules of Dify that it broke."""

    strategy: str
    outputs: NodeOutputs
    """Of a failed run: the outputs until then. Dify keeps only the text on the screen."""
    error: RunError | None
    findings: list[Finding]
    messages: list[JsonObject]
    elapsed_seconds: float
    """In whole milliseconds, so that a trace and `--json` have exactly what the terminal shows."""
    calls: CallsMade = field(default_factory=CallsMade)
    session_id: str = ""
    """The id of the session on the wire; empty if the plugin ended before it."""

    @property
    def asked(self) -> Mapping[str, int]:
        """How many backwards calls there were, by their type."""
        return self.calls.counts

    @property
    def usage(self) -> Any:  # noqa: ANN401 - a plugin's variable of this name replaces the node's
        """What the run cost: as the node reports it; of a failed run, whose report Dify loses, what `calls` spent."""
        return self.calls.spent if self.error and self.calls.spent["total_tokens"] else self.outputs.usage

    @property
    def ending(self) -> Ending:
        """Why a run that did not fail ended, only its strategy knows: ours say it in the variable `stop_reason`."""
        reason = self.outputs.variables.get("stop_reason")
        code = reason if isinstance(reason, str) else ""
        if self.error is not None:
            return Ending("failed", "bad")
        if code in ("", ANSWERED):
            return Ending("finished", "good", code)
        return Ending(STOPPED.get(code, "ended early"), "limited", code)
