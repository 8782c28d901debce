"""Long work lets other sessions run, and a deadline counts down."""

from collections.abc import Iterator

import gevent
import pytest

from internal import clock
from internal.clock import MAX_TURN_SECONDS, MOMENT, Deadline, in_turns
from tests.support.clock import FakeTime

TURN = MAX_TURN_SECONDS


@pytest.fixture
def time() -> Iterator[FakeTime]:
    with FakeTime().governed() as time:
        yield time


@pytest.mark.parametrize(
    ("make", "handle", "turns"),
    [(0, TURN / 10, []), (0, TURN / 2.5, [3, 6, 9]), (2 * TURN, 0, list(range(9)))],
    ids=["quick work", "long handling", "long making"],
)
def test_others_run_whenever_work_took_a_turns_time(
    make: float, handle: float, turns: list[int], time: FakeTime
) -> None:
    assert others_turns(make, handle, time) == turns


def test_waiting_is_not_work(time: FakeTime, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream with pauses is passed on without any more of them."""
    monkeypatch.setattr(clock, "process_time", lambda: 0.0)

    assert others_turns(0, 10 * TURN, time) == []


def others_turns(make: float, handle: float, time: FakeTime) -> list[int]:
    """After which of nine items another greenlet ran; each takes so many seconds to make and to handle."""
    done, turns = [0], list[int]()

    def made() -> Iterator[int]:
        for item in range(1, 10):
            time.advance(make)
            yield item

    def other() -> None:
        while True:
            if turns[-1:] != done[-1:]:
                turns.append(done[-1])
            gevent.sleep(0)

    greenlet = gevent.spawn(other)
    for item in in_turns(made()):
        time.advance(handle)
        done.append(item)
    greenlet.kill(block=False)
    return turns


def test_a_timer_that_is_due_runs_at_the_next_turn(time: FakeTime, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other sessions wait for timers and sockets, which gevent looks at less often than at what is ready."""
    monkeypatch.setattr(clock, "MOMENT", MOMENT)
    handled, seen = list[int](), list[int]()
    gevent.spawn_later(0.0, lambda: seen.append(len(handled)))

    for item in in_turns(range(1, 100)):
        time.advance(2 * TURN)
        handled.append(item)

    assert seen == [1]


def test_a_deadline_counts_down_on_its_clock_and_never_below_zero() -> None:
    time = FakeTime()
    deadline = Deadline(time.clock, time.now + 10)

    for seconds, left in ((0, 10), (9, 1), (1, 0), (100, 0)):
        time.advance(seconds)
        assert (deadline.left(), deadline.has_passed()) == (left, left == 0)
    assert deadline < deadline.at_least(3)
    assert deadline.at_least(3).left() == 3
