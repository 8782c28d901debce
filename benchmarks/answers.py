"""The answers of a host to the calls of a plugin, as lines of the protocol that are prepared before the run.

Only the id of a request is read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gevent
from pydantic_core import to_json

type Json = dict[str, Any]
type Answer = Callable[[], Iterable[bytes]]
"""The answer to one call: a function that returns the JSON of each message."""

_HEAD = 400
"""Number of characters at the beginning of a line that contain the id of a request."""
_ID = '"backwards_request_id":"'


@dataclass(frozen=True)
class Failure:
    """The error with which a call ends."""

    message: str


def prepared(messages: Sequence[Json]) -> Answer:
    """Return an answer whose messages arrive immediately."""
    lines = [to_json(message) for message in messages]
    return lambda: lines


def one_by_one(messages: Callable[[], Iterator[Json]]) -> Answer:
    """Return an answer that serializes each message when it is sent, for endless messages or to save memory."""
    return lambda: (to_json(message) for message in messages())


def after(seconds: float, messages: Sequence[Json]) -> Answer:
    """Return an answer whose messages arrive together after a wait."""
    lines = [to_json(message) for message in messages]

    def answer() -> Iterator[bytes]:
        gevent.sleep(seconds)
        yield from lines

    return answer


def spread(seconds: float, messages: Sequence[Json]) -> Answer:
    """Return an answer whose messages arrive one at a time, each after a wait."""
    lines = [to_json(message) for message in messages]

    def answer() -> Iterator[bytes]:
        for line in lines:
            gevent.sleep(seconds)
            yield line

    return answer


class Script:
    """The answers of one run, in order for each kind of call. The last answer of a kind also serves all later calls."""

    def __init__(self, model: Sequence[Answer | Failure], tools: Sequence[Answer | Failure]) -> None:
        self._left = {"llm": list(model), "tool": list(tools)}

    def pop(self, kind: str) -> Answer | Failure:
        left = self._left[kind]
        if len(left) > 1:
            return left.pop(0)
        return left[0]


@dataclass(frozen=True)
class Asked:
    """A call of the plugin."""

    kind: str
    """The kind of call: ``llm`` or ``tool``."""
    request_id: str

    @classmethod
    def read(cls, line: str) -> "Asked | None":
        """Parse the call in a line of the plugin; None for any other line."""
        head = line[:_HEAD]
        if _ID not in head:
            return None
        kind = "llm" if '"type":"llm"' in head else "tool"
        return cls(kind, head.partition(_ID)[2].partition('"')[0])

    def answered(self, session_id: str, answer: Answer | Failure) -> Iterator[bytes]:
        """Yield the lines of the answer, including its end."""
        if isinstance(answer, Failure):
            yield self._line(session_id, "error", b"null", answer.message)
        else:
            for message in answer():
                yield self._line(session_id, "response", message)
        yield self._line(session_id, "end", b"null")

    def _line(self, session_id: str, event: str, payload: bytes, message: str = "") -> bytes:
        head = to_json({"backwards_request_id": self.request_id, "event": event, "message": message})
        opening = to_json({"session_id": session_id, "event": "backwards_response"})
        return b'%b,"data":%b,"data":%b}}' % (opening[:-1], head[:-1], payload)
