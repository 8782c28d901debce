"""Tools that count their calls: one that waits until all have come, and one that fails at first."""

from collections.abc import Iterator

import gevent
from gevent.event import Event

from tests.support.clock import PATIENCE
from tests.support.host import CallFails, Json
from tests.support.wire import text_message


class Gate:
    """A tool whose calls are counted while they are under way; each leaves when all expected have come."""

    def __init__(self, expected: int) -> None:
        self.most = self._inside = 0
        self._expected = expected
        self._all_are_here = Event()

    def __call__(self, request: Json) -> Iterator[Json]:
        self._inside += 1
        self.most = max(self.most, self._inside)
        if self._inside == self._expected:
            self._all_are_here.set()
        assert self._all_are_here.wait(PATIENCE), "the calls do not run side by side"
        gevent.idle()  # any further call would begin now
        yield text_message(f"result for {request['tool_parameters']['q']}")
        self._inside -= 1


class Flaky:
    """A tool that fails for its first calls."""

    def __init__(self, message: str, times: int = 1) -> None:
        self.calls = 0
        self._message = message
        self._times = times

    def __call__(self, _request: Json) -> Iterator[Json]:
        self.calls += 1
        if self.calls <= self._times:
            raise CallFails(self._message)
        yield text_message("found")
