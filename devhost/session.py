"""One invocation of a plugin: what comes back for it, in order, and the answers to what it asks meanwhile."""

import contextlib
import queue
import time
from collections.abc import Callable, Iterator
from typing import Self

from devhost.declaration import PluginDeclaration
from devhost.errors import InvocationError, PluginLostError, RunStoppedError, RunTimeoutError
from devhost.wire import Ended, Failed, Invoked, JsonObject, Lost, SessionEvent, Streamed, answer_envelope

type Send = Callable[[JsonObject], None]


class Session:
    """A context manager: once it is left, later messages for it are dropped, as the daemon drops them."""

    def __init__(
        self, session_id: str, declaration: PluginDeclaration, send: Send, forget: Callable[[str], None]
    ) -> None:
        self.id = session_id
        self.declaration = declaration
        self._send = send
        self._forget = forget
        self._events: queue.SimpleQueue[SessionEvent | None] = queue.SimpleQueue()
        self._stopped = False
        self.is_left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_left = True
        self._forget(self.id)

    def deliver(self, event: SessionEvent) -> None:
        self._events.put(event)

    def stop(self) -> None:
        """Ends `messages` at once, whatever still waits in it; safe in a signal handler."""
        self._stopped = True
        self._events.put(None)  # wakes whoever waits

    def answer(self, request_id: str, event: str, *, message: str = "", data: JsonObject | None = None) -> None:
        self._send(answer_envelope(self.id, request_id, event, message, data))

    def messages(self, answer: "Answer", seconds: float) -> Iterator[JsonObject]:
        """The streamed messages; backwards calls go to `answer`, which must not wait for them to be done."""
        deadline = time.monotonic() + seconds
        while True:
            match self._next(deadline, seconds):
                case Streamed(data):
                    yield data
                case Invoked() as invoked:
                    answer(self, invoked)
                case Failed(error_type, message, traceback):
                    raise InvocationError(error_type, message, traceback)
                case Lost(reason):
                    raise PluginLostError(reason)
                case Ended():
                    return

    def _next(self, deadline: float, seconds: float) -> SessionEvent:
        left = deadline - time.monotonic()
        if left > 0:  # a plugin that never pauses must not outrun its deadline
            with contextlib.suppress(queue.Empty):
                event = self._events.get(timeout=left)
                if self._stopped or event is None:
                    raise RunStoppedError("the run was stopped")
                return event
        raise RunTimeoutError(f"killed by timeout: the invocation took longer than {seconds:g} seconds")


type Answer = Callable[[Session, Invoked], None]
