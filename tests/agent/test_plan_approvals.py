"""Approvals in a plan: a subtask waits, the others finish, and the plan continues with the user's answer."""

import json
from collections.abc import Sequence

from prompt import template, user_texts
from tests.support.host import Json, Step, When, text_of
from tests.support.local_http import file
from tests.support.plans import answers, completed, done_at_once, incomplete, plan_run, plans, works_on
from tests.support.run import Outcome, run
from tests.support.scenes import check_prompt, search
from tests.support.wire import calls, fails, replies, says

FOUND = {"order": replies("ordered"), "search": replies("a shop")}
NODE = {"approval_required": "order", "query": "Buy a lamp and find a desk."}
ORDER = calls(("order", {"q": "lamp"}))
ORDERS = [works_on("lamp", ORDER)]
SEARCHES_FIRST = [works_on("lamp", search("lamp")), When("a shop", ORDER)]
ORDERS_LATER = [works_on("lamp", says("Hm.")), incomplete("lamp", "Order it."), When("Order it.", ORDER)]
DESK = done_at_once("desk")
ORDERED = [When("ordered", says("A lamp is ordered.")), completed("lamp")]


def asked(steps: Sequence[Step] = ORDERS, desk: Sequence[Step] = DESK, **params: object) -> Outcome:
    """A plan of two subtasks; in the first, a call waits."""
    return plan_run([plans("lamp", "desk"), *steps, *desk], FOUND, {**NODE, **params})


def answered(first: Outcome, approval: str, steps: Sequence[Step], **params: object) -> Outcome:
    state = first.variables["state"]
    return plan_run(steps, FOUND, {**NODE, "state": state, "approval": approval, "query": approval, **params})


def orders(outcome: Outcome) -> list[Json]:
    return [request["tool_parameters"] for request in outcome.tools.requests if request["tool"] == "order"]


def prompt_of(outcome: Outcome, number: int, message: int = -1) -> str:
    return text_of(outcome.model.prompts[number][message])


def test_a_subtask_waits_and_the_others_finish() -> None:
    outcome = asked()

    (pending,) = outcome.variables["pending_calls"]
    assert (outcome.stop_reason, orders(outcome)) == ("approval_required", [])
    assert (pending["tool"], pending["arguments"], pending["subtask"]) == ("order", {"q": "lamp"}, "lamp")
    assert "lamp" in outcome.text
    shown = [(each["answer"], each["completed"]) for each in outcome.variables["subtasks"]]
    assert shown == [(template.WAITS_FOR_APPROVAL, False), ("Answer to desk.", True)]


def test_no_thought_of_a_plan_hides_the_question() -> None:
    hiding = [works_on("desk", says("<!-- ```")), completed("desk")]

    text = asked(desk=hiding, emit_intermediate_thoughts=True).text

    before, _, question = text.partition(user_texts.APPROVAL_REQUEST["en"])
    assert "<\u2060!-- `\u2060`\u2060`\u2060" in before
    assert "lamp" in question


def test_the_plan_continues_with_an_approval_and_without_the_files_of_the_turn() -> None:
    files = [file("http://host.test/a.mp4", "video", mime_type="video/mp4", extension=".mp4")]

    outcome = answered(asked(), "yes", [*ORDERED, answers("Done.")], files=files)

    assert orders(outcome) == [{"q": "lamp"}]
    assert (outcome.stop_reason, outcome.text, outcome.variables["pending_calls"]) == ("answered", "Done.", [])
    assert [each["answer"] for each in outcome.variables["subtasks"]] == ["A lamp is ordered.", "Answer to desk."]
    assert prompt_of(outcome, 0) == "ordered"
    assert "Buy a lamp" in prompt_of(outcome, 2)
    assert "\n\nyes" not in prompt_of(outcome, 2)
    assert "a.mp4" not in str(outcome.model.prompts)
    for prompt in outcome.model.prompts:
        check_prompt(prompt)


def both_asked() -> Outcome:
    return asked(desk=[works_on("desk", calls(("order", {"q": "desk"})))])


def test_a_rejection_reaches_every_waiting_subtask() -> None:
    both = both_asked()
    words = "Only from the shop around the corner"
    steps = [*[When("the corner", says("Nothing."))] * 2, completed("lamp"), completed("desk"), answers("Nothing.")]

    outcome = answered(both, words, steps)

    assert len(both.variables["pending_calls"]) == 2
    assert orders(outcome) == []
    own = [prompt for prompt in outcome.model.prompts if text_of(prompt[-1]) == words]
    assert [text_of(prompt[-3]) for prompt in own] == [template.NOT_APPROVED_SEE_NEXT] * 2
    assert "shop around the corner" in prompt_of(outcome, -1)


