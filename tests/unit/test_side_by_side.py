"""Jobs side by side: their events as they happen, their results by position, and no job left running."""

from collections.abc import Callable, Generator

import gevent
from gevent.event import Event as Signal

from internal.calls import runner as side_by_side
from internal.calls.runner import Post, drain, run_side_by_side
from internal.clock import Clock, Deadline
from internal.errors import OurWords
from internal.events import Event, Noted
from tests.agent.scenes import silence
from tests.support.clock import PATIENCE, FakeTime


def in_time(seconds: float = PATIENCE) -> Deadline:
    clock = Clock()
    return Deadline(clock, clock.now() + seconds)


def collect[T](events: Generator[Event, None, T]) -> tuple[list[str], T]:
    """The texts of all events, and the result."""
    texts: list[str] = []
    return texts, drain(events, lambda event: texts.append(text_of(event)))


def text_of(event: Event) -> str:
    assert isinstance(event, Noted)
    return event.text


def test_results_are_at_the_position_of_their_job_in_any_order_of_completion() -> None:
    second_is_done = Signal()

    def first(post: Post) -> str:
        assert second_is_done.wait(PATIENCE)
        post(Noted(OurWords("first")))
        return "a"

    def second(post: Post) -> str:
        post(Noted(OurWords("second")))
        second_is_done.set()
        return "b"

    texts, results = collect(run_side_by_side([first, second], in_time()))

    assert texts == ["second", "first"]
    assert [results[0], results[1]] == ["a", "b"]


def test_an_event_arrives_while_its_job_still_runs() -> None:
    seen = Signal()

    def job(post: Post) -> bool:
        post(Noted(OurWords("begun")))
        return seen.wait(PATIENCE)

    events = run_side_by_side([job], in_time())

    assert next(events) == Noted(OurWords("begun"))
    seen.set()
    assert collect(events) == ([], {0: True})


def stuck(ended: list[str]) -> Callable[[Post], str]:
    """A job that never ends by itself, and notes when it was ended."""

    def job(post: Post) -> str:
        post(Noted(OurWords("stuck")))
        try:
            Signal().wait()
        finally:
            ended.append("stuck")
        return "never"

    return job


def test_a_job_that_still_runs_when_time_is_up_has_no_result_and_is_ended() -> None:
    ended: list[str] = []

    with FakeTime().governed() as time:
        gevent.spawn(silence(time, 10 + side_by_side.GRACE_SECONDS))
        jobs = [stuck(ended), lambda _: "done"]
        texts, results = collect(run_side_by_side(jobs, Deadline(time.clock, time.now + 10)))

    assert texts == ["stuck"]
    assert results == {1: "done"}
    assert ended == ["stuck"]


def test_a_job_may_say_after_the_deadline_that_it_has_passed() -> None:
    deadline = in_time(0)

    def late(post: Post) -> str:
        gevent.sleep(0)
        post(Noted(OurWords("too late")))
        return "half"

    assert collect(run_side_by_side([late], deadline)) == (["too late"], {0: "half"})


def test_closing_the_events_ends_the_jobs() -> None:
    ended: list[str] = []
    events = run_side_by_side([stuck(ended)], in_time())
    next(events)

    events.close()

    assert ended == ["stuck"]


def test_a_run_that_is_collected_while_the_hub_runs_ends_its_jobs_too() -> None:
    """A blocking call there would fail, and python would print what it cannot raise."""
    ended, failures = Signal(), list[BaseException]()

    def job(post: Post) -> None:
        try:
            post(Noted(OurWords("begun")))
            gevent.sleep(PATIENCE)
        finally:
            ended.set()

    events = run_side_by_side([job], in_time())
    next(events)

    def close() -> None:
        try:
            events.close()
        except BaseException as failure:  # noqa: BLE001 - handed to the test
            failures.append(failure)

    gevent.get_hub().loop.run_callback(close)

    assert ended.wait(PATIENCE)
    assert failures == []
