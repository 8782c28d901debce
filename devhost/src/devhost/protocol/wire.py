"""The protocol between the host and a plugin, as values.

All transports carry these same objects; each transport frames them in its own way.
"""

import json
from dataclasses import dataclass
from typing import Any

from devhost.errors import WireError
from devhost.golang import well_formed

type JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Streamed:
    """One message of the answer, of any shape."""

    data: Any


@dataclass(frozen=True)
class Invoked:
    """A backwards call: the plugin asks the host for a model, a tool, or something else."""

    request_id: str
    kind: str
    request: JsonObject


@dataclass(frozen=True)
class Failed:
    error_type: str
    message: str
    args: JsonObject | None = None
    """With the traceback; None for an error of the daemon."""


@dataclass(frozen=True)
class Ended:
    pass


@dataclass(frozen=True)
class Lost:
    """Not a message: the plugin has ended, and the session with it."""

    reason: str


type SessionEvent = Streamed | Invoked | Failed | Ended | Lost


def read_session_event(data: object) -> SessionEvent:
    match data:
        case {"type": "stream", **rest}:
            return Streamed(rest.get("data"))
        case {
            "type": "invoke",
            "data": {"type": str(kind), "backwards_request_id": str(request_id), "request": request},
        }:
            # An odd request is the caller's fault and is answered as such, so that the call does not hang.
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
    """`message_id` is never set: the Agent node does not pass it."""
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
    """An answer to a backwards call; `event` is response, error or end."""
    return {
        "session_id": session_id,
        "event": "backwards_response",
        "data": {"backwards_request_id": request_id, "event": event, "message": message, "data": data},
    }


def encoded(envelope: JsonObject) -> bytes:
    """JSON in ASCII, well-formed: the SDK drops a whole message over half a surrogate pair."""
    text = json.dumps(envelope)
    if "\\ud" in text:
        text = json.dumps(json.loads(well_formed(json.dumps(envelope, ensure_ascii=False))))
    return text.encode()


# The types of messages that a tool or a strategy may send: Dify's daemon and its node know the same ones. A new type is
# added here. What becomes of it is in `devhost/node/messages` and `devhost/node/outputs`.

FILE_LINKS = frozenset({"image_link", "binary_link"})
"""Addresses of tool files; such a message becomes a file of the node."""
MESSAGE_TYPES = FILE_LINKS | {
    *("text", "link", "image", "blob", "blob_chunk", "file"),
    *("json", "variable", "log", "retriever_resources"),
}
