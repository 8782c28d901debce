"""What came of one run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from devhost.errors import InvocationError, NodeFailedError, RunFailure, RunStoppedError, RunTimeoutError
from devhost.node_error import FAILED, NodeError, node_error
from devhost.node_outputs import Finding, NodeOutputs
from devhost.wire import JsonObject


@dataclass(frozen=True)
class RunError:
    kind: str
    """The plugin's own error type, the rule that failed the node, or which limit ended the run."""
    message: str
    traceback: str | None = None
    node: NodeError | None = None
    """What the node shows; nothing when a person stopped the run, or when it never began."""

    @classmethod
    def of(cls, failure: RunFailure) -> Self:
        match failure:
            case InvocationError():
                return cls(failure.error_type, failure.message, failure.traceback, node_error(_line(failure)))
            case NodeFailedError():
                return cls(failure.rule, str(failure), node=NodeError(failure.shows))
            case RunStoppedError():
                return cls(type(failure).__name__, str(failure))
            case _:
                return cls(type(failure).__name__, str(failure), node=node_error(_line(failure)))


def _line(failure: RunFailure) -> str:
    """What the daemon tells the node of it: JSON in a text, and what the plugin raised is JSON in a text of that."""
    match failure:
        case InvocationError():
            said = {"args": {"traceback": failure.traceback}, "error_type": failure.error_type}
            error_type, message = "PluginInvokeError", _written({**said, "message": failure.message})
        case RunTimeoutError():
            error_type, message = "PluginDaemonInternalServerError", "killed by timeout"
        case _:
            error_type, message = "PluginDaemonInternalServerError", str(failure)
    error = _written({"message": message, "error_type": error_type, "args": None})
    return _written({"code": FAILED, "message": error, "data": None})


def _written(value: JsonObject) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class Run:
    strategy: str
    outputs: NodeOutputs
    """Of a run that failed: what there was until then. Dify keeps nothing of it but the text on the screen."""
    error: RunError | None
    findings: list[Finding]
    messages: list[JsonObject]
    elapsed_seconds: float
    asked: Mapping[str, int] = field(default_factory=dict)
    """How many backwards calls there were, by their type: llm, tool, …"""
    session_id: str = ""
    """The invocation's on the wire; empty when the plugin was gone before it."""
