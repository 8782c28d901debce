"""A host that does next to nothing in the plugin's process: it passes lines on that were written before.

In: what each model call and each tool call brings, as lines. Out: a Session of the SDK whose reader takes the lines as
the SDK's stdin reader does, 64 KiB before another greenlet gets its turn (its size of one read). Requests are not read,
but for their id: what is measured is the plugin's work and the SDK's.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import process_time
from typing import Any

import gevent
from dify_plugin.config.config import InstallMethod
from dify_plugin.core.entities.plugin.io import PluginInStream, PluginInStreamEvent
from dify_plugin.core.runtime import Session
from dify_plugin.core.server.__base.request_reader import RequestReader
from dify_plugin.core.server.__base.response_writer import ResponseWriter
from pydantic import TypeAdapter
from pydantic_core import to_json

type Json = dict[str, Any]
type Answer = Callable[[], Iterable[bytes]]
"""What one call brings: the JSON of each message."""

BYTES_AT_ONCE = 65_536
NEXT_READ = 0.00001
"""Seconds. The SDK waits for every read; a sleep of 0 would come back before any timer is served."""
_HEAD = 400
"""Characters of a line in which the id of a request stands."""
_ID = '"backwards_request_id":"'


@dataclass(frozen=True)
class Failure:
    """A call that ends in this error."""

    message: str


def prepared(messages: Sequence[Json]) -> Answer:
    """Messages whose JSON is written before the run begins."""
    lines = [to_json(message) for message in messages]
    return lambda: lines


def one_by_one(messages: Callable[[], Iterator[Json]]) -> Answer:
    """Messages that together would need too much memory: each is written when its turn comes."""
    return lambda: (to_json(message) for message in messages())


class LineHost(RequestReader, ResponseWriter):
    """Answers the calls of one session, each kind in order; the last answer of a kind is that of all later calls."""

    def __init__(self, model: Sequence[Answer | Failure], tools: Sequence[Answer | Failure]) -> None:
        super().__init__()
        self._left = {"llm": list(model), "tool": list(tools)}
        self._line = TypeAdapter(dict[str, Any])
        self.longest_read = 0.0
        """Seconds of work that the SDK's reading of a line took, which no plugin can do anything about."""

    def session(self) -> Session:
        return Session(
            session_id="s",
            executor=ThreadPoolExecutor(max_workers=1),
            reader=self,
            writer=self,
            install_method=InstallMethod.Local,
        )

    def _read_stream(self) -> Generator[PluginInStream, None, None]:
        yield from ()

    def done(self) -> None:
        """A transport of one session has nothing to end."""

    def write(self, data: str) -> None:
        """Requests are answered; what else is written is not looked at."""
        head = data[:_HEAD]
        if _ID in head:
            kind = "llm" if '"type":"llm"' in head else "tool"
            gevent.spawn(self._answer, head.partition(_ID)[2].partition('"')[0], self._next(kind))

    def _next(self, kind: str) -> Answer | Failure:
        left = self._left[kind]
        return left.pop(0) if len(left) > 1 else left[0]

    def _answer(self, request_id: str, answer: Answer | Failure) -> None:
        if isinstance(answer, Failure):
            self._pass_on(request_id, "error", to_json(None), answer.message)
        else:
            passed = 0
            for line in answer():
                self._pass_on(request_id, "response", line)
                passed += len(line)
                if passed >= BYTES_AT_ONCE:
                    gevent.sleep(NEXT_READ)
                    passed = 0
        self._pass_on(request_id, "end", to_json(None))

    def _pass_on(self, request_id: str, event: str, payload: bytes, message: str = "") -> None:
        head = to_json({"backwards_request_id": request_id, "event": event, "message": message})
        line = b'{"session_id":"s","event":"backwards_response","data":%b,"data":%b}}' % (head[:-1], payload)
        began = process_time()
        read = self._line.validate_json(line)
        self.longest_read = max(self.longest_read, process_time() - began)
        arrived = PluginInStreamEvent.value_of(read["event"])
        self._process_line(PluginInStream(read["session_id"], arrived, read["data"], self, self))
