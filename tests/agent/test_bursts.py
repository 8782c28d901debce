"""However fast a run's messages come: the daemon's bridge, with its 128 places, loses none of them."""

from collections.abc import Sequence

from devhost.protocol.wire import Bridge
from tests.support.clock import FakeTime
from tests.support.host import Json
from tests.support.scenes import live
from tests.support.wire import calls, replies, says

PLACES = 128
ROUNDS = 30
SEARCHES = [calls(*[("search", {"q": f"{number}-{call}"}) for call in range(4)]) for number in range(ROUNDS)]


def losses(messages: Sequence[tuple[float, Json]], places: int) -> list[str]:
    """What a daemon loses that passes on all that waits whenever any time passes, and nothing in between."""
    bridge, waiting, last = Bridge(places), 0, 0.0
    for at, message in messages:
        if at > last:
            for _ in range(waiting):
                bridge.passed_on()
            waiting, last = 0, at
        waiting += bridge.admits(message["type"])
    return bridge.losses


def test_no_message_of_a_burst_is_lost() -> None:
    """On a clock that stands still, but for the pauses of the run itself, all messages come at once."""
    time = FakeTime()
    run = live(
        [*SEARCHES, says("Found.")], {"search": replies("found")}, {"maximum_iterations": ROUNDS + 1}, time.clock
    )
    messages = [(time.now, message) for message in run.messages]
    assert losses(messages, PLACES) == []
    assert len(losses([(0.0, message) for _, message in messages], PLACES)) == len(messages) - PLACES > PLACES
