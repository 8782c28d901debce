"""What Dify's Agent node shows for a run that failed (plugin client of API 1.17.0).

In: a line that the node reads from the daemon. Out: the text at the failed node, how Dify classes it, and whether the
node's inputs can still be seen.
"""

import json
from dataclasses import dataclass
from typing import Any

from devhost.protocol.node_stream import FAILED

REQUEST_ID = "0123456789"
"""In place of the id that Dify gives each request."""
INVOKE_ERROR = "PluginInvokeError"
"""With which the daemon wraps what a plugin raises."""
MODEL_ERRORS = frozenset(
    {
        "InvokeRateLimitError",
        "InvokeAuthorizationError",
        "InvokeBadRequestError",
        "InvokeConnectionError",
        "InvokeServerUnavailableError",
    }
)
"""Dify recognises these by the names of their classes and shows only their sentence."""


@dataclass(frozen=True)
class NodeError:
    shows: str
    type: str = "WorkflowNodeError"
    """Empty for an error that the plugin or its caller caused."""
    inputs_kept: bool = False


@dataclass(frozen=True)
class PluginError:
    """What a plugin raised, taken out of the text of a call that failed for it."""

    before: str
    """The words before it, such as `invoke tool failed: `."""
    error_type: str
    message: str
    traceback: str


def plugin_error(text: str) -> PluginError | None:
    """None for a text in which no plugin's error stands."""
    before, found, wrapped = text.partition(f"{INVOKE_ERROR}: ")
    try:
        said: Any = json.JSONDecoder().raw_decode(wrapped)[0] if found else None
        if said["error_type"] == INVOKE_ERROR:  # an error of a model is wrapped twice
            said = json.loads(said["message"])
        traceback = str((said.get("args") or {}).get("traceback") or "")
        return PluginError(before, str(said["error_type"]), str(said["message"]), traceback)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def node_error(line: str) -> NodeError:
    """For a line that is an error, or that the node cannot read as a message."""
    try:
        envelope = json.loads(line)
    except ValueError:
        return NodeError(line)
    if not isinstance(envelope, dict):
        return NodeError(line)
    if envelope.get("code") == FAILED:
        return _of_daemon(json.loads(envelope["message"]))
    return NodeError(str(envelope.get("error", line)))


def _of_daemon(error: dict[str, object]) -> NodeError:
    error_type, message = str(error["error_type"]), str(error["message"])
    if error_type != INVOKE_ERROR:
        return NodeError(f"req_id: {REQUEST_ID} {error_type}: {message}")
    said = json.loads(message)
    if said.get("error_type") in MODEL_ERRORS:
        return NodeError(str(said["message"]))
    shows = f"Failed to transform agent message: req_id: {REQUEST_ID} {error_type}: {message}"
    return NodeError(shows, type="", inputs_kept=True)
