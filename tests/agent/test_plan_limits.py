"""What limits and failures leave of a plan: subtasks end in time, the run goes on with less, says so, and answers."""

from collections.abc import Sequence
from typing import Any

import pytest
from dify_plugin.errors.model import InvokeError
from gevent.event import Event
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.clock import Clock
from internal.loop import MIN_CLOSING_SECONDS
from internal.plan_and_reflect import PLAN_AND_REFLECT
from prompt import template
from tests.support.clock import FakeTime
from tests.support.host import CallFails, Handler, Step, When, text_of
from tests.support.plans import (
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
from tests.support.run import Outcome, run
from tests.support.scenes import CITY, check_prompt, results_in, search, silence, silent, text, wait_for
from tests.support.wire import USAGE, calls, fails, replies, says

SHORT = {"maximum_seconds": 100}
PLANNING_IS_OVER = 40.5
TOOLS_ARE_OVER = 70.5
SUBTASKS_ARE_OVER = 85.5
"""Seconds of a run of 100 after which the phase has ended, by the shares of planning, tools and subtasks."""
QUERY = "What is it?"
TURN = USAGE["total_tokens"]
ECHO: dict[str, Handler] = {"search": echo}


def all_finished(outcome: Outcome) -> bool:
    return "start" not in {log["status"] for log in outcome.logs.values()}


def findings(outcome: Outcome) -> str:
    """What the answer was written from."""
    return opening(of_answer(outcome)[0])


@pytest.mark.parametrize("said", ["Hm.", ""], ids=["silent", "late"])
def test_a_plan_that_takes_too_long_leaves_time_to_work_and_is_not_asked_for_again(said: str, time: FakeTime) -> None:
    late = silence(time, PLANNING_IS_OVER) if said else lambda: time.advance(PLANNING_IS_OVER)

    outcome = plan_run([[text("Hm."), late, text("So.")], *done_at_once(QUERY), answers()], None, SHORT, time.clock)

    assert outcome.variables["plan"] == [QUERY]
    assert subtask(outcome, QUERY)["completed"] is True
    assert (outcome.error, outcome.text, outcome.stop_reason) == (None, ANSWER, "answered")
    assert any("the model gave no plan" in note for note in outcome.notes)
    assert all_finished(outcome)


def test_a_tool_that_is_silent_at_the_deadline_leaves_time_for_judgement_and_answer(time: FakeTime) -> None:
    steps = [
        *(plans("quick", "slow"), *done_at_once("quick"), works_on("slow", search())),
        *(When(template.CLOSING_NOTE, says("No result in time.")), incomplete("slow", "Wait longer."), answers()),
    ]

    outcome = plan_run(steps, {"search": silent(time, TOOLS_ARE_OVER)}, SHORT, clock=time.clock)

    assert (outcome.text, outcome.stop_reason) == (ANSWER, "time_limit")
    (late,) = results_in(of_subtask(outcome, "slow")[-1]["prompt_messages"])
    assert late.endswith("timeout")
    assert [entry["completed"] for entry in outcome.variables["subtasks"]] == [True, False]
    assert subtask(outcome, "slow")["attempts"] == 1
    assert all_finished(outcome)


def test_a_subtask_whose_model_never_answers_is_given_up_and_thoughts_and_answer_say_so(time: FakeTime) -> None:
    steps = [
        *(plans("quick", "slow"), *done_at_once("quick"), works_on("slow", search())),
        When("result for x", [text("Hm."), silence(time, SUBTASKS_ARE_OVER)]),
        *(When(template.CLOSING_NOTE, [silence(time, MIN_CLOSING_SECONDS)]), answers()),
    ]

    outcome = plan_run(steps, ECHO, {**SHORT, "emit_intermediate_thoughts": True}, clock=time.clock)

    slow = subtask(outcome, "slow")
    assert (outcome.error, outcome.stop_reason, slow["completed"]) == (None, "time_limit", False)
    assert outcome.text.endswith(f"\n\n{ANSWER}")
    assert blocks(outcome.text)[-1].endswith(f"**2. slow**\n\n{slow['answer']}")
    assert "Answer to quick." in findings(outcome)
    assert slow["answer"] in findings(outcome)
    assert all_finished(outcome)
    assert outcome.logs["subtask1"]["status"] == "success"
    told = (len(outcome.model.requests) - 2) * TURN  # of the other two, one was cut, one silent
    estimated = [log["data"]["prompt_tokens"] for key, log in outcome.logs.items() if key.endswith("round2.model")]
    assert outcome.last_json["execution_metadata"]["total_tokens"] == told + sum(estimated)
    assert sum("its tokens are estimated" in note for note in outcome.notes) == 1
    assert [item["status"] for item in outcome.variables["tool_runs"]] == ["ok"]


def test_a_deadline_while_a_judgement_is_made_means_not_completed_and_no_second_look_at_the_answer() -> None:
    time = FakeTime()
    late = judges("alpha", [text("Hm."), lambda: time.advance(SUBTASKS_ARE_OVER), *verdict(is_completed=True)])
    steps = [plans("alpha"), works_on("alpha", says("So.")), late, answers()]

    outcome = plan_run(steps, None, {**SHORT, "answer_criteria": "Short."}, time.clock)

    assert subtask(outcome, "alpha")["completed"] is False
    assert "So." in findings(outcome)
    assert (outcome.text, outcome.stop_reason) == (ANSWER, "time_limit")
    assert outcome.variables["review"] == {"passed": None, "problems": [], "revisions": 0}


@pytest.mark.parametrize("said", [[], [text("<think>hm")]], ids=["silent", "thinking"])
@pytest.mark.parametrize("schema", ["", CITY], ids=["text", "schema"])
def test_when_no_answer_comes_in_time_the_findings_are_the_answer(said: list[Any], schema: object) -> None:
    time = FakeTime()
    late: list[Any] = [*said, lambda: time.advance(120), CallFails("exited without response")]
    steps = [plans("alpha", "beta"), *done_at_once("alpha"), *done_at_once("beta"), When("<findings>", late), late]

    outcome = plan_run(steps, params={**SHORT, "answer_schema": schema}, clock=time.clock)

    assert (outcome.error, outcome.stop_reason) == (None, "time_limit")
    assert outcome.text == "**alpha**\n\nAnswer to alpha.\n\n**beta**\n\nAnswer to beta."
    assert outcome.variables.get("structured_output") is None
    assert all_finished(outcome)


# Budgets.


def searching(name: str) -> Step:
    return works_on(name, calls(("search", {"q": name})))


def test_at_the_call_limit_all_subtasks_stop_without_closing_calls_or_judgements() -> None:
    steps = [plans("alpha", "beta"), searching("alpha"), searching("beta"), answers()]
    params = {"maximum_tool_calls": 1, "parallel_tool_calls": 1, "emit_intermediate_thoughts": True}

    outcome = plan_run(steps, ECHO, params)

    assert outcome.stop_reason == "call_limit"
    assert len(outcome.model.requests) == 4
    assert [entry["completed"] for entry in outcome.variables["subtasks"]] == [False, False]
    assert subtask(outcome, "beta")["answer"] == template.SUBTASK_STOPPED
    assert outcome.logs["subtask1"]["status"] == "success"
    (sent,) = outcome.tools.requests
    assert f"result for {sent['tool_parameters']['q']}" in findings(outcome)
    assert "limit reached" not in findings(outcome)
    assert "result for" not in outcome.text
    assert template.SUBTASK_STOPPED in blocks(outcome.text)[-1]
    assert outcome.text.endswith(ANSWER)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(1, 6))
