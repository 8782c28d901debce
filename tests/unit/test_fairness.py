"""Long work lets other sessions run."""

from collections.abc import Iterator

import gevent
import pytest

from internal import clock as fairness
from internal.clock import MAX_TURN_SECONDS, MOMENT, in_turns
from internal.sources import escaped
from tests.support.clock import FakeTime


@pytest.fixture
def time() -> Iterator[FakeTime]:
    with FakeTime().governed() as time:
        yield time


def others_turns(items: Iterator[int], handle: float, time: FakeTime) -> list[int]:
    """After which items another greenlet ran."""
    done, turns = [0], list[int]()

    def other() -> None:
        while True:
            if turns[-1:] != done[-1:]:
                turns.append(done[-1])
            gevent.sleep(0)

    greenlet = gevent.spawn(other)
    for item in in_turns(items):
        time.advance(handle)
        done.append(item)
    greenlet.kill(block=False)
    return turns


def test_quick_work_is_not_interrupted(time: FakeTime) -> None:
    assert others_turns(iter(range(1, 10)), MAX_TURN_SECONDS / 10, time) == []


def test_others_run_whenever_handling_took_a_turns_time(time: FakeTime) -> None:
    assert others_turns(iter(range(1, 10)), MAX_TURN_SECONDS / 2.5, time) == [3, 6, 9]


def test_waiting_is_not_work(time: FakeTime, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream with pauses is passed on without any more of them."""
    monkeypatch.setattr(fairness, "process_time", lambda: 0.0)

    assert others_turns(iter(range(1, 10)), 10 * MAX_TURN_SECONDS, time) == []


def test_others_run_between_making_and_handling(time: FakeTime) -> None:
    def made() -> Iterator[int]:
        for item in (1, 2):
            time.advance(2 * MAX_TURN_SECONDS)
            yield item

    assert others_turns(made(), 0.0, time) == [0, 1]


@pytest.mark.parametrize("text", ["<" * 100_000, "x" * 50_000 + "</context>" * 9_000, "< / source>" * 5_000, ""])
def test_a_text_that_is_escaped_in_blocks_is_escaped_as_a_whole(text: str) -> None:
    expected = text.replace("</c", "&lt;/c").replace("< / s", "&lt; / s")

    assert escaped(text) == expected


def test_a_timer_that_is_due_runs_at_the_next_turn(time: FakeTime, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other sessions wait for timers and sockets, which gevent looks at less often than at what is ready."""
    monkeypatch.setattr(fairness, "MOMENT", MOMENT)
    handled, seen = list[int](), list[int]()
    gevent.spawn_later(0.0, lambda: seen.append(len(handled)))

    for item in in_turns(range(1, 100)):
        time.advance(2 * MAX_TURN_SECONDS)
        handled.append(item)

    assert seen == [1]
