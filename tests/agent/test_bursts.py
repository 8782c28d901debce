"""However fast a run's messages come: the daemon's queue, with its 128 places, loses none of them."""

from collections import Counter

from tests.support.clock import FakeTime
from tests.support.scenes import live
from tests.support.wire import calls, replies, says

PLACES = 128
ROUNDS = 30
SEARCHES = [calls(*[("search", {"q": f"{number}-{call}"}) for call in range(4)]) for number in range(ROUNDS)]


def test_no_message_of_a_burst_is_lost() -> None:
    """On a clock that stands still, but for the run's own pauses, in which the daemon passes on all that waits."""
    time = FakeTime()
    run = live(
        [*SEARCHES, says("Found.")], {"search": replies("found")}, {"maximum_iterations": ROUNDS + 1}, time.clock
    )
    at_once = Counter(time.now for _ in run.messages)
    assert at_once.total() > 2 * PLACES
    assert max(at_once.values()) <= PLACES