def test_subtasks_side_by_side_never_send_more_calls_than_the_limit(sizes: list[int], most: int) -> None:
    names = [f"part {number}" for number in range(len(sizes))]
    steps: list[Step] = [plans(*names), answers(), *(When("Little is left", says("So far.")) for _ in names)]
    for name, size in zip(names, sizes, strict=True):
        steps.append(works_on(name, calls(*(("search", {"q": f"{name}, {position}"}) for position in range(size)))))
        steps += [When(f"result for {name}", says(f"Answer to {name}.")), completed(name)]

    params = {"maximum_tool_calls": most, "maximum_subtasks": 4}
    with FakeTime().governed():
        outcome = run(steps, ECHO, params, blueprint=PLAN_AND_REFLECT, expect_all_steps=False)

    assert (outcome.error, outcome.text) == (None, ANSWER)
    assert len(outcome.tools.requests) == min(most, sum(sizes))
    assert outcome.stop_reason == ("call_limit" if sum(sizes) >= most else "answered")


@pytest.mark.parametrize(("others", "most"), [(1, 3_000), (7, 8_000)], ids=["each", "all together"])
def test_the_results_that_reach_the_findings_are_cut_short(others: int, most: int) -> None:
    turn = calls(("long", {}), *(("short", {"q": str(number)}) for number in range(others)))
    tools = {"long": replies("x" * 20_000), "short": replies("y" * 3_000)}

    outcome = plan_run([plans("alpha"), works_on("alpha", turn), answers()], tools, {"maximum_tool_calls": 1 + others})

    assert 3_500 < findings(outcome).count("xxx") * 3 <= 4_000
    assert most - 500 < findings(outcome).count("yyy") * 3 <= most
    assert "xxx" not in subtask(outcome, "alpha")["answer"]


@pytest.mark.parametrize("planning", [plans("alpha", "beta"), says("alpha, then beta")], ids=["plan", "no plan"])
def test_when_planning_uses_up_the_tokens_no_subtask_begins_and_no_plan_is_corrected(planning: list[Any]) -> None:
    outcome = plan_run([planning, answers()], ECHO, {"maximum_total_tokens": TURN})

    assert (outcome.text, outcome.stop_reason) == (ANSWER, "token_limit")
    assert len(of_plan(outcome)) == 1
    assert len(outcome.model.requests) == 2
    assert {entry["attempts"] for entry in outcome.variables["subtasks"]} == {0}


