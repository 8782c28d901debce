"""Time: the clock of a run, its deadlines, and turns for long work: one process serves many runs in one thread."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter, process_time

import gevent

# Long work that lets other sessions run: one process serves all of them in one thread.

MAX_TURN_SECONDS = 0.005
"""Seconds of work; a chunk of another session waits about ten turns on its way from the host to the user."""
MOMENT = 0.00001
"""Seconds. A sleep of 0 is not enough: gevent may run ready greenlets fifty times before it looks at timers and
sockets again, for which the other sessions wait."""


def give_way() -> None:
    """Let the other sessions run, once."""
    gevent.sleep(MOMENT)


def in_turns[T](items: Iterable[T]) -> Iterator[T]:
    """Pass items on; whenever making or handling them has taken a turn's time, others run first.

    Time in which the process only waited does not count: the others had it already.
    """
    began, worked = perf_counter(), process_time()
    for item in items:
        if perf_counter() - began > MAX_TURN_SECONDS:
            began, worked = perf_counter(), _end_of_turn(worked)
        yield item
        if perf_counter() - began > MAX_TURN_SECONDS:
            began, worked = perf_counter(), _end_of_turn(worked)


def _end_of_turn(worked: float) -> float:
    """Let the others run if the process has worked for a turn's time since this processor time; when they last ran."""
    if process_time() - worked <= MAX_TURN_SECONDS:
        return worked
    give_way()
    return process_time()


# The soft deadline of a run: earlier than the host's, which ends a run without telling the plugin.
#
# The host's own is in docs/host-facts.md, "Time limits".

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
