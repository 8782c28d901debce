"""The clock of all tests: it moves when a script moves it or the plugin sleeps, never by itself.

Inside ``governed`` the plugin's waits for messages and its turns end by this clock too, so that nothing depends on how
fast the machine is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gevent
import pytest
from gevent.queue import Empty, Queue

from internal import clock as fairness
from internal.calls import runner as side_by_side
from internal.clock import Clock
from internal.host import session as read_ahead

PATIENCE = 300.0
"""Real seconds after which a condition that is waited for will not come any more."""

_STEPS_OF_A_SCRIPT = 5
"""A script waits until all else is idle, too, before its next step."""


@dataclass
class FakeTime:
    """Seconds since an arbitrary moment."""

    now: float = 1000.0
    slept: list[float] = field(default_factory=list)
    _waits: "list[_Wait]" = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move the clock, and end the waits that are over by then, in the order in which they end."""
        self.now += seconds
        for wait in sorted(self._waits, key=lambda wait: wait.until):
            if wait.until <= self.now:
                gevent.get_hub().loop.run_callback(self._end, wait)

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.now, sleep=self.sleep)

    @contextmanager
    def governed(self) -> Iterator["FakeTime"]:
        """Waits for messages and turns of long work end by this clock."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fairness, "perf_counter", lambda: self.now)
            patch.setattr(fairness, "MOMENT", 0)  # a timer's turn would come sooner or later with the machine's speed
            for module in (read_ahead, side_by_side):
                patch.setattr(module, "Queue", partial(_Inbox, self))
            yield self

    def wait(self, inbox: "_Inbox", seconds: float) -> object:
        """The next item of the inbox.

        Raises:
            Empty: these seconds are over before there is one.
        """
        wait = _Wait(self.now + seconds, gevent.getcurrent())
        self._waits.append(wait)
        try:
            return Queue.get(inbox, timeout=PATIENCE)
        finally:
            self._waits.remove(wait)

    def _end(self, wait: "_Wait") -> None:
        if any(other is wait for other in self._waits):
            wait.greenlet.throw(Empty)


@dataclass
class SideBySideTime(FakeTime):
    """Greenlets sleep side by side: the clock moves to the first one's end when no greenlet has anything else to do."""

    _ends: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        end = self.now + seconds
        self._ends.append(end)
        while self.now < end:
            for _ in range(_STEPS_OF_A_SCRIPT):
                gevent.idle()
            if self.now < end == min(self._ends):
                self.advance(end - self.now)
        self._ends.remove(end)


@dataclass(frozen=True, eq=False)
class _Wait:
    until: float
    greenlet: Any
    """The one that waits; gevent's types do not know the main greenlet's."""


class _Inbox(Queue[Any]):
    """A queue whose seconds are the clock's."""

    def __init__(self, time: FakeTime, maxsize: int | None = None) -> None:
        super().__init__(maxsize)
        self._time = time

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: ANN401, FBT001, FBT002 - as gevent has it
        if block and timeout:
            return self._time.wait(self, timeout)
        return super().get(block, timeout)
