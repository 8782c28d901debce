"""What may be under way in a run, and the ways in which a run ends early."""

import gc
from collections.abc import Callable, Generator, Iterator

import gevent
from gevent.event import Event

from internal.calls.runner import Post
from internal.clock import Clock, Deadline
from internal.errors import OurWords
from internal.events import Noted
from internal.host.session import MAX_WAITING
from tests.support.clock import PATIENCE, FakeTime

type Answers = Generator[int, None, None]


def left() -> float:
    """Time is never up."""
    return PATIENCE


class Call:
    """The SDK's side of a call: answers and waits, as a test gives them."""

    def __init__(self, *steps: int | Callable[[], object]) -> None:
        self.steps = steps
        self.read: list[int] = []
        self.has_begun = False
        self.ended = Event()

    def answers(self) -> Answers:
        self.has_begun = True
        try:
            for step in self.steps:
                if callable(step):
                    step()
                else:
                    self.read.append(step)
                    yield step
        finally:
            self.ended.set()


def never() -> None:
    """A host that says nothing more."""
    Event().wait()


def until(time: FakeTime) -> Callable[[], float]:
    deadline = time.now + 10
    return lambda: deadline - time.now


STUCK: dict[str, Callable[[], Call]] = {
    "silent": lambda: Call(1, never),
    "waiting for a free place": lambda: Call(*range(10 * MAX_WAITING)),
}


def closed(come: list[Iterator[list[int]]]) -> None:
    come.pop().close()  # type: ignore[attr-defined] # it is a generator


def collected(come: list[Iterator[list[int]]]) -> None:
    come.clear()
    gc.collect()


def killed(come: list[Iterator[list[int]]]) -> None:
    def work() -> None:
        for _ in come.pop():
            Event().wait()

    run = gevent.spawn(work)
    gevent.idle()
    run.kill()


def in_time() -> Deadline:
    clock = Clock()
    return Deadline(clock, clock.now() + PATIENCE)


def stuck(ended: list[str]) -> Callable[[Post], str]:
    """A job that never ends by itself, and notes when it was ended."""

    def job(post: Post) -> str:
        post(Noted(OurWords("stuck")))
        try:
            Event().wait()
        finally:
            ended.append("stuck")
        return "never"

    return job


def closed_by_the_hub(events: Iterator[object]) -> list[BaseException]:
    """What fails when a generator is closed while gevent's hub is at work, where nothing may block."""
    failures, is_closed = list[BaseException](), Event()

    def close() -> None:
        try:
            events.close()  # type: ignore[attr-defined] # it is a generator
        except BaseException as failure:  # noqa: BLE001 - handed to the test
            failures.append(failure)
        is_closed.set()

    gevent.get_hub().loop.run_callback(close)
    assert is_closed.wait(PATIENCE)
    return failures
