"""Long work that lets other sessions run: one process serves all of them in one thread.

In: items that take time to make or to handle. Out: the same items, with a pause for the others now and then.
"""

from collections.abc import Iterable, Iterator
from time import perf_counter

import gevent

LONGEST_TURN = 0.003
"""Seconds of work after which the others get their turn; a chunk on its way through a session takes about ten turns."""


def in_turns[T](items: Iterable[T]) -> Iterator[T]:
    """Pass items on; once they have taken their time, switch to other greenlets before the next one."""
    began = perf_counter()
    for item in items:
        yield item
        if perf_counter() - began > LONGEST_TURN:
            gevent.sleep(0)
            began = perf_counter()
