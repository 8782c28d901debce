"""One invocation of a plugin: what comes back for it, in order, and the answers to what it asks meanwhile."""

import contextlib
import queue
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from devhost.daemon.bridge import Bridge
from devhost.daemon.go_decode import GoDecodeError
from devhost.daemon.go_json import NumberRangeError, remarshalled
from devhost.declaration import PluginDeclaration
from devhost.errors import InvocationError, PluginLostError, RunStoppedError, RunTimeoutError
from devhost.wire import Ended, Failed, Invoked, JsonObject, Lost, SessionEvent, Streamed, answer_envelope

type Send = Callable[[JsonObject], None]
type Decoded = Callable[[Any], JsonObject]
"""How the daemon decodes a message; GoDecodeError in its words."""


class Session:
    """A context manager: once it is left, later messages for it are dropped, as the daemon drops them."""

    def __init__(
        self,
        session_id: str,
        declaration: PluginDeclaration,
        send: Send,
        forget: Callable[[str], None],
        *,
        places: int = 0,
    ) -> None:
        """`places`: how many messages may wait to be passed on; what comes beyond them is lost. 0 loses nothing."""
        self.id = session_id
        self.declaration = declaration
        self._send = send
        self._forget = forget
        self._events: queue.SimpleQueue[SessionEvent | None] = queue.SimpleQueue()
        self._bridge = Bridge(places)
        self._stopped = False
        self.is_left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_left = True
        self._forget(self.id)

    @property
    def losses(self) -> list[str]:
        return self._bridge.losses

    def deliver(self, event: SessionEvent) -> None:
        if not isinstance(event, Streamed) or self._bridge.admits(_named(event.data)):
            self._events.put(event)

    def stop(self) -> None:
        """Ends `messages` at once, whatever still waits in it; safe in a signal handler."""
        self._stopped = True
        self._events.put(None)  # wakes whoever waits

    def answer(self, request_id: str, event: str, *, message: str = "", data: JsonObject | None = None) -> None:
        self._send(answer_envelope(self.id, request_id, event, message, data))

    def messages(self, answer: "Answer", seconds: float, decoded: Decoded = remarshalled) -> Iterator[JsonObject]:
        """The streamed messages, as the daemon passes them on.

        Backwards calls go to `answer`, which must not wait for them to be done. A message that does not decode ends
        the session with the daemon's error.
        """
        deadline = time.monotonic() + seconds
        while True:
            match self._next(deadline, seconds):
                case Streamed(data):
                    self._bridge.passed_on()
                    yield _passed_on(data, decoded)
                case Invoked() as invoked:
                    answer(self, invoked)
                case Failed(error_type, message, args):
                    raise InvocationError(error_type, message, args)
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


def _passed_on(data: object, decoded: Decoded) -> JsonObject:
    try:
        return decoded(data)
    except (GoDecodeError, NumberRangeError) as error:
        raise InvocationError("unmarshal_error", f"unmarshal json failed: {error}") from error


def _named(data: object) -> str:
    return str(data.get("type")) if isinstance(data, dict) else "?"


type Answer = Callable[[Session, Invoked], None]