def test_an_answer_that_could_not_be_judged_any_more_is_the_nearest_finding() -> None:
    steps = [plans("alpha"), works_on("alpha", says("Alpha is 7 [1].")), answers()]

    outcome = plan_run(steps, ECHO, {"maximum_total_tokens": 2 * TURN})

    assert (outcome.stop_reason, of_reflection(outcome, "alpha")) == ("token_limit", [])
    assert subtask(outcome, "alpha")["answer"].endswith(" What came nearest: Alpha is 7 [1].")
    assert "Alpha is 7 [1]." in findings(outcome)


@pytest.mark.parametrize("turn", [verdict(is_completed=False, advice="Go on."), says("Good enough.")])
def test_no_attempt_and_no_correction_follows_a_judgement_that_uses_up_the_tokens(turn: list[Any]) -> None:
    steps = [plans("alpha"), works_on("alpha", says("Step one is X.")), judges("alpha", turn), answers()]

    outcome = plan_run(steps, ECHO, {"maximum_total_tokens": 3 * TURN})

    assert outcome.stop_reason == "token_limit"
    assert (len(of_subtask(outcome, "alpha")), len(of_reflection(outcome, "alpha"))) == (1, 1)
    assert "Step one is X." in findings(outcome)


@pytest.mark.parametrize("judgement", [verdict(is_completed=True), verdict(is_completed=False, advice="Go on.")])
def test_a_plan_that_was_worked_off_is_answered_even_if_the_last_judgement_reaches_the_limit(
    judgement: Sequence[Any],
) -> None:
    steps = [plans("alpha"), works_on("alpha", says("It is X.")), judges("alpha", judgement), answers()]

    outcome = plan_run(steps, ECHO, {"maximum_total_tokens": 3 * TURN, "maximum_attempts": 1})

    assert outcome.stop_reason == "answered"


def test_a_subtask_that_was_completed_before_keeps_its_answer() -> None:
    judged = Event()
    steps = [
        *(plans("alpha", "beta"), works_on("alpha", says("Alpha is 7."))),
        judges("alpha", [*verdict(is_completed=True), judged.set]),
        *(works_on("beta", [wait_for(judged), lambda: None, *search("beta")]), answers()),
    ]

    outcome = plan_run(steps, ECHO, {"maximum_tool_calls": 1})

    assert outcome.stop_reason == "call_limit"
    assert [entry["completed"] for entry in outcome.variables["subtasks"]] == [True, False]
    assert "Alpha is 7." in findings(outcome)
    assert "result for beta" in findings(outcome)


# Failures of the model and of tools.

WITHOUT_A_PLAN = [*done_at_once(QUERY), answers()]
ALL_GONE = "InvokeAuthorizationError"
BAD_PLANS: dict[str, list[Any]] = {
    "text": says("1. alpha 2. beta"),
    "no text at all": says(),
    "broken arguments": calls(("submit_plan", '{"subtasks": ["alpha"')),
    "another tool": verdict(is_completed=True),
    "a tool of the node's": search("alpha"),
}


@pytest.mark.parametrize("turn", BAD_PLANS.values(), ids=BAD_PLANS)
def test_an_invalid_plan_is_sent_back_twice_and_then_the_question_is_the_only_subtask(turn: list[Any]) -> None:
    asked = 2 if turn == says() else 1  # nothing at all is asked for once more
    outcome = plan_run([*[turn] * asked, plans("alpha"), *done_at_once("alpha"), answers()], FOUND)
    without = plan_run([*[turn] * 3 * asked, *WITHOUT_A_PLAN], FOUND)

    assert outcome.variables["plan"] == ["alpha"]
    *_, first, second = of_plan(outcome)
    assert second["prompt_messages"][: len(first["prompt_messages"])] == first["prompt_messages"]
    check_prompt(second["prompt_messages"])
    told = text_of(second["prompt_messages"][-1])
    assert "submit_plan" in told or "tool arguments" in told
    assert outcome.tools.requests == []
    assert outcome.last_json["execution_metadata"]["total_tokens"] == (4 + asked) * USAGE["total_tokens"]
    assert (without.error, without.text, without.variables["plan"]) == (None, ANSWER, [QUERY])
    assert len(of_plan(without)) == 3 * asked
    assert any("the model gave no plan" in note for note in without.notes)


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
    assert any("there was no judgement" in note for note in outcome.notes)


def test_without_judgements_a_subtask_still_has_all_its_attempts() -> None:
    none = [judges("alpha", says("Fine.")), says("Fine."), says("Fine.")]
    advice = template.DEFAULT_ADVICE
    steps = [plans("alpha"), works_on("alpha", says("One.")), *none, advised(advice, says("Two.")), *none]
    steps += [advised(advice, says("Three.")), *none, answers()]

    assert subtask(plan_run(steps), "alpha")["attempts"] == 3


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

    breaks_off = works_on("alpha", fails("InvokeConnectionError"))
    steps = [plans("alpha", "beta"), breaks_off, *done_at_once("beta"), answers()]

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
