"""The soft deadline in the middle of a plan: subtasks end in time for the answer."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from internal.loop import MIN_CLOSING_SECONDS
from prompt import template
from tests.agent.plans import (
    ANSWER,
    advised,
    answers,
    done_at_once,
    echo,
    incomplete,
    judges,
    of_answer,
    of_subtask,
    opening,
    plan_run,
    plans,
    subtask,
    verdict,
    works_on,
)
from tests.agent.scenes import cut_off, results_in, search, silence, silent, text
from tests.support.clock import FakeTime
from tests.support.host import CallFails, Json, Step, When
from tests.support.run import Outcome
from tests.support.wire import USAGE, fails, says

SCHEMA = '{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}'
SHORT = {"maximum_seconds": 100}
PLANNING_IS_OVER, TOOLS_ARE_OVER, SUBTASKS_ARE_OVER = 40.5, 70.5, 85.5
"""Seconds of a run of 100 after which the phase has ended, by the shares of planning, tools and subtasks."""
QUERY = "What is it?"


def all_finished(outcome: Outcome) -> bool:
    return "start" not in {log["status"] for log in outcome.logs.values()}


def test_a_model_that_stays_silent_while_planning_leaves_time_to_work(time: FakeTime) -> None:
    planning = [text("Hm."), silence(time, PLANNING_IS_OVER)]

    outcome = plan_run([planning, *done_at_once(QUERY), answers()], params=SHORT, clock=time.clock)

    assert outcome.error is None
    assert outcome.variables["plan"] == [QUERY]
    assert subtask(outcome, QUERY)["completed"] is True
    assert (outcome.text, outcome.stop_reason) == (ANSWER, "answered")
    assert any("no plan came" in note for note in outcome.notes)
    assert all_finished(outcome)


def test_a_plan_is_not_asked_for_again_when_its_time_is_over() -> None:
    time = FakeTime()
    late = [text("Let me see."), lambda: time.advance(PLANNING_IS_OVER), text("Well.")]

    outcome = plan_run([late, *done_at_once(QUERY), answers()], params=SHORT, clock=time.clock)

    assert outcome.variables["plan"] == [QUERY]
    assert outcome.text == ANSWER


def test_a_tool_that_is_silent_at_the_deadline_leaves_time_for_judgement_and_answer(time: FakeTime) -> None:
    steps = [
        plans("quick", "slow"),
        *done_at_once("quick"),
        works_on("slow", search()),
        When(template.CLOSING_NOTE, says("No result in time.")),
        incomplete("slow", "Wait longer."),
        answers(),
    ]

    outcome = plan_run(steps, {"search": silent(time, TOOLS_ARE_OVER)}, SHORT, clock=time.clock)

    assert (outcome.text, outcome.stop_reason) == (ANSWER, "time_limit")
    (late,) = results_in(of_subtask(outcome, "slow")[-1]["prompt_messages"])
    assert late.endswith("timeout")
    assert [entry["completed"] for entry in outcome.variables["subtasks"]] == [True, False]
    assert subtask(outcome, "slow")["attempts"] == 1
    assert all_finished(outcome)


def test_no_new_attempt_begins_when_the_time_for_tools_is_over() -> None:
    time = FakeTime()

    def slow(request: Json) -> Iterator[Json]:
        time.advance(TOOLS_ARE_OVER)
        yield from echo(request)

    closing = When(template.CLOSING_NOTE, says("Too little."))
    steps = [plans("alpha"), works_on("alpha", search()), closing, incomplete("alpha", "More."), answers()]

    outcome = plan_run(steps, {"search": slow}, SHORT, clock=time.clock)

    assert subtask(outcome, "alpha")["attempts"] == 1
    assert outcome.stop_reason == "time_limit"


def silent_steps(time: FakeTime) -> list[Step]:
    return [
        plans("quick", "slow"),
        *done_at_once("quick"),
        works_on("slow", search()),
        When("result for x", [text("Hm."), silence(time, SUBTASKS_ARE_OVER)]),
        When(template.CLOSING_NOTE, [silence(time, MIN_CLOSING_SECONDS)]),
        answers(),
    ]


@cache
def silent_subtask(*, show_thoughts: bool = False) -> Outcome:
    """One subtask is done, the other's model says nothing any more."""
    params = {**SHORT, "emit_intermediate_thoughts": show_thoughts}
    with FakeTime().governed() as time:
        return plan_run(silent_steps(time), {"search": echo}, params, clock=time.clock)


def test_a_subtask_whose_model_never_answers_is_given_up_and_the_answer_says_so() -> None:
    outcome = silent_subtask()

    assert outcome.error is None
    assert (outcome.text, outcome.stop_reason) == (ANSWER, "time_limit")
    assert subtask(outcome, "slow")["completed"] is False
    asked = opening(of_answer(outcome)[0])
    assert "Answer to quick." in asked
    assert subtask(outcome, "slow")["answer"] in asked
    assert all_finished(outcome)
    assert outcome.logs["subtask1"]["status"] == "success"


