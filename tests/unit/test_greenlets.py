"""Greenlets of a run: answers read ahead and jobs side by side, in order, bounded, and none left behind."""

import gc
from collections.abc import Callable, Generator, Iterator

import gevent
import pytest
from gevent.event import Event
from hypothesis import given
from hypothesis import strategies as st

from internal.calls.runner import Post, run_side_by_side
from internal.clock import Clock, Deadline
from internal.errors import OurWords
from internal.events import LogNote
from internal.host.session import MAX_WAITING, DeadlinePassed, batches
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
        post(LogNote(OurWords("stuck")))
        try:
            Event().wait()
        finally:
            ended.append("stuck")
        return "never"

    return job


def closed_by_the_hub(events: Iterator[object]) -> list[BaseException]:
    """What fails when a generator is closed while gevent's hub is at work, where nothing may block."""
    failures = list[BaseException]()
    is_closed = Event()

    def close() -> None:
        try:
            events.close()  # type: ignore[attr-defined] # it is a generator
        except BaseException as failure:  # noqa: BLE001 - handed to the test
            failures.append(failure)
        is_closed.set()

    gevent.get_hub().loop.run_callback(close)
    assert is_closed.wait(PATIENCE)
    return failures


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(0, 3))
def test_every_item_comes_once_and_in_order_however_the_host_pauses(pauses: list[int], busy: int) -> None:
    def answers() -> Answers:
        for number, pause in enumerate(pauses):
            for _ in range(pause):
                gevent.sleep(0)
            yield number

    came: list[int] = []
    for batch in batches(answers(), left, PATIENCE):
        assert batch
        came += batch
        for _ in range(busy):
            gevent.sleep(0)

    assert came == list(range(len(pauses)))


def test_items_that_come_while_the_run_is_busy_are_one_batch() -> None:
    come = batches(Call(1, gevent.sleep, 2, gevent.sleep, 3, 4).answers(), left, PATIENCE)

    assert next(come) == [1]
    gevent.idle()
    assert next(come) == [2, 3, 4]


def test_reading_ahead_is_bounded() -> None:
    call = Call(*range(10 * MAX_WAITING))
    come = batches(call.answers(), left, PATIENCE)

    assert len(next(come)) == MAX_WAITING
    gevent.idle()
    assert len(call.read) <= 2 * MAX_WAITING + 1
    assert sum(map(len, come)) == 9 * MAX_WAITING


def test_a_call_is_not_made_when_there_is_no_time() -> None:
    call = Call(1)

    with pytest.raises(DeadlinePassed):
        next(batches(call.answers(), lambda: 0.0, PATIENCE))
    gevent.idle()

    assert not call.has_begun


def test_items_that_came_before_the_deadline_are_passed_on() -> None:
    time = FakeTime()
    come = batches(Call(1, gevent.sleep, 2, 3, never).answers(), until(time), PATIENCE)

    assert next(come) == [1]
    gevent.idle()
    time.advance(11)
    assert next(come) == [2, 3]
    with pytest.raises(DeadlinePassed):
        next(come)


@pytest.mark.parametrize("end", [closed, collected, killed])
@pytest.mark.parametrize("make_call", STUCK.values(), ids=STUCK)
def test_a_run_that_ends_early_ends_its_call(
    make_call: Callable[[], Call], end: Callable[[list[Iterator[list[int]]]], None]
) -> None:
    call = make_call()
    come = [batches(call.answers(), left, PATIENCE)]
    next(come[0])
    gevent.idle()

    end(come)

    assert call.ended.wait(PATIENCE)


# Jobs side by side.


def test_a_run_that_is_collected_while_the_hub_is_at_work_ends_its_calls_and_jobs() -> None:
    call = Call(1, never)
    ended = list[str]()
    come = batches(call.answers(), left, PATIENCE)
    events = run_side_by_side([stuck(ended)], in_time())
    next(come)
    next(events)

    assert closed_by_the_hub(come) + closed_by_the_hub(events) == []

    gevent.idle()
    assert call.ended.wait(PATIENCE)
    assert ended == ["stuck"]
