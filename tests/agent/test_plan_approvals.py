"""Approvals in a plan: a subtask waits, the others finish, and the plan goes on with the user's answer."""

import json
from collections.abc import Sequence
from typing import Any

from internal.memory.records import AnswerRecord, CallRecord, RoundRecord, UserRecord
from internal.memory.state import decode, encode
from prompt import template
from tests.agent.plans import answers, completed, done_at_once, incomplete, plan_run, plans, works_on
from tests.agent.scenes import check_prompt
from tests.support.host import Json, Step, When, text_of
from tests.support.run import Outcome, run
from tests.support.wire import calls, fails, model, replies, says

FOUND = {"order": replies("ordered"), "search": replies("found")}
NODE = {"approval_required": "order", "query": "Buy a lamp and find a desk."}
ORDERS = [works_on("lamp", calls(("order", {"q": "lamp"})))]


def asked(steps: Sequence[Step] = (*ORDERS, *done_at_once("desk")), **params: object) -> Outcome:
    """A plan of two subtasks; in the first, a call waits."""
    return plan_run([plans("lamp", "desk"), *steps], FOUND, {**NODE, **params})


def answered(first: Outcome, approval: str, steps: Sequence[Step], **params: object) -> Outcome:
    state = first.variables["state"]
    return plan_run(steps, FOUND, {**NODE, "state": state, "approval": approval, "query": approval, **params})


def orders(outcome: Outcome) -> list[Json]:
    return [request["tool_parameters"] for request in outcome.tools.requests if request["tool"] == "order"]


def after(result: str, turn: Sequence[Any]) -> Step:
    """The turn that reads this result."""
    return When(result, turn)


def test_a_subtask_waits_and_the_others_finish() -> None:
    outcome = asked()

    (pending,) = outcome.variables["pending_calls"]
    assert (outcome.stop_reason, orders(outcome)) == ("approval_required", [])
    assert (pending["tool"], pending["arguments"], pending["subtask"]) == ("order", {"q": "lamp"}, "lamp")
    assert "lamp" in outcome.text
    assert [(each["answer"], each["completed"]) for each in outcome.variables["subtasks"]] == [
        (template.WAITS_FOR_APPROVAL, False),
        ("Answer to desk.", True),
    ]


def test_no_thought_of_a_plan_hides_the_question() -> None:
    found = [works_on("desk", says("<!-- ```")), completed("desk")]

    text = asked([*ORDERS, *found], emit_intermediate_thoughts=True).text

    before, _, question = text.partition(template.APPROVAL_REQUEST["en"])
    assert "<\u2060!-- `\u2060`\u2060`\u2060" in before
    assert "lamp" in question


def test_the_plan_goes_on_with_an_approval() -> None:
    outcome = answered(
        asked(), "yes", [after("ordered", says("A lamp is ordered.")), completed("lamp"), answers("Done.")]
    )

    assert orders(outcome) == [{"q": "lamp"}]
    assert (outcome.stop_reason, outcome.text, outcome.variables["pending_calls"]) == ("answered", "Done.", [])
    assert [each["answer"] for each in outcome.variables["subtasks"]] == ["A lamp is ordered.", "Answer to desk."]
    first, judged, final = outcome.model.prompts
    assert text_of(first[-1]) == "ordered"
    assert "Buy a lamp" in text_of(final[-1])
    assert "\n\nyes" not in text_of(final[-1])
    for prompt in (first, judged, final):
        check_prompt(prompt)


def test_a_rejection_reaches_every_waiting_subtask() -> None:
    both = asked([*ORDERS, works_on("desk", calls(("order", {"q": "desk"})))])

    outcome = answered(
        both,
        "Only from the shop around the corner",
        [
            *[When("the corner", says("Nothing.")) for _ in range(2)],
            completed("lamp"),
            completed("desk"),
            answers("Nothing was ordered."),
        ],
    )

    assert len(both.variables["pending_calls"]) == 2
    assert orders(outcome) == []
    own = [prompt for prompt in outcome.model.prompts if text_of(prompt[-1]) == "Only from the shop around the corner"]
    assert len(own) == 2
    assert all(text_of(prompt[-2]) == template.NOT_APPROVED_SEE_NEXT for prompt in own)
    assert "shop around the corner" in text_of(outcome.model.prompts[-1][-1])


