"""The messages of a tool or a strategy, read as strictly as Dify reads them from the daemon.

In: one dictionary from the wire. Out: the same as a `Message`, or `NodeFailedError`, since a message that does not
parse fails the node.
"""

from dataclasses import dataclass, field

from devhost.errors import NodeFailedError
from devhost.protocol.golang.values import marshalled
from devhost.protocol.message_types import MESSAGE_TYPES
from devhost.protocol.node_stream import passed_on
from devhost.protocol.wire import JsonObject

LOG_STATUSES = ("start", "success", "error")
RESERVED_VARIABLES = frozenset({"text", "json", "files"})


@dataclass(frozen=True)
class Message:
    type: str
    body: JsonObject
    meta: JsonObject = field(default_factory=dict)

    @property
    def text(self) -> str:
        return str(self.body.get("text", ""))

    def on_the_wire(self) -> JsonObject:
        return {"type": self.type, "message": self.body, "meta": self.meta or None}


def read_message(data: JsonObject) -> Message:
    kind, body, meta = data.get("type"), data.get("message"), data.get("meta")
    if not isinstance(kind, str) or kind not in MESSAGE_TYPES:
        raise _malformed(data, f"{kind!r} is an unknown message type")
    if meta is not None and not isinstance(meta, dict):
        raise _malformed(data, f"a {kind} message needs meta that is an object")
    message = Message(kind, body if isinstance(body, dict) else {}, meta or {})
    if message.type != "file":  # a file's body is a marker without content
        problem = _problem(message)
        if problem is not None:
            raise _malformed(data, f"a {kind} message {problem}")
    if message.type == "variable" and (name := message.body["variable_name"]) in RESERVED_VARIABLES:
        sentence = f"a variable may not be called {name!r}: the node has that output"
        raise NodeFailedError("variable-name-reserved", sentence, shows=_line(data))
    return message


def _problem(message: Message) -> str | None:  # noqa: C901, PLR0912 - one case per message type
    body = message.body
    match message.type:
        case "json":
            if not isinstance(body.get("json_object"), dict | list):
                return "needs a json_object that is an object or a list"
        case "variable":
            return _variable_problem(body)
        case "log":
            if not isinstance(body.get("id"), str) or not isinstance(body.get("label"), str):
                return "needs an id and a label"
            if body.get("status") not in LOG_STATUSES:
                return f"has status {body.get('status')!r}, which is none of {', '.join(LOG_STATUSES)}"
            if not isinstance(body.get("data"), dict) or not isinstance(body.get("metadata") or {}, dict):
                return "needs data and metadata that are objects"
            if not all(isinstance(body.get(name), str | None) for name in ("parent_id", "error")):
                return "needs a parent_id and an error that are strings, if any"
        case "blob":
            if not isinstance(body.get("blob"), str):
                return "needs a blob"
        case "blob_chunk":
            if not isinstance(body.get("blob"), str) or not isinstance(body.get("id"), str):
                return "needs an id and a blob"
        case "retriever_resources":
            if not isinstance(body.get("retriever_resources"), list):
                return "needs a list of retriever_resources"
        case _:
            if not isinstance(body.get("text"), str):
                return "needs a text"
    return None


def _variable_problem(body: JsonObject) -> str | None:
    if not isinstance(body.get("variable_name"), str) or "variable_value" not in body:
        return "needs a variable_name and a variable_value"
    if body.get("stream") and not isinstance(body.get("variable_value"), str):
        return "that streams needs a value that is a string"
    return None


def _malformed(data: JsonObject, sentence: str) -> NodeFailedError:
    return NodeFailedError("message-malformed", f"{sentence}; Dify fails the node on it", shows=_line(data))


def _line(data: JsonObject) -> str:
    """The message that Dify could not read, as the daemon sent it: the node shows nothing else."""
    return marshalled(passed_on(data))
