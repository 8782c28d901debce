"""The clock, the deadlines and shared waits of a run, and pauses in long work, because one thread serves all runs."""

import time
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Protocol

import gevent

MAX_TURN_SECONDS = 0.005
"""Maximum seconds of work without a pause. A chunk of another session waits for about ten pauses on its way from the
host to the user."""
MOMENT = 0.00001
"""Seconds of the sleep that lets other sessions run. A sleep of 0 is not enough: gevent may run ready greenlets fifty
times before it checks the timers and sockets for which the other sessions wait."""
_TURNS_OF_A_CHUNK = 10
HEAD_START = 1.0  # seconds between the first request after a shared wait and the next


def give_way() -> None:
    """Let the other sessions run once."""
    gevent.sleep(MOMENT)


def let_others_through() -> None:
    """Give way to the other sessions often enough for each of them to pass on one chunk.

    Call this after long work without a pause.
    """
    for _ in range(_TURNS_OF_A_CHUNK):
        give_way()


def in_turns[T](items: Iterable[T]) -> Iterator[T]:
    """Yield the items, and let other sessions run whenever the work on them has taken ``MAX_TURN_SECONDS``.

    Time in which the process waited does not count, because the other sessions could run then.
    """
    began = perf_counter()
    others_ran = _others_ran()
    for item in items:
        if perf_counter() - began > MAX_TURN_SECONDS:  # includes the caller's work on the previous item
            began, others_ran = _end_of_turn(others_ran)
        yield item
    if perf_counter() - began > MAX_TURN_SECONDS:
        _end_of_turn(others_ran)


_MANY = 1_000
"""Number of parts above which work on a value takes noticeable time."""


class _Parts[T](Sized, Iterable[T], Protocol): ...


def in_turns_if_many[T](parts: _Parts[T]) -> Iterable[T]:
    """Return the parts, with pauses between them if there are many. For few parts, checking the time costs too much."""
    if len(parts) > _MANY:
        return in_turns(parts)
    return parts


def give_way_if_due(began: float) -> float:
    """Let other sessions run if the work since ``began`` has taken ``MAX_TURN_SECONDS``; return the new start time.

    Both times are values of ``perf_counter``.
    """
    if perf_counter() - began > MAX_TURN_SECONDS:
        give_way()
        return perf_counter()
    return began


def _end_of_turn(others_ran: float) -> tuple[float, float]:
    """Let the other sessions run unless they already have; return the current time and the time when they last ran."""
    if _others_ran() == others_ran:
        give_way()
    return perf_counter(), _others_ran()


def _others_ran() -> float:
    """Return when the event loop last looked for ready greenlets, by the loop's own clock."""
    return float(gevent.get_hub().loop.now())


TOOL_PHASE_SHARE = 0.9
"""Share of the run's time for the tool phase. The rest is reserved for the closing answer."""


@dataclass(frozen=True)
class Clock:
    """The source of time; tests replace it."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = gevent.sleep


@dataclass(frozen=True, order=True)
class Deadline:
    """A time limit on a clock, earlier than the host's own limits (docs/host-facts.md, "Time limits")."""

    clock: Clock = field(compare=False)
    moment: float

    def at_least(self, seconds: float) -> "Deadline":
        """Return this deadline, or a later one if fewer seconds are left."""
        return replace(self, moment=max(self.moment, self.clock.now() + seconds))

    def left(self) -> float:
        """Return the seconds until the deadline, never a negative number."""
        return max(0.0, self.moment - self.clock.now())

    def has_passed(self) -> bool:
        return self.clock.now() >= self.moment


@dataclass
class SharedWait:
    """The wait and the retries that all requests of a run share after a service has refused one of them."""

    refusals: int = 0
    """Number of refusals that counted. A refusal does not count if another counted after its request was sent."""
    has_given_up: bool = False
    _waits_left: tuple[float, ...] = ()
    _free: Deadline | None = None  # None while the service is available

    def refused(self, refusals_before: int, waits: tuple[float, ...], clock: Clock) -> float:
        """Record a refusal and return the seconds to wait.

        ``refusals_before`` is the number of refusals when the request was sent. ``waits`` are the seconds between
        retries; they apply only if the service was available before.
        """
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
        """Wait until a request may be sent, unless that is after the deadline; return the seconds that this took."""
        waited = 0.0
        while self._free and 0 < (left := self._free.left()) < deadline.left():
            deadline.clock.sleep(left)
            waited += left
        if self._free:
            self._free = Deadline(deadline.clock, deadline.clock.now() + HEAD_START)
        return waited
