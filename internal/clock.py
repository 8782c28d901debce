"""Time: the clock, the deadlines and shared waits of a run, and turns for long work: one thread serves all runs."""

import time
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Protocol

import gevent

MAX_TURN_SECONDS = 0.005
"""Seconds of work; a chunk of another session waits about ten turns on its way from the host to the user."""
MOMENT = 0.00001
"""Seconds. A sleep of 0 is not enough: gevent may run ready greenlets fifty times before it looks at timers and
sockets again, for which the other sessions wait."""
_TURNS_OF_A_CHUNK = 10
HEAD_START = 1.0  # seconds between the first request after a shared wait and the next


def give_way() -> None:
    """Let the other sessions run, once."""
    gevent.sleep(MOMENT)


def let_others_through() -> None:
    """Let the other sessions run as often as a chunk of theirs needs on its way, after work that has no turns."""
    for _ in range(_TURNS_OF_A_CHUNK):
        give_way()


def in_turns[T](items: Iterable[T]) -> Iterator[T]:
    """Pass items on; whenever making or handling them has taken a turn's time, others run first.

    Time in which the process waited does not count, because the others could run.
    """
    began = perf_counter()
    others_ran = _others_ran()
    for item in items:
        if perf_counter() - began > MAX_TURN_SECONDS:  # since the item before, its handling included
            began, others_ran = _end_of_turn(others_ran)
        yield item
    if perf_counter() - began > MAX_TURN_SECONDS:
        _end_of_turn(others_ran)


_MANY = 1_000
"""Parts of a value that take their time."""


class _Parts[T](Sized, Iterable[T], Protocol): ...


def in_turns_if_many[T](parts: _Parts[T]) -> Iterable[T]:
    """The parts in turns, or, where they are few, as they are: most values are small, and looking at time costs."""
    if len(parts) > _MANY:
        return in_turns(parts)
    return parts


def give_way_if_due(began: float) -> float:
    """Let the others run if the work since this moment took a turn's time; return the moment when the next turn began.

    The moments are those of ``perf_counter``.
    """
    if perf_counter() - began > MAX_TURN_SECONDS:
        give_way()
        return perf_counter()
    return began


def _end_of_turn(others_ran: float) -> tuple[float, float]:
    """Let the others run unless they already have; return the current time, and when they last ran."""
    if _others_ran() == others_ran:
        give_way()
    return perf_counter(), _others_ran()


def _others_ran() -> float:
    """When the event loop last looked for greenlets that have something to do, on a clock of its own."""
    return float(gevent.get_hub().loop.now())


TOOL_PHASE_SHARE = 0.9
"""Share of the run's time for the tool phase. The rest is for the closing answer."""


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


@dataclass
class SharedWait:
    """The wait of all requests of a run to a service that has refused one of them; they share the tries, too."""

    refusals: int = 0
    """How many refusals counted. A request that was sent before the last one tells nothing new."""
    has_given_up: bool = False
    _waits_left: tuple[float, ...] = ()
    _free: Deadline | None = None  # None while the service is available

    def refused(self, refusals_before: int, waits: tuple[float, ...], clock: Clock) -> float:
        """Note a refusal; ``waits`` count if the service was available before. Returns the seconds to wait."""
        if refusals_before == self.refusals:
            self.refusals += 1
            if self._free is None:
                self._waits_left = waits
            self.has_given_up = not self._waits_left
            self._free = None
            if self._waits_left:
                self._free = Deadline(clock, clock.now() + self._waits_left[0])
            self._waits_left = self._waits_left[1:]
        if self._free:
            return self._free.left()
        return 0.0

    def served(self, refusals_before: int) -> None:
        if refusals_before == self.refusals:
            self._free = None

    def pause(self, deadline: Deadline) -> float:
        """Wait until a request may be sent, if that is before the deadline; the seconds that this took."""
        waited = 0.0
        while self._free and 0 < (left := self._free.left()) < deadline.left():
            deadline.clock.sleep(left)
            waited += left
        if self._free:
            self._free = Deadline(deadline.clock, deadline.clock.now() + HEAD_START)
        return waited
