"""Plan and reflect when the model or a tool fails: the run goes on with less, says so, and answers."""

from collections.abc import Iterator
from typing import Any

import pytest
from dify_plugin.errors.model import InvokeError

from internal.clock import Clock
from prompt import template
from tests.agent.plans import (
    ANSWER,
    FOUND,
    advised,
    answers,
    blocks,
    completed,
    done_at_once,
    echo,
    found,
    incomplete,
    judges,
    looked_up,
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
from tests.agent.scenes import check_prompt, results_in, search, text
from tests.support.clock import FakeTime
from tests.support.host import CallFails, Handler, Json, When, text_of
from tests.support.wire import USAGE, breaks, calls, fails, replies, says, text_message

QUERY = "What is it?"
WITHOUT_A_PLAN = [*done_at_once(QUERY), answers()]
ALL_GONE = "InvokeAuthorizationError"
BAD_PLANS: dict[str, list[Any]] = {
    "text": says("1. alpha 2. beta"),
    "no text at all": says(),
    "too many": plans("a", "b", "c", "d", "e"),
    "a blank name": plans("alpha", "  "),
    "broken arguments": calls(("submit_plan", '{"subtasks": ["alpha"')),
    "another tool": verdict(is_completed=True),
    "a tool of the node's": search("alpha"),
}


@pytest.mark.parametrize("turn", BAD_PLANS.values(), ids=BAD_PLANS)
def test_an_invalid_plan_is_sent_back_and_a_valid_one_is_still_taken(turn: list[Any]) -> None:
    outcome = plan_run([turn, plans("alpha"), *done_at_once("alpha"), answers()], FOUND)

    assert outcome.variables["plan"] == ["alpha"]
    first, second = of_plan(outcome)
    assert second["prompt_messages"][: len(first["prompt_messages"])] == first["prompt_messages"]
    check_prompt(second["prompt_messages"])
    told = text_of(second["prompt_messages"][-1])
    assert "submit_plan" in told or "tool arguments" in told
    assert outcome.tools.requests == []
    assert outcome.last_json["execution_metadata"]["total_tokens"] == 5 * USAGE["total_tokens"]


@pytest.mark.parametrize("turn", BAD_PLANS.values(), ids=BAD_PLANS)
def test_after_two_answers_without_a_plan_the_question_is_the_only_subtask(turn: list[Any]) -> None:
    outcome = plan_run([turn, turn, turn, *WITHOUT_A_PLAN], FOUND)

    assert (outcome.error, outcome.text) == (None, ANSWER)
    assert len(of_plan(outcome)) == 3
    assert outcome.variables["plan"] == [QUERY]
    assert any("no plan came" in note for note in outcome.notes)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_plan_that_was_cut_is_not_used(reason: str) -> None:
    cut = calls(("submit_plan", {"subtasks": ["alpha"]}), finish_reason=reason)

    assert plan_run([cut, *WITHOUT_A_PLAN]).variables["plan"] == [QUERY]


def test_the_first_good_plan_of_a_turn_counts_with_each_subtask_once_and_on_one_line() -> None:
    good = {"subtasks": [" alpha\n", "alpha", "al\tpha"]}
    turn = calls(("submit_plan", {"subtasks": []}), ("submit_plan", good), ("submit_plan", {"subtasks": ["b"]}))

    outcome = plan_run([turn, *done_at_once("alpha"), *done_at_once("al pha"), answers()])

    assert outcome.variables["plan"] == ["alpha", "al pha"]


def test_a_model_that_keeps_failing_in_planning_is_one_clear_error() -> None:
    outcome = plan_run([fails(ALL_GONE)])

    assert isinstance(outcome.error, InvokeError)
    assert {log["status"] for log in outcome.logs.values()} == {"error"}


NO_JUDGEMENTS: dict[str, list[list[Any]]] = {
    "text": [says("It is completed.")] * 3,
    "no truth value": [verdict(is_completed="perhaps")] * 3,
    "broken arguments": [calls(("submit_reflection", '{"is_completed": tru'))] * 3,
    "a plan": [plans("alpha")] * 3,
    "a failure": [fails(ALL_GONE)],
}


@pytest.mark.parametrize("turns", NO_JUDGEMENTS.values(), ids=NO_JUDGEMENTS)
def test_an_invalid_judgement_is_sent_back_twice_and_then_means_not_completed(turns: list[list[Any]]) -> None:
    first, *more = turns
    steps = [plans("alpha"), works_on("alpha", says("It is so.")), judges("alpha", first), *more, answers()]

    outcome = plan_run(steps, params={"maximum_attempts": 1})

    assert (outcome.error, len(of_reflection(outcome, "alpha"))) == (None, len(turns))
    assert subtask(outcome, "alpha")["completed"] is False
    assert "It is so." in opening(of_answer(outcome)[0])
    assert any("no judgement came" in note for note in outcome.notes)


def test_without_judgements_a_subtask_still_has_all_its_attempts() -> None:
    none, advice = [judges("alpha", says("Fine.")), says("Fine."), says("Fine.")], template.DEFAULT_ADVICE
    steps = [plans("alpha"), works_on("alpha", says("One.")), *none, advised(advice, says("Two.")), *none]
    steps += [advised(advice, says("Three.")), *none, answers()]

    assert subtask(plan_run(steps), "alpha")["attempts"] == 3


def test_a_judgement_that_was_sent_back_may_still_come() -> None:
    steps = [plans("alpha"), works_on("alpha", says("It is so.")), judges("alpha", says("Yes."))]

    outcome = plan_run([*steps, When("submit_reflection", verdict(is_completed="true")), answers()])

    assert subtask(outcome, "alpha")["completed"] is True


def test_a_tool_that_raises_ends_no_subtask() -> None:
    steps = [
        *(plans("alpha", "beta"), works_on("alpha", calls(("broken", {"q": "alpha"})))),
        *(When("failed to execute tool", says("The tool is broken.")), incomplete("alpha", "Use the other tool.")),
        *(advised("Use the other tool.", search("alpha")), When("result for alpha", says("Answer to alpha."))),
        *(completed("alpha"), *looked_up("beta"), answers()),
    ]

    outcome = plan_run(steps, {"broken": breaks("kaput"), "search": echo})

    assert [entry["completed"] for entry in outcome.variables["subtasks"]] == [True, True]
    told = results_in(of_subtask(outcome, "alpha")[1]["prompt_messages"])
    assert told == ["tool invoke error: failed to execute tool: kaput"]
    assert sorted(item["status"] for item in outcome.variables["tool_runs"]) == ["error", "ok", "ok"]
    assert outcome.text == ANSWER


def test_a_subtask_whose_model_keeps_failing_does_not_affect_the_others_and_counts() -> None:
    after_a_tool = [works_on("alpha", search("alpha")), When("result for alpha", fails(ALL_GONE, "no more credit"))]

    outcome = plan_run([plans("alpha", "beta"), *after_a_tool, *looked_up("beta"), answers()], {"search": echo})

    assert (outcome.error, outcome.text, outcome.stop_reason) == (None, ANSWER, "answered")
    assert subtask(outcome, "alpha")["completed"] is False
    assert subtask(outcome, "beta") == found("beta", "Answer to beta.")
    asked = opening(of_answer(outcome)[0])
    assert template.SUBTASK_FAILED in asked
    assert "Answer to beta." in asked
    failed = {key for key, log in outcome.logs.items() if log["status"] == "error"}
    assert failed == {"subtask1", "subtask1.attempt1", "subtask1.attempt1.round2", "subtask1.attempt1.round2.model"}
    assert "no more credit" in outcome.logs["subtask1"]["error"]
    assert "start" not in {log["status"] for log in outcome.logs.values()}
    told_usage = len(outcome.model.requests) - 1  # the call that failed told none
    assert outcome.last_json["execution_metadata"]["total_tokens"] == told_usage * USAGE["total_tokens"]
    assert [item["status"] for item in outcome.variables["tool_runs"]] == ["ok", "ok"]
    assert outcome.last_json["decision_summary"]["rounds"] == 5


def test_what_a_subtask_had_found_before_its_model_failed_is_not_lost() -> None:
    begun = [plans("alpha"), works_on("alpha", says("Step one is X [1].")), incomplete("alpha", "Find step two.")]

    outcome = plan_run([*begun, advised("Find step two.", fails(ALL_GONE)), answers()])

    nearest = template.NEAREST.format(answer="Step one is X [1].")
    assert subtask(outcome, "alpha")["answer"] == template.SUBTASK_FAILED + nearest
    assert nearest in opening(of_answer(outcome)[0])


def test_the_notes_of_a_failed_subtask_on_results_that_were_left_out_are_no_findings() -> None:
    """They tell a model to call the tool again, and the model that writes the answer has no tools."""
    steps = [
        *(plans("alpha"), works_on("alpha", search("first")), When("first " * 9, says("Step one."))),
        *(incomplete("alpha", "Find step two."), advised("Find step two.", search("second"))),
        *(When("second " * 9, fails(ALL_GONE)), answers()),
    ]

    def long(request: Json) -> Iterator[Json]:
        yield text_message(f"{request['tool_parameters']['q']} " * 40)

    asked = opening(of_answer(plan_run(steps, {"search": long}))[0])

    assert "second " * 39 in asked
    assert template.ELIDED_TOOL_RESULT not in asked


@pytest.mark.parametrize("said", ["Step.", "word " * 90])
@pytest.mark.parametrize("handlers", [{}, {"search": echo}])
def test_a_failed_model_call_of_a_subtask_is_retried_even_after_partial_output(
    said: str, handlers: dict[str, Handler]
) -> None:
    cut = [text(said), CallFails("connection reset by peer")]

    outcome = plan_run(
        [plans("alpha"), works_on("alpha", cut), *done_at_once("alpha"), answers()], handlers, clock=FakeTime().clock
    )

    assert (subtask(outcome, "alpha")["completed"], outcome.text) == (True, ANSWER)
    assert any("tried again" in note for note in outcome.notes)


def test_a_defect_of_ours_in_a_subtask_does_not_affect_the_others() -> None:
    """The clock breaks during the wait after a temporary failure."""

    def broken(_seconds: float) -> None:
        raise ZeroDivisionError("secret sk-abcdefgh12345678")

    steps = [plans("alpha", "beta"), works_on("alpha", fails("InvokeRateLimitError")), *done_at_once("beta"), answers()]

    outcome = plan_run(steps, clock=Clock(sleep=broken))

    assert outcome.error is None
    assert [entry["completed"] for entry in outcome.variables["subtasks"]] == [False, True]
    assert outcome.logs["subtask1"]["status"] == "error"
    assert "ZeroDivisionError" in outcome.logs["subtask1"]["error"]
    assert "sk-abcdefgh" not in str(outcome.messages)


def test_when_every_subtask_fails_thoughts_and_answer_still_say_so() -> None:
    names = ("alpha", "beta")
    steps = [plans(*names), *(works_on(name, fails(ALL_GONE)) for name in names), answers("Nothing was found.")]

    outcome = plan_run(steps, params={"emit_intermediate_thoughts": True})

    assert outcome.error is None
    assert outcome.text.endswith("\n\nNothing was found.")
    assert blocks(outcome.text)[-1] == (
        f"What the subtasks found:\n\n**1. alpha**\n\n{template.SUBTASK_FAILED}\n\n"
        f"**2. beta**\n\n{template.SUBTASK_FAILED}"
    )
    assert opening(of_answer(outcome)[0]).count(template.SUBTASK_FAILED) == 2


@pytest.mark.parametrize("error_type", [ALL_GONE, "InvokeRateLimitError"])
def test_an_error_of_the_answer_that_retries_cannot_fix_ends_the_run_and_the_log_has_the_findings(
    error_type: str,
) -> None:
    steps = [plans("alpha"), *done_at_once("alpha"), *[When("<findings>", fails(error_type))] * 3]

    outcome = plan_run(steps, clock=FakeTime().clock)

    assert type(outcome.error).__name__ == error_type
    assert "Answer to alpha." in str(outcome.logs["subtask1"]["data"])
    assert outcome.logs["answer"]["status"] == "error"
    assert "start" not in {log["status"] for log in outcome.logs.values()}


def test_calls_in_the_answer_are_refused() -> None:
    """It is offered no tools; a model that calls one all the same is told, and asked for the answer."""
    steps = [plans("alpha"), *done_at_once("alpha"), When("<findings>", search()), says(ANSWER)]

    outcome = plan_run(steps, {"search": replies("x")})

    assert (outcome.tools.requests, outcome.text) == ([], ANSWER)
