"""The run's budgets in a plan: all subtasks stop, and the answer follows from what they had found."""

from collections.abc import Sequence
from typing import Any

import pytest
from gevent.event import Event
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.plan_and_reflect import PLAN_AND_REFLECT
from prompt import template
from tests.agent.plans import (
    ANSWER,
    answers,
    blocks,
    completed,
    echo,
    incomplete,
    judges,
    of_answer,
    of_plan,
    of_reflection,
    of_subtask,
    opening,
    plan_run,
    plans,
    subtask,
    verdict,
    works_on,
)
from tests.agent.scenes import search, silence, text, wait_for
from tests.support.clock import FakeTime
from tests.support.host import Handler, Step, When
from tests.support.run import Outcome, run
from tests.support.wire import USAGE, calls, replies, says

TURN = USAGE["total_tokens"]
SCHEMA = '{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}'
ECHO: dict[str, Handler] = {"search": echo}


def searching(name: str) -> Step:
    return works_on(name, calls(("search", {"q": name})))


def findings(outcome: Outcome) -> str:
    """What the answer was written from."""
    return opening(of_answer(outcome)[0])


def test_at_the_call_limit_all_subtasks_stop_without_closing_calls_or_judgements() -> None:
    steps = [plans("alpha", "beta"), searching("alpha"), searching("beta"), answers()]

    outcome = plan_run(steps, ECHO, {"maximum_tool_calls": 1})

    assert (outcome.text, outcome.stop_reason) == (ANSWER, "call_limit")
    assert len(outcome.tools.requests) == 1
    assert len(outcome.model.requests) == 4
    assert [entry["completed"] for entry in outcome.variables["subtasks"]] == [False, False]
    assert subtask(outcome, "beta")["answer"] == template.SUBTASK_STOPPED
    assert outcome.logs["subtask1"]["status"] == "success"


@settings(max_examples=20)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(1, 6))
def test_subtasks_side_by_side_never_send_more_calls_than_the_limit(sizes: list[int], most: int) -> None:
    names = [f"part {number}" for number in range(len(sizes))]
    told = [When("Little is left", says("So far.")) for _ in names]
    steps: list[Step] = [plans(*names), answers(), *told]
    for name, size in zip(names, sizes, strict=True):
        steps.append(works_on(name, calls(*(("search", {"q": f"{name}, {position}"}) for position in range(size)))))
        steps += [When(f"result for {name}", says(f"Answer to {name}.")), completed(name)]

    with FakeTime().governed():
        outcome = run(
            steps,
            ECHO,
            {"maximum_tool_calls": most, "maximum_subtasks": 4},
            blueprint=PLAN_AND_REFLECT,
            expect_all_steps=False,
        )

    assert (outcome.error, outcome.text) == (None, ANSWER)
    assert len(outcome.tools.requests) == min(most, sum(sizes))
    assert outcome.stop_reason == ("call_limit" if sum(sizes) >= most else "answered")


def test_what_tools_had_brought_until_then_reaches_the_findings() -> None:
    steps = [plans("alpha", "beta"), searching("alpha"), searching("beta"), answers()]

    outcome = plan_run(steps, ECHO, {"maximum_tool_calls": 1, "parallel_tool_calls": 1})

    (sent,) = outcome.tools.requests
    assert f"result for {sent['tool_parameters']['q']}" in findings(outcome)
    assert "limit reached" not in findings(outcome)


@pytest.mark.parametrize(("calls_beside", "most"), [(1, 3_000), (7, 8_000)], ids=["each", "all together"])
def test_the_results_that_reach_the_findings_are_cut_short(calls_beside: int, most: int) -> None:
    turn = calls(("long", {}), *(("short", {"q": str(number)}) for number in range(calls_beside)))
    found = {"long": replies("x" * 20_000), "short": replies("y" * 3_000)}

    outcome = plan_run(
        [plans("alpha"), works_on("alpha", turn), answers()], found, {"maximum_tool_calls": 1 + calls_beside}
    )

    assert 3_500 < findings(outcome).count("xxx") * 3 <= 4_000
    assert most - 500 < findings(outcome).count("yyy") * 3 <= most
    assert "xxx" not in subtask(outcome, "alpha")["answer"]


def test_when_planning_uses_up_the_tokens_no_subtask_begins() -> None:
    outcome = plan_run([plans("alpha", "beta"), answers()], ECHO, {"maximum_total_tokens": TURN})

    assert (outcome.text, outcome.stop_reason) == (ANSWER, "token_limit")
    assert len(outcome.model.requests) == 2
    assert [entry["attempts"] for entry in outcome.variables["subtasks"]] == [0, 0]


def test_a_plan_is_not_corrected_when_the_tokens_are_used_up() -> None:
    outcome = plan_run([says("alpha, then beta"), answers()], ECHO, {"maximum_total_tokens": TURN})

    assert len(of_plan(outcome)) == 1
    assert (outcome.text, outcome.stop_reason) == (ANSWER, "token_limit")


