"""The soft deadline of a run: earlier than the host's, which ends a run without telling the plugin.

The host's own is in docs/host-facts.md, "Time limits".
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import gevent

TOOL_PHASE_SHARE = 0.9
"""Of the run's time; the rest is for the closing answer."""


@dataclass(frozen=True)
class Clock:
    """The source of time; tests replace it."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = gevent.sleep


@dataclass(frozen=True)
class Deadline:
    """A moment on a clock."""

    clock: Clock
    moment: float

    def __lt__(self, other: "Deadline") -> bool:
        return self.moment < other.moment

    def at_least(self, seconds: float) -> "Deadline":
        """This deadline, or a later one if less than these seconds are left."""
        return replace(self, moment=max(self.moment, self.clock.now() + seconds))

    def left(self) -> float:
        """Seconds, never negative."""
        return max(0.0, self.moment - self.clock.now())

    def has_passed(self) -> bool:
        return self.clock.now() >= self.moment
