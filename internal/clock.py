"""Time: the clock and the deadlines of a run, and turns for long work, since one thread serves all runs."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter, process_time

import gevent

MAX_TURN_SECONDS = 0.005
"""Seconds of work; a chunk of another session waits about ten turns on its way from the host to the user."""
MOMENT = 0.00001
"""Seconds. A sleep of 0 is not enough: gevent may run ready greenlets fifty times before it looks at timers and
sockets again, for which the other sessions wait."""
_TURNS_OF_A_CHUNK = 10


def give_way() -> None:
    """Let the other sessions run, once."""
    gevent.sleep(MOMENT)


def let_others_through() -> None:
    """Let the other sessions run as often as a chunk of theirs needs on its way, after work that has no turns."""
    for _ in range(_TURNS_OF_A_CHUNK):
        give_way()


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


TOOL_PHASE_SHARE = 0.9
"""Of the run's time; the rest is for the closing answer."""


@dataclass(frozen=True)
class Clock:
    """The source of time; tests replace it."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = gevent.sleep


@dataclass(frozen=True, order=True)
class Deadline:
    """A moment on a clock; earlier than the host's own limits (docs/host-facts.md, "Time limits")."""

    clock: Clock = field(compare=False)
    moment: float

    def at_least(self, seconds: float) -> "Deadline":
        """This deadline, or a later one if less than these seconds are left."""
        return replace(self, moment=max(self.moment, self.clock.now() + seconds))

    def left(self) -> float:
        """Seconds, never negative."""
        return max(0.0, self.moment - self.clock.now())

    def has_passed(self) -> bool:
        return self.clock.now() >= self.moment
