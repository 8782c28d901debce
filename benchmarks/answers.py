"""What a host answers to the calls of a plugin, as lines that are written before the run.

In: what each model call and each tool call brings. Out: the lines of the protocol. Of a request only the id is read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gevent
from pydantic_core import to_json

type Json = dict[str, Any]
type Answer = Callable[[], Iterable[bytes]]
"""What one call brings: the JSON of each message."""

_HEAD = 400
"""Characters of a line in which the id of a request stands."""
_ID = '"backwards_request_id":"'


@dataclass(frozen=True)
class Failure:
    """A call that ends in this error."""

    message: str


def prepared(messages: Sequence[Json]) -> Answer:
    """Messages that come at once."""
    lines = [to_json(message) for message in messages]
    return lambda: lines


def one_by_one(messages: Callable[[], Iterator[Json]]) -> Answer:
    """Messages that together need too much memory, or never end: each is written when its turn comes."""
    return lambda: (to_json(message) for message in messages())


def after(seconds: float, messages: Sequence[Json]) -> Answer:
    """Messages that come together, after the wait."""
    lines = [to_json(message) for message in messages]

    def answer() -> Iterator[bytes]:
        gevent.sleep(seconds)
        yield from lines

    return answer


def spread(seconds: float, messages: Sequence[Json]) -> Answer:
    """Messages that come one at a time, each after the wait."""
    lines = [to_json(message) for message in messages]

    def answer() -> Iterator[bytes]:
        for line in lines:
            gevent.sleep(seconds)
            yield line

    return answer


class Script:
    """The answers of one run, each kind in order; the last one of a kind answers all later calls."""

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
    """``llm`` or ``tool``."""
    request_id: str

    @classmethod
    def read(cls, line: str) -> "Asked | None":
        """The call that a line of the plugin makes, if any."""
        head = line[:_HEAD]
        if _ID not in head:
            return None
        kind = "llm" if '"type":"llm"' in head else "tool"
        return cls(kind, head.partition(_ID)[2].partition('"')[0])

    def answered(self, session_id: str, answer: Answer | Failure) -> Iterator[bytes]:
        """The lines of the answer, its end included."""
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
