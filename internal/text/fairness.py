"""Long work that lets other sessions run: one process serves all of them in one thread.

In: items that take time to make or to handle. Out: the same items; now and then the other sessions run in between.
"""

from collections.abc import Iterable, Iterator
from time import perf_counter, process_time

import gevent

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
