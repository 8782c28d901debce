"""The result of one run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from devhost.errors import InvocationError, NodeFailedError, RunFailure, RunStoppedError
from devhost.node.outputs.error import NodeError, node_error
from devhost.node.outputs.outputs import Finding, NodeOutputs
from devhost.protocol.golang.values import marshalled
from devhost.protocol.node_stream import failed
from devhost.protocol.wire import JsonObject


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
    asked: Mapping[str, int] = field(default_factory=dict)
    """How many backwards calls there were, by their type: llm, tool, …"""
    session_id: str = ""
    """The id of the session on the wire; empty if the plugin ended before it."""
