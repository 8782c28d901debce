"""The answer to one backwards call, which ends exactly once: with an end, an error, or the host's time limit."""

import contextlib
import threading
from typing import Self

from devhost.errors import PluginLostError
from devhost.session import Session
from devhost.wire import JsonObject


class Reply:
    def __init__(self, session: Session, request_id: str, seconds: float) -> None:
        self._session = session
        self._request_id = request_id
        self._ended = False
        # Re-entrant: ending an answer is one step of its own and the last step of others.
        self._sending = threading.RLock()
        self._seconds = seconds
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._finish("end")

    def respond(self, data: JsonObject) -> bool:
        """False when nobody wants more of it: the answer has ended meanwhile, or whoever asked is no longer heard."""
        with self._sending:
            self._ended = self._ended or self._session.is_left
            if not self._ended:
                self._session.answer(self._request_id, "response", data=data)
            return not self._ended

    def fail(self, message: str) -> None:
        self._finish("error", message)

    def _finish(self, event: str, message: str = "") -> None:
        with self._sending:
            if not self._ended:
                self._ended = True
                if not self._session.is_left:
                    self._session.answer(self._request_id, event, message=message)

    def _cut(self) -> None:
        """The daemon closes the response body when the time is up, in the middle of a stream if need be."""
        with contextlib.suppress(PluginLostError):
            self._finish("error", f"failed to read response: the call took longer than {self._seconds:g} seconds")
