"""Backwards calls in a trace: the plugin's request, and the host's answer in pieces.

In: the messages of a trace. Out: a `Call` each, with the time of every piece.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from devhost.errors import WireError
from devhost.protocol.wire import Invoked, JsonObject, read_session_event
from devhost.trace.lines import MessageLine


@dataclass(frozen=True)
class Piece:
    at: float
    data: JsonObject


@dataclass
class Call:
    plugin: str
    """The plugin that called."""
    kind: str
    """llm, tool, or what the host does not answer."""
    request: JsonObject
    began: float
    ended: float | None = None
    """None if it has no end, because the run was over before."""
    error: str = ""
    pieces: list[Piece] = field(default_factory=list)
    id: str = ""
    parent: str = ""
    """The id of the call by which a tool was asked that made this call; empty for the strategy's own calls."""

    @property
    def name(self) -> str:
        """Of the model or the tool."""
        return str(self.request.get("model" if self.kind == "llm" else "tool") or self.kind)

    @property
    def usage(self) -> JsonObject:
        """Of a model call, the last one that came; empty without any."""
        deltas = (piece.data.get("delta") for piece in reversed(self.pieces))
        return next((delta["usage"] for delta in deltas if isinstance(delta, dict) and delta.get("usage")), {})


class CallLog:
    def __init__(self, served: Mapping[str, str]) -> None:
        """`served`: by session, the id of the call that it answers."""
        self._served = served
        self._calls: dict[str, Call] = {}

    def add(self, line: MessageLine) -> None:
        match line.message:
            case {"event": "session", "session_id": session_id, "data": data}:
                try:
                    event = read_session_event(data)
                except WireError:
                    return  # the host could not read it either
                if isinstance(event, Invoked):
                    self._calls[event.request_id] = Call(
                        line.plugin,
                        event.kind,
                        event.request,
                        line.at,
                        id=event.request_id,
                        parent=self._served.get(str(session_id), ""),
                    )
            case {
                "event": "backwards_response",
                "data": {"backwards_request_id": str(request_id), "event": str(event)} as data,
            }:
                if request_id in self._calls:
                    _answer(self._calls[request_id], line.at, event, data)

    def calls(self) -> tuple[Call, ...]:
        return tuple(self._calls.values())


def _answer(call: Call, at: float, event: str, data: JsonObject) -> None:
    if event == "response":
        piece = data.get("data")
        call.pieces.append(Piece(at, piece if isinstance(piece, dict) else {}))
        return
    call.ended = at
    if event == "error":
        call.error = str(data.get("message") or "error")