def test_without_an_approval_the_findings_become_history_and_the_query_is_planned() -> None:
    steps = [plans("chair"), *done_at_once("chair"), answers("A chair.")]

    outcome = answered(asked(SEARCHES_FIRST), "", steps, query="Find a chair.")

    history = prompt_of(outcome, 0, 1)
    assert orders(outcome) == []
    assert history.startswith("Buy a lamp and find a desk.")
    assert f"{template.APPROVAL_NOT_GIVEN}\n\n{template.UNREAD_RESULTS.format(results='a shop')}" in history
    assert "Answer to desk." in history
    assert outcome.variables["plan"] == ["chair"]


def test_another_strategy_reads_the_findings_and_approves_nothing() -> None:
    state = asked().variables["state"]

    outcome = run([says("Well.")], FOUND, {**NODE, "state": state, "approval": "yes", "query": "yes"})

    assert orders(outcome) == []
    assert "Answer to desk." in json.dumps(outcome.model.prompts[0])


def test_a_plan_may_wait_again() -> None:
    second = answered(asked(), "yes", [When("ordered", calls(("order", {"q": "shade"})))])
    third = answered(second, "yes", [*ORDERED, answers("Done.")])

    assert second.variables["pending_calls"][0]["id"].startswith("call_2_")
    assert (orders(second), orders(third)) == ([{"q": "lamp"}], [{"q": "shade"}])
    assert third.variables["subtasks"][1]["answer"] == "Answer to desk."


def test_after_an_approved_call_no_failure_of_the_model_ends_the_run_in_an_error() -> None:
    outcome = answered(asked(), "yes", [fails("InvokeBadRequestError", "no more")] * 2)

    assert (outcome.error, outcome.stop_reason) == (None, "model_failed")
    assert orders(outcome) == [{"q": "lamp"}]
    again = answered(outcome, "yes", [plans("thanks"), *done_at_once("thanks"), answers()])
    assert orders(again) == []
    assert "ordered" in prompt_of(again, 0, 1)


def test_a_finished_plan_leaves_question_findings_and_answer() -> None:
    first = asked(done_at_once("lamp"), [*done_at_once("desk"), answers("Both found.")])

    outcome = run([says("Well.")], FOUND, {**NODE, "state": first.variables["state"], "query": "And now?"})

    question, answer, query = map(text_of, outcome.model.prompts[0][1:])
    assert question.startswith("Buy a lamp and find a desk.\n\n<findings>")
    assert "Answer to lamp." in question
    assert (answer, query) == ("Both found.", "And now?")


def test_context_and_files_of_the_question_stay_until_the_answer() -> None:
    source = {"title": "Prices", "content": "A lamp costs 3.", "metadata": {"document_id": "d1"}}

    outcome = answered(asked(context=[source]), "yes", [*ORDERED, answers("It cost 3 [1].")])

    assert "A lamp costs 3." in prompt_of(outcome, -1)
    assert [(each["number"], each["cited"]) for each in outcome.variables["sources"]] == [(1, True)]
    later = run([says("Well.")], FOUND, {**NODE, "state": outcome.variables["state"], "query": "And now?"})
    assert "A lamp costs 3." in prompt_of(later, 0, 1)


def test_a_judgement_reads_what_its_attempt_found_before_it_waited_and_no_result_of_an_earlier_attempt() -> None:
    in_attempt = answered(asked(SEARCHES_FIRST), "yes", [*ORDERED, answers()])
    searched = [works_on("lamp", search("lamp")), When("a shop", says("Hm.")), *ORDERS_LATER[1:]]
    earlier = answered(asked(searched), "yes", [*ORDERED, answers()])

    assert "<results>\na shop\n\nordered\n</results>" in prompt_of(in_attempt, 1)
    assert "<results>\nordered\n</results>" in prompt_of(earlier, 1)


def test_a_subtask_that_fails_after_an_approval_keeps_all_that_its_tools_said() -> None:
    steps = [When("ordered", fails("InvokeAuthorizationError", "no")), answers()]

    outcome = answered(asked(SEARCHES_FIRST), "yes", steps)

    assert "a shop\n\nordered" in prompt_of(outcome, -1)
