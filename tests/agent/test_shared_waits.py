"""Subtasks side by side whose model is rate limited or overloaded: they wait together, and share the tries."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from internal.clock import HEAD_START, Deadline, SharedWait
from internal.model.turn import RETRY_WAITS
from tests.support.clock import SideBySideTime
from tests.support.host import Json, Step, When
from tests.support.plans import answers, completed, done_at_once, looked_up, of_subtask, plan_run, plans, works_on
from tests.support.run import Outcome
from tests.support.wire import fails, replies, says, text_message

NAMES = ("alpha", "beta", "gamma", "delta")
REFUSALS = {
    "rate limit": fails("InvokeRateLimitError", "slow down"),
    "overload": fails("InvokeServerUnavailableError", "overloaded"),
}
refusals = pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)


@pytest.fixture
def time() -> Iterator[SideBySideTime]:
    with SideBySideTime().governed() as time:
        assert isinstance(time, SideBySideTime)
        yield time


def timed(turn: Sequence[Any], time: SideBySideTime, moments: list[float]) -> list[Any]:
    """A turn that notes when it was asked for, in seconds since the start."""
    return [lambda: moments.append(time.now - 1000), *turn]


def notes_of_waits(outcome: Outcome) -> list[str]:
    return [note for note in outcome.notes if note.startswith("the model refused another request")]


@refusals
def test_of_subtasks_that_are_refused_at_once_one_tries_again_and_the_others_follow(
    refusal: list[Any], time: SideBySideTime
) -> None:
    moments = list[float]()
    served = [
        step
        for name in NAMES
        for step in (works_on(name, timed(says(f"Answer to {name}."), time, moments)), completed(name))
    ]

    outcome = plan_run([plans(*NAMES), *[timed(refusal, time, moments)] * 5, *served, answers()], clock=time.clock)

    assert outcome.error is None
    assert all(subtask["completed"] for subtask in outcome.variables["subtasks"])
    answered = moments[5:]
    assert moments[:5] == [0, 0, 0, 0, 1], "one tries alone"
    assert answered[0] == 5
    assert all(5 <= moment <= 6 for moment in answered), "the others follow when it was served"
    assert len(answered) == 4


@refusals
def test_the_tries_are_shared_and_not_multiplied(refusal: list[Any], time: SideBySideTime) -> None:
    moments = list[float]()
    every = [timed(refusal, time, moments)] * (len(NAMES) + len(RETRY_WAITS))

    outcome = plan_run([plans(*NAMES), *every, answers()], clock=time.clock)

    assert outcome.error is None
    assert moments == [0, 0, 0, 0, 1, 5]
    assert not any(subtask["completed"] for subtask in outcome.variables["subtasks"])
    assert all(outcome.logs[f"subtask{number}"]["status"] == "error" for number in range(1, 5))


def test_the_next_call_of_another_subtask_waits_for_the_same_moment(time: SideBySideTime) -> None:
    """Beta runs a tool while alpha is refused; its next request would be refused as well."""
    moments = list[float]()

    def found(request: Json) -> Iterator[Json]:
        time.sleep(0.25)
        yield text_message(f"result for {request['tool_parameters']['q']}")

    first, then, judged = looked_up("beta")
    assert isinstance(then, When)
    steps: list[Step] = [
        plans("alpha", "beta"),
        works_on("alpha", timed(REFUSALS["rate limit"], time, moments)),
        first,
        works_on("alpha", timed(says("Answer to alpha."), time, moments)),
        completed("alpha"),
        When(then.text, timed(then.turn, time, moments)),
        judged,
        answers(),
    ]

    outcome = plan_run(steps, {"search": found}, clock=time.clock)

    assert all(subtask["completed"] for subtask in outcome.variables["subtasks"])
    assert moments[:2] == [0, 1]
    assert 1 <= moments[2] <= 1 + HEAD_START
    (note,) = notes_of_waits(outcome)
    assert note.startswith("the model refused another request; waited ")
    assert len(of_subtask(outcome, "beta")) == 2


def test_a_failed_connection_is_no_concern_of_the_others(time: SideBySideTime) -> None:
    moments = list[float]()
    broken = works_on("alpha", timed(fails("InvokeConnectionError", "reset by peer"), time, moments))
    steps = [plans("alpha", "beta"), broken, *looked_up("beta"), *done_at_once("alpha"), answers()]

    outcome = plan_run(steps, {"search": replies("result for beta")}, clock=time.clock)

    assert all(subtask["completed"] for subtask in outcome.variables["subtasks"])
    assert notes_of_waits(outcome) == []
    assert time.slept == [1.0]


def test_the_answer_has_tries_of_its_own_after_all_subtasks_have_used_theirs(time: SideBySideTime) -> None:
    limited = REFUSALS["rate limit"]
    steps = [plans("alpha", "beta"), *[limited] * 4, When("<findings>", limited), answers()]

    outcome = plan_run(steps, clock=time.clock)

    assert outcome.error is None
    assert outcome.text.endswith("Here is all of it.")


def test_a_request_that_was_sent_before_a_refusal_tells_nothing_about_the_wait_that_follows() -> None:
    clock = SideBySideTime().clock
    wait = SharedWait()
    assert wait.refused(0, RETRY_WAITS, clock) == 1.0

    wait.served(0)

    assert wait.refused(0, RETRY_WAITS, clock) == 1.0
    assert wait.refusals == 1
    wait.served(1)
    assert wait.pause(Deadline(clock, 2_000)) == 0
    assert wait.refused(1, RETRY_WAITS, clock) == 1.0, "the tries start again"


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    time = SideBySideTime()
    wait = SharedWait()
    wait.refused(0, (4.0,), time.clock)

    assert wait.pause(Deadline(time.clock, time.now + 3)) == 0
    assert time.slept == []
