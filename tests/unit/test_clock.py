"""Long work and many messages let other sessions run, and a deadline counts down."""

from collections.abc import Iterator
from itertools import count

import gevent
import pytest
from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage

from internal import clock
from internal.clock import MAX_TURN_SECONDS, MOMENT, in_turns
from internal.render.messages import MAX_AT_ONCE, PAUSE_SECONDS, paced
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
    looks = count()
    monkeypatch.setattr(clock, "_others_ran", lambda: float(next(looks)))

    assert others_turns(0, 10 * TURN, time) == []


def others_turns(make: float, handle: float, time: FakeTime) -> list[int]:
    """After which of nine items another greenlet ran; each takes so many seconds to make and to handle."""
    done = [0]
    turns = list[int]()

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
    handled = list[int]()
    seen = list[int]()
    gevent.spawn_later(0.0, lambda: seen.append(len(handled)))

    for item in in_turns(range(1, 100)):
        time.advance(2 * TURN)
        handled.append(item)

    assert seen == [1]


TEXT = AgentInvokeMessage(type=InvokeMessage.MessageType.TEXT, message=InvokeMessage.TextMessage(text="a"))
BLOB = AgentInvokeMessage(
    type=InvokeMessage.MessageType.BLOB_CHUNK,
    message=InvokeMessage.BlobChunkMessage(id="b", sequence=0, total_length=1, blob=b"x", end=False),
)


def pauses(messages: list[AgentInvokeMessage], seconds_between: float = 0.0, slow: int | None = None) -> list[int]:
    """After how many messages there was a pause; time passes after the first ``slow`` ones, or after each."""
    time = FakeTime()
    written = 0
    found = []
    for _ in paced(messages, time.clock):
        if time.slept:
            assert time.slept == [PAUSE_SECONDS]
            found.append(written)
            time.slept.clear()
        written += 1
        time.advance(seconds_between if slow is None or written <= slow else 0.0)
    assert written == len(messages)
    return found


def test_after_every_hundred_messages_at_once_there_is_a_pause() -> None:
    assert (MAX_AT_ONCE, PAUSE_SECONDS) == (100, 0.010)
    assert pauses([TEXT] * 100) == []
    assert pauses([TEXT] * 350) == [100, 200, 300]
    assert pauses([TEXT] * 300, seconds_between=1.0, slow=150) == [249]
    assert pauses([TEXT] * 350, seconds_between=0.0003) == []


def test_blob_chunks_do_not_count() -> None:
    assert pauses([BLOB] * 1_000) == []
    assert pauses([*[TEXT] * 100, *[BLOB] * 1_000, TEXT]) == [1_100]