def test_what_a_subtask_had_found_before_its_time_was_over_is_not_lost(time: FakeTime) -> None:
    steps = [
        plans("alpha"),
        works_on("alpha", says("Step one is X [1].")),
        incomplete("alpha", "Find step two."),
        advised("Find step two.", [text("Hm."), silence(time, SUBTASKS_ARE_OVER)]),
        When(template.CLOSING_NOTE, [silence(time, MIN_CLOSING_SECONDS)]),
        answers(),
    ]

    outcome = plan_run(steps, {"search": echo}, SHORT, clock=time.clock)

    assert outcome.stop_reason == "time_limit"
    assert "Step one is X [1]." in subtask(outcome, "alpha")["answer"]
    assert "Step one is X [1]." in opening(of_answer(outcome)[0])


def test_a_subtask_that_was_given_up_is_shown_among_the_thoughts_too() -> None:
    outcome = silent_subtask(show_thoughts=True)

    assert outcome.text.count("<think>") == outcome.text.count("</think>") == 2
    assert f"**2. slow**\n\n{subtask(outcome, 'slow')['answer']}\n</think>" in outcome.text


def test_calls_and_costs_of_a_subtask_that_was_given_up_are_counted() -> None:
    outcome = silent_subtask()

    told = (len(outcome.model.requests) - 2) * USAGE["total_tokens"]  # of the other two, one was cut, one silent
    estimated = [log["data"]["prompt_tokens"] for key, log in outcome.logs.items() if key.endswith("round2.model")]
    total = outcome.last_json["execution_metadata"]["total_tokens"]
    assert total == told + sum(estimated)
    assert sum("its tokens are estimated" in note for note in outcome.notes) == 1
    assert [item["status"] for item in outcome.variables["tool_runs"]] == ["ok"]


@pytest.mark.parametrize("said", [[], [text("<think>hm")]], ids=["silent", "thinking"])
def test_when_no_answer_comes_in_time_the_findings_are_the_answer(said: list[Any]) -> None:
    time = FakeTime()
    late: list[Any] = [*said, lambda: time.advance(120), CallFails("exited without response")]
    steps = [
        plans("alpha", "beta"),
        *done_at_once("alpha"),
        *done_at_once("beta"),
        When("<findings>", late),
        When(template.CLOSING_NOTE, late),
    ]

    outcome = plan_run(steps, params=SHORT, clock=time.clock)

    assert outcome.error is None
    assert outcome.stop_reason == "time_limit"
    assert outcome.text == "**alpha**\n\nAnswer to alpha.\n\n**beta**\n\nAnswer to beta."
    assert all_finished(outcome)


def test_when_the_answering_call_hangs_three_times_the_findings_are_the_answer() -> None:
    hangs = [CallFails("invocation exited without response after 250 seconds")]
    steps = [plans("alpha"), *done_at_once("alpha"), *[When("<findings>", hangs)] * 3]

    outcome = plan_run(steps, clock=FakeTime().clock)

    assert outcome.error is None
    assert (outcome.text, outcome.stop_reason) == ("**alpha**\n\nAnswer to alpha.", "time_limit")


def test_with_an_answer_schema_late_findings_are_the_text_and_the_structured_output_stays_empty() -> None:
    time = FakeTime()
    late: list[Any] = [lambda: time.advance(120), CallFails("exited without response")]
    steps = [plans("alpha"), *done_at_once("alpha"), When("<findings>", late), late]

    outcome = plan_run(steps, params={**SHORT, "answer_schema": SCHEMA}, clock=time.clock)

    assert (outcome.text, outcome.stop_reason) == ("**alpha**\n\nAnswer to alpha.", "time_limit")
    assert outcome.variables["structured_output"] is None


def test_an_answer_that_stalls_after_its_first_words_keeps_them() -> None:
    time = FakeTime()
    stalls: list[Any] = [text("All of it is"), lambda: time.advance(120), text("!")]

    outcome = plan_run([plans("alpha"), *done_at_once("alpha"), When("<findings>", stalls)], None, SHORT, time.clock)

    assert (outcome.text.replace("!", ""), outcome.stop_reason) == (cut_off("All of it is"), "time_limit")


def test_an_answer_that_stalls_for_the_limit_on_silence_keeps_its_words() -> None:
    stalls: list[Any] = [text("All of it is"), CallFails("invocation exited without response after 250 seconds")]

    outcome = plan_run([plans("alpha"), *done_at_once("alpha"), When("<findings>", stalls)])

    assert outcome.error is None
    assert (outcome.text, outcome.stop_reason) == (cut_off("All of it is"), "time_limit")


@pytest.mark.parametrize("error_type", ["InvokeAuthorizationError", "InvokeRateLimitError"])
def test_an_error_that_retries_cannot_fix_ends_the_run_and_the_log_has_the_findings(error_type: str) -> None:
    steps = [plans("alpha"), *done_at_once("alpha"), *[When("<findings>", fails(error_type))] * 3]

    outcome = plan_run(steps, clock=FakeTime().clock)

    assert type(outcome.error).__name__ == error_type
    assert "Answer to alpha." in str(outcome.logs["subtask1"]["data"])
    assert outcome.logs["answer"]["status"] == "error"


def test_a_deadline_while_a_judgement_is_made_means_not_completed() -> None:
    time = FakeTime()
    late = judges("alpha", [text("Hm."), lambda: time.advance(SUBTASKS_ARE_OVER), *verdict(is_completed=True)])

    outcome = plan_run(
        [plans("alpha"), works_on("alpha", says("So.")), late, answers()], params=SHORT, clock=time.clock
    )

    assert subtask(outcome, "alpha")["completed"] is False
    assert "So." in opening(of_answer(outcome)[0])
    assert outcome.text == ANSWER