def test_without_an_approval_the_findings_become_history_and_the_query_is_planned() -> None:
    outcome = plan_run(
        [plans("chair"), *done_at_once("chair"), answers("A chair.")],
        FOUND,
        {**NODE, "state": asked().variables["state"], "query": "Find a chair."},
    )

    history = outcome.model.prompts[0][1]
    assert orders(outcome) == []
    assert text_of(history).startswith("Buy a lamp and find a desk.")
    assert template.APPROVAL_NOT_GIVEN in text_of(history)
    assert "Answer to desk." in text_of(history)
    assert outcome.variables["plan"] == ["chair"]


def test_another_strategy_reads_the_findings_and_approves_nothing() -> None:
    state = asked().variables["state"]

    outcome = run([says("Well.")], FOUND, {**NODE, "state": state, "approval": "yes", "query": "yes"})

    assert orders(outcome) == []
    assert "Answer to desk." in json.dumps(outcome.model.prompts[0])


def test_a_plan_may_wait_again() -> None:
    second = answered(asked(), "yes", [after("ordered", calls(("order", {"q": "shade"})))])
    third = answered(second, "yes", [after("ordered", says("Both.")), completed("lamp"), answers("Done.")])

    assert second.variables["pending_calls"][0]["id"].startswith("call_2_")
    assert (orders(second), orders(third)) == ([{"q": "lamp"}], [{"q": "shade"}])
    assert third.variables["subtasks"][1]["answer"] == "Answer to desk."


def test_after_an_approved_call_no_failure_of_the_model_ends_the_run_in_an_error() -> None:
    outcome = answered(asked(), "yes", [fails("InvokeBadRequestError", "no more")] * 2)

    assert (outcome.error, outcome.stop_reason) == (None, "model_failed")
    assert orders(outcome) == [{"q": "lamp"}]
    again = answered(outcome, "yes", [plans("thanks"), *done_at_once("thanks"), answers()])
    assert orders(again) == []
    assert "ordered" in text_of(again.model.prompts[0][1])


def test_a_finished_plan_leaves_question_findings_and_answer() -> None:
    first = asked([*done_at_once("lamp"), *done_at_once("desk"), answers("Both found.")])

    outcome = run([says("Well.")], FOUND, {**NODE, "state": first.variables["state"], "query": "And now?"})

    (prompt,) = outcome.model.prompts
    question, answer, query = prompt[1:]
    assert text_of(question).startswith("Buy a lamp and find a desk.\n\n<findings>")
    assert "Answer to lamp." in text_of(question)
    assert (text_of(answer), text_of(query)) == ("Both found.", "And now?")


def test_context_and_files_of_the_question_stay_until_the_answer() -> None:
    source = {"title": "Prices", "content": "A lamp costs 3.", "metadata": {"document_id": "d1"}}
    steps = [after("ordered", says("A lamp is ordered.")), completed("lamp"), answers("It cost 3 [1].")]

    outcome = answered(asked(context=[source]), "yes", steps)

    assert "A lamp costs 3." in text_of(outcome.model.prompts[-1][-1])
    assert [(each["number"], each["cited"]) for each in outcome.variables["sources"]] == [(1, True)]
    later = run([says("Well.")], FOUND, {**NODE, "state": outcome.variables["state"], "query": "And now?"})
    assert "A lamp costs 3." in text_of(later.model.prompts[0][1])


SEARCHED_FIRST = [
    works_on("lamp", calls(("search", {"q": "lamp"}))),
    When("a shop", calls(("order", {"q": "lamp"}))),
    *done_at_once("desk"),
]


def asked_after_a_search() -> Outcome:
    found = {**FOUND, "search": replies("a shop")}
    return plan_run([plans("lamp", "desk"), *SEARCHED_FIRST], found, NODE)


def test_the_judgement_reads_what_the_attempt_found_before_it_waited() -> None:
    steps = [after("ordered", says("A lamp is ordered.")), completed("lamp"), answers()]

    judged = answered(asked_after_a_search(), "yes", steps).model.prompts[1]

    assert "<results>\na shop\n\nordered\n</results>" in text_of(judged[-1])


def test_a_judgement_of_a_later_attempt_reads_none_of_the_results_before_it() -> None:
    steps = [
        works_on("lamp", calls(("search", {"q": "lamp"}))),
        When("a shop", says("Hm.")),
        incomplete("lamp", "Order it."),
        When("Order it.", calls(("order", {"q": "lamp"}))),
        *done_at_once("desk"),
    ]
    first = plan_run([plans("lamp", "desk"), *steps], {**FOUND, "search": replies("a shop")}, NODE)

    outcome = answered(first, "yes", [after("ordered", says("Done.")), completed("lamp"), answers()])

    assert "<results>\nordered\n</results>" in text_of(outcome.model.prompts[1][-1])


