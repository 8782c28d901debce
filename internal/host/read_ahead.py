"""The answers of a call, read ahead, so that all that waits already is handled at once.

In: a generator of the SDK, which waits for the host. Out: its items in batches. A greenlet reads while the run is busy
with the batch before, so a burst costs the run a few steps and not one for each item. No item waits for a batch to
fill.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

import gevent
from gevent.queue import Empty, Queue

from internal.host.failures import HostFailure
from internal.text.fairness import in_turns
from internal.text.wellformed import wellformed

MAX_WAITING = 250
"""Items of a batch, about as many short lines as the SDK reads at once (64 KiB). The reader stops there until they are
taken; what follows stays in the SDK's own queue."""


class DeadlinePassed(Exception):  # noqa: N818 - says what happened
    """The time that was given for a call is over."""


@dataclass(frozen=True)
class _End:
    """Follows the last item."""

    failure: str | None = None


def batches[T](items: Generator[T, None, None], left: Callable[[], float], silence: float) -> Iterator[list[T]]:
    """All items that wait, as soon as there is one.

    ``left`` tells the seconds until the deadline; the call is not made when there are none. What has come by the
    deadline is passed on first. ``silence`` is how many seconds may pass without an item. Heartbeats of the HTTP
    transport extend neither, though they do extend the SDK's own limit.

    Raises:
        HostFailure: the call failed, or was silent for too long.
        DeadlinePassed: no time is left.
    """
    inbox: Queue[T | _End] = Queue(MAX_WAITING)
    reader = gevent.spawn(_read, items, inbox)
    try:
        while (seconds := left()) > 0 or inbox.qsize():
            came = _take(inbox, seconds, silence)
            end = came[-1]
            if batch := [item for item in came if not isinstance(item, _End)]:
                yield batch
            if isinstance(end, _End):
                if end.failure is None:
                    return
                raise HostFailure(end.failure) if left() > 0 else DeadlinePassed
            if seconds <= 0 and left() <= 0:  # an answer may be given more time for what it has just brought
                break
        raise DeadlinePassed
    finally:
        # A run that is never read to its end may be collected while gevent's hub is at work, which must not wait.
        reader.kill(block=False)


def _take[T](inbox: "Queue[T | _End]", seconds: float, silence: float) -> list[T | _End]:
    """All that waits; the first item is waited for."""
    try:
        came = [inbox.get(timeout=min(seconds, silence))]
    except Empty:
        if silence < seconds:
            raise HostFailure(f"invocation exited without response after {silence:g} seconds") from None
        raise DeadlinePassed from None
    return came + [inbox.get_nowait() for _ in range(inbox.qsize())]


def _read[T](items: Generator[T, None, None], inbox: "Queue[T | _End]") -> None:
    """Put all items into the inbox, and last how they ended; other sessions run now and then, however large items are.

    The broad ``except`` stands around the host alone: the SDK reports every failure as a bare ``Exception``.
    """
    end = _End()
    try:
        for item in in_turns(items):
            inbox.put(item)
    except Exception as failure:  # noqa: BLE001 - see above
        end = _End(wellformed(str(failure)))
    finally:
        items.close()
    inbox.put(end)
