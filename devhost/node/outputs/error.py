"""What Dify's Agent node shows for a run that failed (plugin client of API 1.17.0).

In: a line that the node reads from the daemon. Out: the text at the failed node, how Dify classes it, and whether the
node's inputs can still be seen.
"""

import json
from dataclasses import dataclass

from devhost.protocol.node_stream import FAILED

REQUEST_ID = "0123456789"
"""In place of the id that Dify gives each request."""
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
    if error_type != "PluginInvokeError":
        return NodeError(f"req_id: {REQUEST_ID} {error_type}: {message}")
    said = json.loads(message)
    if said.get("error_type") in MODEL_ERRORS:
        return NodeError(str(said["message"]))
    shows = f"Failed to transform agent message: req_id: {REQUEST_ID} {error_type}: {message}"
    return NodeError(shows, type="", inputs_kept=True)
