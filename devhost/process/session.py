"""One invocation of a plugin: the messages that come back, in order, and the answers to the plugin's calls."""

import contextlib
import queue
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from devhost.errors import InvocationError, PluginLostError, RunStoppedError, RunTimeoutError
from devhost.plugin.declaration import PluginDeclaration
from devhost.protocol.bridge import Bridge
from devhost.protocol.golang.values import remarshalled
from devhost.protocol.wire import Ended, Failed, Invoked, JsonObject, Lost, SessionEvent, Streamed, answer_envelope

type Send = Callable[[JsonObject], None]
type Decoded = Callable[[Any], JsonObject | None]
"""How the daemon decodes a message; InvocationError in its words, or None for one that is skipped."""


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
        if not _crosses_the_bridge(event) or self._bridge.admits(_kind(event)):
            self._events.put(event)

    def stop(self) -> None:
        """End `messages` at once, even if messages are waiting in it; safe in a signal handler."""
        self._stopped = True
        self._events.put(None)  # wakes `_next`

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
                case Streamed(data) as streamed:
                    if _crosses_the_bridge(streamed):
                        self._bridge.passed_on()
                    passed = decoded(data)
                    if passed is not None:
                        yield passed
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


def _kind(event: SessionEvent) -> str:
    return str(event.data.get("type")) if isinstance(event, Streamed) and isinstance(event.data, dict) else ""


def _crosses_the_bridge(event: SessionEvent) -> bool:
    """The daemon puts the chunks of a file together before it passes messages on."""
    return isinstance(event, Streamed) and _kind(event) != "blob_chunk"


type Answer = Callable[[Session, Invoked], None]