def test_a_subtask_that_fails_after_an_approval_keeps_all_that_its_tools_said() -> None:
    steps = [after("ordered", fails("InvokeAuthorizationError", "no")), answers()]

    outcome = answered(asked_after_a_search(), "yes", steps)

    assert "a shop\n\nordered" in text_of(outcome.model.prompts[-1][-1])


def test_what_a_subtask_did_before_it_waited_is_known_though_nobody_approves() -> None:
    outcome = answered(asked_after_a_search(), "", [plans("x"), *done_at_once("x"), answers()], query="And now?")

    assert f"{template.APPROVAL_NOT_GIVEN}\n\n{template.UNREAD_RESULTS.format(results='a shop')}" in text_of(
        outcome.model.prompts[0][1]
    )


def test_with_an_approving_word_no_request_has_the_files_of_the_turn() -> None:
    film = {"type": "video", "filename": "a.mp4", "url": "http://host.test/a.mp4", "extension": ".mp4"}
    files = [{**film, "dify_model_identity": "__dify__file__", "mime_type": "video/mp4", "size": 12}]
    steps = [after("ordered", says("A lamp is ordered.")), completed("lamp"), answers()]

    outcome = answered(asked(), "yes", steps, files=files)

    assert "a.mp4" not in str(outcome.model.prompts)


def test_a_small_window_leaves_out_no_request_of_a_subtask_that_goes_on() -> None:
    first = asked(
        [
            works_on("lamp", says("Long words. " * 3_000)),
            incomplete("lamp", "Order it."),
            When("Order it.", calls(("order", {"q": "lamp"}))),
            *done_at_once("desk"),
        ]
    )
    narrow = model(context_size=8_000)

    outcome = answered(first, "yes", [after("ordered", says("Done.")), completed("lamp"), answers()], model=narrow)

    assert "Subtask: lamp" in text_of(outcome.model.prompts[0][1])


def test_attempts_end_though_the_node_now_allows_fewer() -> None:
    first = asked(
        [
            works_on("lamp", says("Hm.")),
            incomplete("lamp", "Look."),
            When("Look.", calls(("order", {"q": "lamp"}))),
            *done_at_once("desk"),
        ]
    )

    steps = [after("ordered", says("Well.")), incomplete("lamp", "More."), answers()]
    outcome = answered(first, "yes", steps, maximum_attempts=1)

    assert outcome.variables["subtasks"][0]["attempts"] == 2


def test_a_subtask_that_a_limit_stops_before_it_goes_on_keeps_what_its_tools_said() -> None:
    steps = [
        *ORDERS,
        works_on("desk", calls(("search", {"q": "desk"}))),
        When("a shop", calls(("order", {"q": "desk"}))),
    ]
    first = plan_run([plans("lamp", "desk"), *steps], {**FOUND, "search": replies("a shop")}, NODE)

    outcome = answered(first, "yes", [answers()], maximum_tool_calls=1)

    assert orders(outcome) == [{"q": "lamp"}]
    assert "a shop" in text_of(outcome.model.prompts[0][-1])


def test_a_subtask_without_its_request_goes_on_in_a_small_window_too() -> None:
    """No run leaves such a state, but a text may say so."""
    before = asked(query="Long words. " * 3_000)
    state = decode(before.variables["state"])
    assert state is not None
    assert state.plan is not None
    waiting = state.plan.subtasks[0]
    done = RoundRecord(calls=(CallRecord(id="a", provider="", tool="a", arguments="{}", result="r"),))
    cut = waiting.model_copy(update={"entries": (done, waiting.entries[-1])})
    plan = state.plan.model_copy(update={"subtasks": (cut, *state.plan.subtasks[1:])})
    turn = (UserRecord(text="Long words. " * 3_000), AnswerRecord(text="Well."))
    forged = encode(state.model_copy(update={"plan": plan, "entries": (*turn, UserRecord(text="Buy a lamp."))}))

    steps = [after("ordered", says("Done.")), completed("lamp"), answers()]
    outcome = answered(before, "yes", steps, state=forged, model=model(context_size=8_000))

    assert outcome.variables["subtasks"][0]["completed"] is True


def test_an_unknown_id_is_noted_once_however_many_subtasks_wait() -> None:
    both = asked([*ORDERS, works_on("desk", calls(("order", {"q": "desk"})))])
    steps = [*[When("did not approve", says("Nothing.")) for _ in range(2)], completed("lamp"), completed("desk")]

    outcome = answered(both, '{"call_9": true}', [*steps, answers()])

    assert outcome.notes == ["approval: no call 'call_9' waits"]
