"""Several jobs at once, their events as they happen.

In: jobs, each a function that posts events and returns a result. Out: the events, then the results by position; a job
that is still running at the deadline has no result. Each job has a greenlet, the queue is unbounded, and jobs that are
left at the end are killed: with the SDK, shutting down a pool waits for a silent tool, and a bounded queue hangs.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import gevent
from gevent.queue import Empty, Queue

from internal.host.clock import Deadline
from internal.report.events import Event

GRACE_SECONDS = 1.0
"""How long after the deadline a job may take to return what it has."""
_KILL_SECONDS = 2

type Post = Callable[[Event], None]
type Job[T] = Callable[[Post], T]


@dataclass(frozen=True)
class _Result[T]:
    position: int
    value: T


def run_side_by_side[T](jobs: Sequence[Job[T]], deadline: Deadline) -> Generator[Event, None, dict[int, T]]:
    """Run the jobs. A job must not raise: its exception would be lost."""
    inbox: Queue[Event | _Result[T]] = Queue()
    results: dict[int, T] = {}

    def work(position: int, job: Job[T]) -> None:
        inbox.put(_Result(position, job(inbox.put)))

    workers = [gevent.spawn(work, position, job) for position, job in enumerate(jobs)]
    try:
        while len(results) < len(jobs):
            try:
                item = inbox.get(timeout=deadline.left() + GRACE_SECONDS)
            except Empty:
                break
            if isinstance(item, _Result):
                results[item.position] = item.value
            else:
                yield item
    finally:
        if left := [worker for worker in workers if not worker.ready()]:
            gevent.killall(left, block=False)
            # A run that is not read to its end may be collected while gevent's hub runs, and the hub must not wait.
            if gevent.getcurrent() is not gevent.get_hub():
                gevent.joinall(left, timeout=_KILL_SECONDS)
    return results


def changed[T](events: Generator[Event, None, T], change: Callable[[Event], Event]) -> Generator[Event, None, T]:
    """A generator's events, each as ``change`` makes it, and its result."""
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            result: T = end.value
            return result
        yield change(event)


def drain[T](events: Generator[Event, None, T], post: Post) -> T:
    """Post a generator's events, and return its result."""
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            result: T = end.value
            return result
        post(event)