def test_an_answer_that_could_not_be_judged_any_more_is_the_nearest_finding() -> None:
    steps = [plans("alpha"), works_on("alpha", says("Alpha is 7 [1].")), answers()]

    outcome = plan_run(steps, ECHO, {"maximum_total_tokens": 2 * TURN})

    assert (outcome.stop_reason, of_reflection(outcome, "alpha")) == ("token_limit", [])
    assert subtask(outcome, "alpha")["answer"].endswith(" What came nearest: Alpha is 7 [1].")
    assert "Alpha is 7 [1]." in findings(outcome)


def test_judgements_count_and_no_attempt_follows_when_they_reach_the_limit() -> None:
    steps = [plans("alpha"), works_on("alpha", says("Step one is X.")), incomplete("alpha", "Go on."), answers()]

    outcome = plan_run(steps, ECHO, {"maximum_total_tokens": 3 * TURN})

    assert outcome.stop_reason == "token_limit"
    assert len(of_subtask(outcome, "alpha")) == 1
    assert "Step one is X." in findings(outcome)


def test_a_judgement_is_not_corrected_when_the_tokens_are_used_up() -> None:
    steps = [
        plans("alpha"),
        works_on("alpha", says("It is X.")),
        judges("alpha", says("Good enough.")),
        answers(),
    ]

    outcome = plan_run(steps, ECHO, {"maximum_total_tokens": 3 * TURN})

    assert len(of_reflection(outcome, "alpha")) == 1
    assert outcome.stop_reason == "token_limit"


@pytest.mark.parametrize("judgement", [verdict(is_completed=True), verdict(is_completed=False, advice="Go on.")])
def test_a_plan_that_was_worked_off_is_answered_even_if_the_last_judgement_reaches_the_limit(
    judgement: Sequence[Any],
) -> None:
    steps = [plans("alpha"), works_on("alpha", says("It is X.")), judges("alpha", judgement), answers()]

    outcome = plan_run(steps, ECHO, {"maximum_total_tokens": 3 * TURN, "maximum_attempts": 1})

    assert outcome.stop_reason == "answered"


def test_words_of_a_subtask_that_stalled_are_added_to_its_earlier_finding(time: FakeTime) -> None:
    began = Event()
    steps = [
        plans("alpha", "beta"),
        works_on("alpha", says("Step one is X.")),
        incomplete("alpha", "Find step two."),
        When("Advice: Find step two.", [text("Step two is"), began.set, silence(time, 71)]),
        works_on("beta", [wait_for(began), *search()]),
        answers(),
    ]

    outcome = plan_run(steps, ECHO, {"maximum_tool_calls": 1, "maximum_seconds": 100}, clock=time.clock)

    assert outcome.stop_reason == "call_limit"
    assert "Step one is X.\n\nStep two is" in findings(outcome)


def test_a_subtask_that_was_completed_before_keeps_its_answer() -> None:
    judged = Event()
    steps = [
        plans("alpha", "beta"),
        works_on("alpha", says("Alpha is 7.")),
        judges("alpha", [*verdict(is_completed=True), judged.set]),
        works_on("beta", [wait_for(judged), lambda: None, *search("beta")]),
        answers(),
    ]

    outcome = plan_run(steps, ECHO, {"maximum_tool_calls": 1})

    assert outcome.stop_reason == "call_limit"
    assert [entry["completed"] for entry in outcome.variables["subtasks"]] == [True, False]
    assert "Alpha is 7." in findings(outcome)
    assert "result for beta" in findings(outcome)


def test_each_subtask_reads_once_that_little_is_left() -> None:
    turn = calls(*(("search", {"q": str(number)}) for number in range(4)))
    steps = [
        plans("alpha"),
        works_on("alpha", turn),
        When("Little is left", says("It is X.")),
        incomplete("alpha", "Go on."),
        When("Advice: Go on.", says("It is X, I am sure.")),
        completed("alpha"),
        answers(),
    ]

    outcome = plan_run(steps, ECHO, {"maximum_tool_calls": 5})

    assert outcome.stop_reason == "answered"
    last = of_subtask(outcome, "alpha")[-1]["prompt_messages"]
    assert sum("Little is left" in str(message["content"]) for message in last) == 1


def test_with_an_answer_schema_the_answer_may_still_be_corrected() -> None:
    steps: list[Step] = [
        plans("alpha"),
        When("<findings>", calls(("submit_answer", {}))),
        calls(("submit_answer", {"city": "Bonn"})),
    ]

    outcome = plan_run(steps, ECHO, {"maximum_total_tokens": TURN, "answer_schema": SCHEMA})

    assert outcome.stop_reason == "token_limit"
    assert outcome.variables["structured_output"] == {"city": "Bonn"}


def test_shown_thoughts_name_the_limit_and_quote_no_raw_results() -> None:
    params = {"maximum_tool_calls": 1, "emit_intermediate_thoughts": True}

    outcome = plan_run([plans("alpha"), searching("alpha"), answers()], ECHO, params)

    assert blocks(outcome.text) == [f"What the subtasks found:\n\n**1. alpha**\n\n{template.SUBTASK_STOPPED}"]
    assert outcome.text.endswith(ANSWER)
