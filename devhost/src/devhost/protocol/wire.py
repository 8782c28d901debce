"""The messages between the host and a plugin, as values.

All transports carry the same objects, but each transport frames them in its own way.
"""

import json
from dataclasses import dataclass
from typing import Any

from devhost.errors import WireError
from devhost.golang import well_formed

type JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Streamed:
    """One message of the plugin's answer, which can be any JSON value."""

    data: Any


@dataclass(frozen=True)
class Invoked:
    """A backwards call: the plugin asks the host for a model, a tool, or something else."""

    request_id: str
    kind: str
    request: JsonObject


@dataclass(frozen=True)
class Failed:
    """An error from the plugin or the daemon."""

    error_type: str
    message: str
    args: JsonObject | None = None
    """The details of the error, including the traceback; None for an error from the daemon."""


@dataclass(frozen=True)
class Ended:
    """The normal end of a session."""


@dataclass(frozen=True)
class Lost:
    """The plugin has ended, and the session with it. This is not a message."""

    reason: str


type SessionEvent = Streamed | Invoked | Failed | Ended | Lost


def read_session_event(data: object) -> SessionEvent:
    """Parses a message of a session. Raises WireError for anything else."""
    match data:
        case {"type": "stream", **rest}:
            return Streamed(rest.get("data"))
        case {
            "type": "invoke",
            "data": {"type": str(kind), "backwards_request_id": str(request_id), "request": request},
        }:
            # A malformed request is the caller's error. The call is answered with an error, so that it does not hang.
            return Invoked(request_id, kind, request if isinstance(request, dict) else {})
        case {"type": "error", "data": dict(error)}:
            args = error.get("args")
            kind = str(error.get("error_type", "Exception"))
            message = str(error.get("message", ""))
            return Failed(kind, message, args if isinstance(args, dict) else {})
        case {"type": "end"}:
            return Ended()
        case {"type": str(kind)} if kind not in {"stream", "invoke", "error", "end"}:
            return Failed("unknown_stream_message_type", f"unknown stream message type: {kind}")
        case _:
            raise WireError(f"not a session message: {str(data)[:200]}")


def request_envelope(session_id: str, data: JsonObject, conversation_id: str | None = None) -> JsonObject:
    """Builds a request. `message_id` is never set, because the Agent node does not pass it."""
    return {
        "session_id": session_id,
        "conversation_id": conversation_id,
        "message_id": None,
        "app_id": "devhost",
        "endpoint_id": None,
        "context": {"credentials": {"tool_credentials": {}}},
        "event": "request",
        "data": data,
    }


def answer_envelope(session_id: str, request_id: str, event: str, message: str, data: JsonObject | None) -> JsonObject:
    """Builds an answer to a backwards call. `event` is response, error or end."""
    return {
        "session_id": session_id,
        "event": "backwards_response",
        "data": {"backwards_request_id": request_id, "event": event, "message": message, "data": data},
    }


def encoded(envelope: JsonObject) -> bytes:
    """Serializes a message as well-formed JSON in ASCII. The SDK drops messages that contain half a surrogate pair."""
    text = json.dumps(envelope)
    if "\\ud" in text:
        text = json.dumps(json.loads(well_formed(json.dumps(envelope, ensure_ascii=False))))
    return text.encode()


# The types of messages that a tool or a strategy may send. Dify's daemon and its node know the same types. Add a new
# type here, and its processing in `devhost/node/messages` and `devhost/node/outputs`.

FILE_LINKS = frozenset({"image_link", "binary_link"})
"""The types of messages that contain the address of a tool file. Such a message becomes a file of the node."""
MESSAGE_TYPES = FILE_LINKS | {
    *("text", "link", "image", "blob", "blob_chunk", "file"),
    *("json", "variable", "log", "retriever_resources"),
}
