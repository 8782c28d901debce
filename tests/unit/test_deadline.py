"""The soft deadline of a run."""

from internal.clock import Clock, Deadline
from tests.support.clock import FakeTime


def test_a_deadline_counts_down_on_its_clock_and_never_below_zero() -> None:
    time = FakeTime()
    deadline = Deadline(time.clock, time.now + 10)

    assert (deadline.left(), deadline.has_passed()) == (10, False)
    time.advance(9)
    assert (deadline.left(), deadline.has_passed()) == (1, False)
    time.advance(1)
    assert (deadline.left(), deadline.has_passed()) == (0, True)
    time.advance(100)
    assert (deadline.left(), deadline.has_passed()) == (0, True)


def test_the_clock_of_a_real_run_never_goes_back() -> None:
    clock = Clock()
    first = clock.now()
    clock.sleep(0)

    assert clock.now() >= first
