"""The answer to one backwards call: responses, an error if it fails, and an end, each written once and in order.

The host's time limit ends it, and a run that is over gets nothing more. With a limit for bursts, only so many messages
can wait to be written, and one that comes while all places are taken is lost.
"""

import contextlib
import queue
import threading
from typing import Self

from devhost.errors import PluginLostError
from devhost.limits import HostLimits
from devhost.process.session import Session
from devhost.protocol.bridge import ANSWER_PLACES_FOR_EACH_OF_A_RUN, Bridge
from devhost.protocol.wire import JsonObject

type Event = tuple[str, str, JsonObject | None]
"""The event's name, its message and its data."""


class Reply:
    def __init__(self, session: Session, request_id: str, limits: HostLimits) -> None:
        self._session = session
        self._request_id = request_id
        self._ended = False
        # Re-entrant: an answer is ended alone, and as the last step of other methods.
        self._sending = threading.RLock()
        self._cut_words = ""
        self._was_cut = threading.Event()
        self._timer = threading.Timer(limits.call_seconds, self._cut)
        self._timer.daemon = True
        self._bridge = Bridge(limits.burst_messages * ANSWER_PLACES_FOR_EACH_OF_A_RUN)
        self._waiting: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        """None: nothing more will be written."""

    def __enter__(self) -> Self:
        self._timer.start()
        if self._bridge.places:
            threading.Thread(target=self._write_what_waits, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._finish()
        self._waiting.put(None)

    @property
    def losses(self) -> list[str]:
        return self._bridge.losses

    def cut_with(self, words: str) -> None:
        """The error that the plugin reads when the time is up."""
        self._cut_words = words

    def respond(self, data: JsonObject) -> bool:
        """False if the answer or the session has ended: nothing more is sent."""
        with self._sending:
            self._ended = self._ended or self._session.is_left
            if not self._ended and self._bridge.admits("response"):
                self._say("response", "stream", data)
            return not self._ended

    def fail(self, message: str) -> None:
        self._finish(message)

    def wait_for_the_cut(self) -> None:
        self._was_cut.wait()

    def _finish(self, error: str | None = None) -> None:
        with self._sending:
            if self._ended:
                return
            self._ended = True
            if not self._session.is_left:
                if error is not None:
                    self._say("error", error)
                self._say("end")

    def _cut(self) -> None:
        """The daemon closes the response body when the time is up, even in the middle of a stream."""
        with contextlib.suppress(PluginLostError):
            self._finish(self._cut_words)
        self._was_cut.set()

    def _say(self, event: str, message: str = "", data: JsonObject | None = None) -> None:
        if self._bridge.places:
            self._waiting.put((event, message, data))
        else:
            self._session.answer(self._request_id, event, message=message, data=data)

    def _write_what_waits(self) -> None:
        with contextlib.suppress(PluginLostError):
            while (waiting := self._waiting.get()) is not None:
                event, message, data = waiting
                if event == "response":
                    self._bridge.passed_on()
                if not self._session.is_left:
                    self._session.answer(self._request_id, event, message=message, data=data)
