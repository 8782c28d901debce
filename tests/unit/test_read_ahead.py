"""A call's answers, read ahead: in batches, in order, bounded, and without a greenlet left behind."""

import gc
from collections.abc import Callable, Generator, Iterator
from itertools import count
from unittest.mock import patch

import gevent
import pytest
from gevent.event import Event
from hypothesis import given
from hypothesis import strategies as st

from internal import clock as fairness
from internal.clock import MOMENT
from internal.host.failures import FailureKind, HostFailure
from internal.host.session import MAX_WAITING, DeadlinePassed, batches
from tests.agent.scenes import silence
from tests.support.clock import PATIENCE, FakeTime

type Answers = Generator[int, None, None]


def left() -> float:
    """Time is never up."""
    return PATIENCE


class Call:
    """The SDK's side of a call: answers, errors and waits, as a test gives them."""

    def __init__(self, *steps: int | Exception | Callable[[], object]) -> None:
        self.steps = steps
        self.read: list[int] = []
        self.has_begun = False
        self.ended = Event()

    def answers(self) -> Answers:
        self.has_begun = True
        try:
            for step in self.steps:
                if isinstance(step, Exception):
                    raise step
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


def test_others_run_while_items_that_take_long_are_read() -> None:
    turns = list[int]()

    def work() -> None:
        for turn in count():
            turns.append(turn)
            gevent.sleep(MOMENT)

    other = gevent.spawn(work)
    with patch.object(fairness, "MAX_TURN_SECONDS", -1):  # every item takes longer
        list(batches(Call(*range(50)).answers(), left, PATIENCE))
    other.kill()

    assert len(turns) > 50


def test_an_error_comes_after_the_items_before_it() -> None:
    come = batches(Call(1, 2, ValueError("kaboom")).answers(), left, PATIENCE)

    assert next(come) == [1, 2]
    with pytest.raises(HostFailure, match="kaboom"):
        next(come)


def test_a_call_is_not_made_when_there_is_no_time() -> None:
    call = Call(1)

    with pytest.raises(DeadlinePassed):
        next(batches(call.answers(), lambda: 0.0, PATIENCE))
    gevent.idle()

    assert not call.has_begun


def until(time: FakeTime) -> Callable[[], float]:
    deadline = time.now + 10
    return lambda: deadline - time.now


def test_items_that_came_before_the_deadline_are_passed_on() -> None:
    time = FakeTime()
    come = batches(Call(1, gevent.sleep, 2, 3, never).answers(), until(time), PATIENCE)

    assert next(come) == [1]
    gevent.idle()
    time.advance(11)
    assert next(come) == [2, 3]
    with pytest.raises(DeadlinePassed):
        next(come)


def test_an_answer_is_given_more_time_for_what_came_last() -> None:
    time, seen, came = FakeTime(), Event(), list[int]()
    deadline = until(time)

    def left_for_more() -> float:
        return PATIENCE if 2 in came else deadline()

    for batch in batches(Call(1, gevent.sleep, 2, seen.wait, 3).answers(), left_for_more, PATIENCE):
        came.extend(batch)
        if came == [1]:
            gevent.idle()
            time.advance(11)
        else:
            seen.set()

    assert came == [1, 2, 3]


def test_a_host_that_never_stops_is_left_at_the_deadline() -> None:
    time = FakeTime()
    call = Call(*range(1000 * MAX_WAITING))
    come = batches(call.answers(), until(time), PATIENCE)

    next(come)
    gevent.idle()
    time.advance(11)
    assert sum(map(len, taken(come))) <= MAX_WAITING + 1
    assert call.ended.wait(PATIENCE)


def taken(come: Iterator[list[int]]) -> Iterator[list[int]]:
    """What comes until the deadline strikes."""
    with pytest.raises(DeadlinePassed):
        yield from come


def test_an_error_after_the_deadline_is_the_deadlines() -> None:
    time = FakeTime()
    call = Call(1, lambda: time.advance(11), ValueError("kaboom"))

    assert list(taken(batches(call.answers(), until(time), PATIENCE))) == [[1]]


def test_a_host_that_is_silent_for_too_long_has_failed() -> None:
    with FakeTime().governed() as time:
        come = batches(Call(1, silence(time, 5)).answers(), until(time), 5)

        assert next(come) == [1]
        with pytest.raises(HostFailure, match=r"without response after 5 seconds") as failed:
            next(come)
    assert failed.value.kind is FailureKind.TIMEOUT


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


@pytest.mark.parametrize("end", [closed, collected, killed])
@pytest.mark.parametrize("stuck", STUCK.values(), ids=STUCK)
def test_a_run_that_ends_early_ends_its_call(
    stuck: Callable[[], Call], end: Callable[[list[Iterator[list[int]]]], None]
) -> None:
    call = stuck()
    come = [batches(call.answers(), left, PATIENCE)]
    next(come[0])
    gevent.idle()

    end(come)

    assert call.ended.wait(PATIENCE)


def test_a_run_that_is_closed_while_the_hub_is_at_work_ends_its_call() -> None:
    """A blocking call there would fail, and Python would print what it cannot raise."""
    call, failures = Call(1, never), list[BaseException]()
    come = batches(call.answers(), left, PATIENCE)
    next(come)

    def close() -> None:
        try:
            come.close()  # type: ignore[attr-defined] # it is a generator
        except BaseException as failure:  # noqa: BLE001 - handed to the test
            failures.append(failure)

    gevent.get_hub().loop.run_callback(close)

    assert call.ended.wait(PATIENCE)
    assert failures == []
