"""Tools whose result is the answer: of one call, of several, behind an approval, in a subtask, and by a schema."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from dify_plugin.errors.model import InvokeBadRequestError

from internal.memory.records import AnswerRecord
from internal.memory.state import decode
from prompt import template
from tests.support.host import Handler, Json, Step, text_of
from tests.support.plans import (
    ALONE,
    answers,
    done_at_once,
    of_answer,
    of_reflection,
    plan_run,
    plans,
    subtask,
    works_on,
)
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, check_growth, check_prompt, last_note, log_of, results_in, search
from tests.support.wire import breaks, calls, json_message, message, parameter, replies, says, tool

QUOTE = "Quote A-17\n\n| lamp | 40 |\n|---|---|\n"
OFFER: Json = {"id": "A-17", "total": 40}
BRINGS: dict[str, Handler] = {"quote": replies(QUOTE), "search": replies("found"), "order": replies("ordered")}
ASKS = ("quote", {"q": "lamp"})
NODE = {"answer_tools": "quote"}
IS_ANSWER = "quote: its result is the answer, since answer_tools names it"


def quoted(
    steps: Sequence[Step] = (calls(ASKS),), handlers: Mapping[str, Handler] | None = None, **params: object
) -> Outcome:
    return run(steps, {**BRINGS, **(handlers or {})}, {**NODE, **params})


def said_by(*messages: Json | str, **params: Any) -> Outcome:  # noqa: ANN401 - parameters of the node
    """A run in which the tool says this."""
    return quoted(handlers={"quote": replies(*messages)}, **params)


def own_json(outcome: Outcome) -> list[Any]:
    """What is in the output ``json`` before the variables."""
    values = [body["json_object"] for body in outcome.bodies("json")]
    return values[: next(at for at, value in enumerate(values) if "variables" in value)]


@pytest.mark.parametrize("strategy", ALONE)
def test_a_successful_call_ends_the_run_and_its_result_is_the_answer(strategy: str) -> None:
    steps = [search(), calls(ASKS, text="I make a quote.")]

    outcome = run(steps, BRINGS, NODE, blueprint=ALONE[strategy])

    assert (outcome.error, outcome.stop_reason, outcome.text) == (None, "answered", QUOTE)
    assert (outcome.variables["answer_tool"], outcome.variables["structured_output"]) == ("quote", None)
    assert [each["status"] for each in outcome.variables["tool_runs"]] == ["ok", "ok"]
    assert outcome.notes == [IS_ANSWER]
    assert log_of(outcome, "ENDED")["label"] == "ENDED: answered"
    check_growth(outcome.model.requests)
    offered = {each["name"]: each["description"] for each in outcome.model.requests[0]["tools"]}
    assert offered["quote"] == f"What quote does.\n\n{template.ANSWER_TOOL_NOTE}"
    assert template.ANSWER_TOOL_NOTE not in offered["search"]


@pytest.mark.parametrize("shown", [False, True])
def test_no_remark_before_the_call_is_in_the_answer_however_long_it_is(*, shown: bool) -> None:
    remark = "## A quote\n\n" + "I make it now. " * 60

    outcome = quoted([calls(ASKS, text=remark)], emit_intermediate_thoughts=shown)

    assert outcome.text.partition("</think>\n\n")[2 if shown else 0] == QUOTE
    assert quoted([says(remark)]).text == remark.strip()


def test_a_model_may_still_answer_in_text_and_the_variable_says_so() -> None:
    outcome = quoted([search(), says("No quote is needed.")])

    assert (outcome.text, outcome.stop_reason) == ("No quote is needed.", "answered")
    assert outcome.variables["answer_tool"] is None
    assert "answer_tool" not in run([ANSWER], BRINGS).variables


def test_of_several_calls_all_texts_are_the_answer_in_the_models_order_and_the_others_run() -> None:
    handlers = {"chart": replies("The chart."), "mail": breaks("no such address")}
    turn = calls(("chart", {}), ("search", {"q": "a"}), ASKS, ("mail", {}), ("chart", "broken"))

    outcome = quoted([turn], handlers, answer_tools="quote, tools/chart, mail")

    assert outcome.text == f"The chart.\n\n{QUOTE}"
    assert outcome.variables["answer_tool"] == "chart, quote"
    assert [each["status"] for each in outcome.variables["tool_runs"]] == ["ok", "ok", "ok", "error", "refused"]


@pytest.mark.parametrize(
    ("call", "handler", "reads"),
    [
        (ASKS, breaks("out of stock"), "out of stock"),
        (("quote", {"q": "lamp", "colour": "red"}), replies(QUOTE), "unknown argument 'colour'"),
        (("quote", "broken"), replies(QUOTE), "tool arguments parse error"),
    ],
    ids=["fails", "does not fit", "is not JSON"],
)
def test_a_call_that_fails_or_is_refused_is_no_answer_and_the_model_goes_on(
    call: tuple[str, Any], handler: Handler, reads: str
) -> None:
    outcome = quoted([calls(call), says("I cannot make one.")], {"quote": handler})

    assert reads in outcome.tool_results()[0]
    assert (outcome.text, outcome.variables["answer_tool"], outcome.notes) == ("I cannot make one.", None, [])


def test_no_tool_answers_beyond_the_last_round() -> None:
    outcome = quoted([search(), calls(ASKS, text="I make one.")], maximum_iterations=1)

    assert (outcome.stop_reason, outcome.variables["answer_tool"]) == ("iteration_limit", None)
    assert ran(outcome) == ["search"]


# What of a result the user gets.

EXACT = {"n": str(2**60)}
SAID: dict[str, tuple[list[Json | str], str, Json | None, list[Any]]] = {
    "text in pieces": (["one ", "two"], "one two", None, []),
    "text and an object": (["See.", json_message(OFFER)], "See.", OFFER, [OFFER]),
    "an object alone": ([json_message(OFFER)], '{"id": "A-17", "total": 40}', OFFER, [OFFER]),
    "two objects": (["See.", json_message(OFFER), json_message({})], "See.", None, [OFFER, {}]),
    "a number that the host would round": (["See.", json_message({"n": 2**60})], "See.", EXACT, [EXACT]),
    "a variable alone": ([message("variable", variable_name="total", variable_value=40)], '{"total": 40}', None, []),
    "a link": (["See.", message("link", text="https://a.example")], "See.\n\nlink: https://a.example", None, []),
    "a file alone": ([message("image_link", text="/files/tools/0a1b-2c.png")], "", None, []),
    "nothing": ([], "Done (quote). There is nothing else to report.", None, []),
    "tags": (["<think>Hm.</think>See."], "<\u2060think>Hm.<\u2060/think>See.", None, []),
}  # fmt: skip


@pytest.mark.parametrize(("said", "text", "structured", "sent"), SAID.values(), ids=SAID)
def test_texts_files_and_json_are_those_of_the_tool(
    said: list[Json | str], text: str, structured: Json | None, sent: list[Any]
) -> None:
    outcome = said_by(*said)

    assert (outcome.text, outcome.stop_reason, outcome.variables["answer_tool"]) == (text, "answered", "quote")
    assert outcome.variables["structured_output"] == structured
    assert own_json(outcome) == sent
    assert len(outcome.bodies("image_link")) == sum(isinstance(each, dict) and "files" in str(each) for each in said)


def test_the_answer_is_not_cut_and_a_later_turn_reads_it_within_the_limit() -> None:
    long = "".join(f"row {number}\n" for number in range(20_000))

    outcome = said_by(long, tool_result_limit=1_000, extra_outputs="state")
    later = run([ANSWER], BRINGS, {**NODE, "state": outcome.variables["state"], "query": "And now?"})

    assert outcome.text == long
    assert log_of(outcome, "CALL quote")["data"]["tool_response"].startswith("row 0")
    state = decode(outcome.variables["state"])
    assert state
    assert isinstance(state.entries[-1], AnswerRecord)
    assert len(state.entries[-1].text) <= 1_000
    check_prompt(later.model.prompts[0])
    assert [message["role"] for message in later.model.prompts[0]][-4:] == ["assistant", "tool", "assistant", "user"]


def test_secrets_are_in_no_part_of_the_answer() -> None:
    secret = "hunter2-hunter2"
    learnt = "correct horse battery"
    offered = tool("quote", parameter("pin", "secret-input"), runtime_parameters={"api_key": secret})
    said: list[Json | str] = [f"Key {secret}, pin {learnt}.", json_message({"key": secret, "pin": [learnt]})]

    outcome = quoted([calls(("quote", {"pin": learnt}))], {"quote": replies(*said)}, tools=[offered])

    assert outcome.text == "Key [redacted], pin [redacted]."
    assert outcome.variables["structured_output"] == {"key": "[redacted]", "pin": ["[redacted]"]}
    assert secret not in json.dumps(outcome.messages)
    assert learnt not in json.dumps(outcome.messages)


def test_sources_are_put_out_but_a_tools_numbers_are_not_ours() -> None:
    described = {"document_name": "Manual", "content": "Press."}
    resource = {"type": "retriever_resources", "message": {"retriever_resources": [described]}, "meta": None}

    outcome = said_by("See [1].", resource)

    assert outcome.text == "See [1]."
    assert [(each["title"], each["cited"]) for each in outcome.variables["sources"]] == [("Manual", False)]


def test_answer_criteria_do_not_apply_and_the_log_says_so() -> None:
    outcome = quoted(answer_criteria="At most 3 words.")

    assert outcome.text == QUOTE
    assert outcome.variables["review"] == {"passed": None, "problems": [], "revisions": 0}
    assert outcome.notes == [IS_ANSWER, "answer_criteria: not applied, since the answer is the result of a tool"]


# An approval.


def asked(*turn: tuple[str, Any], approval_required: str = "order") -> Outcome:
    outcome = quoted([calls(*turn)], approval_required=approval_required)
    assert outcome.stop_reason == "approval_required"
    assert outcome.variables["answer_tool"] is None
    return outcome


def decided(first: Outcome, approval: str, steps: Sequence[Step] = (), **params: object) -> Outcome:
    given = {"approval_required": "order", "approval": approval, "query": approval, **params}
    return run(steps, BRINGS, {**NODE, "state": first.variables["state"], **given})


def ran(outcome: Outcome) -> list[str]:
    return [request["tool"] for request in outcome.tools.requests]


ORDER = ("order", {"q": "lamp"})


def test_a_call_that_needs_an_approval_waits_and_after_a_yes_its_result_is_the_answer() -> None:
    first = asked(ASKS, approval_required="quote")

    outcome = decided(first, "yes", approval_required="quote")

    assert (outcome.text, outcome.stop_reason, outcome.variables["answer_tool"]) == (QUOTE, "answered", "quote")
    assert outcome.model.requests == []
    assert log_of(outcome, "APPROVAL")["status"] == "success"
    assert outcome.notes == [IS_ANSWER]


@pytest.mark.parametrize("decision", ["yes", "each"])
def test_a_call_waits_for_its_siblings_without_being_asked_and_runs_with_them(decision: str) -> None:
    first = asked(("search", {"q": "a"}), ASKS, ORDER)
    (pending,) = first.variables["pending_calls"]
    approval = "yes" if decision == "yes" else json.dumps({pending["id"]: True})

    outcome = decided(first, approval)

    assert (pending["tool"], ran(first), ran(outcome)) == ("order", ["search"], ["quote", "order"])
    assert "quote" not in first.variables["approval_question"]
    assert [each["status"] for each in first.variables["tool_runs"]] == ["ok", "waiting", "waiting"]
    assert (outcome.text, outcome.stop_reason, outcome.model.requests) == (QUOTE, "answered", [])
    state = decode(outcome.variables["state"])
    assert state
    assert not state.waiting


@pytest.mark.parametrize("approval", ["no, too expensive", "{}"])
def test_after_a_no_it_does_not_run_and_the_model_reads_why(approval: str) -> None:
    outcome = decided(asked(ASKS, ORDER), approval, [ANSWER])

    assert ran(outcome) == []
    assert results_in(outcome.model.prompts[0])[0] == template.ANSWER_TOOL_NOT_RUN
    assert outcome.variables["answer_tool"] is None


def test_where_the_user_says_more_than_yes_the_model_is_asked() -> None:
    first = asked(ASKS, approval_required="quote")

    outcome = decided(first, "yes", [ANSWER], approval_required="quote", query="And a desk?")

    assert (outcome.text, outcome.variables["answer_tool"]) == ("Done.", None)
    read = [text_of(message) for message in outcome.model.prompts[0][-3:]]
    assert read == [
        QUOTE,
        template.TURN_BETWEEN,
        "And a desk?",
    ]


def test_a_tool_that_needs_an_approval_by_now_does_not_run_behind_another_ones_yes() -> None:
    outcome = decided(asked(ASKS, ORDER), "yes", [ANSWER], approval_required="*")

    assert ran(outcome) == ["order"]
    assert results_in(outcome.model.prompts[0])[0] == template.APPROVED_CALL_CHANGED


# A subtask.


def test_in_a_subtask_the_result_ends_the_subtask_unjudged() -> None:
    steps = [plans("alpha", "beta"), works_on("alpha", calls(ASKS)), *done_at_once("beta"), answers()]

    outcome = plan_run(steps, BRINGS, {**NODE, "answer_schema": ""})

    assert subtask(outcome, "alpha") == {"name": "alpha", "answer": QUOTE, "completed": True, "attempts": 1}
    assert of_reflection(outcome, "alpha") == []
    assert QUOTE in text_of(of_answer(outcome)[0]["prompt_messages"][-1])
    assert (outcome.stop_reason, outcome.variables["answer_tool"]) == ("answered", None)
    assert outcome.notes == [IS_ANSWER]


def test_in_a_subtask_too_it_waits_and_ends_the_subtask_after_a_yes() -> None:
    node = {**NODE, "approval_required": "quote"}
    first = plan_run([plans("alpha", "beta"), works_on("alpha", calls(ASKS)), *done_at_once("beta")], BRINGS, node)

    given = {**node, "state": first.variables["state"], "approval": "yes", "query": "yes"}
    outcome = plan_run([answers()], BRINGS, given)

    assert first.stop_reason == "approval_required"
    assert subtask(outcome, "alpha")["answer"] == QUOTE
    assert len(outcome.model.requests) == 1


# An answer in a schema.

SCHEMA: Json = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "total": {"type": "number"}},
    "required": ["id"],
    "additionalProperties": False,
}


def test_an_object_that_fits_the_schema_is_the_answer_and_values_are_converted_by_it() -> None:
    outcome = said_by("See.", json_message({"id": "A-17", "total": "40"}), answer_schema=SCHEMA)

    assert (outcome.text, outcome.stop_reason) == ("See.", "answered")
    assert outcome.variables["structured_output"] == OFFER


UNFIT: dict[str, tuple[list[Json | str], str]] = {
    "another type": ([json_message({"id": 7.5, "total": []})], "parameter 'total'"),
    "no object": (["See."], template.NO_SINGLE_OBJECT),
    "two": ([json_message(OFFER), json_message(OFFER)], template.NO_SINGLE_OBJECT),
}


@pytest.mark.parametrize(("said", "problem"), UNFIT.values(), ids=UNFIT)
def test_of_another_result_the_model_reads_why_it_is_not_taken_and_that_the_call_has_run(
    said: list[Json | str], problem: str
) -> None:
    steps = [calls(ASKS), calls(("submit_answer", OFFER))]

    outcome = quoted(steps, {"quote": replies(*said)}, answer_schema=SCHEMA)

    note = last_note(outcome.model.prompts[-1])
    assert note.startswith("quote has run, but its result is not taken as the answer: ")
    assert problem in note
    assert outcome.variables["structured_output"] == OFFER
    assert (outcome.variables["answer_tool"], len(outcome.tools.requests)) == (None, 1)
    assert note[:30] in outcome.notes[0]
    check_growth(outcome.model.requests)


def test_of_several_results_one_that_fits_is_enough() -> None:
    handlers = {"quote": replies("Q", json_message(OFFER)), "chart": replies("C")}

    outcome = quoted([calls(("chart", {}), ASKS)], handlers, answer_tools="*", answer_schema=SCHEMA)

    assert (outcome.text, outcome.variables["structured_output"]) == ("C\n\nQ", OFFER)


# Names.


def test_an_unknown_name_is_one_clear_error_before_any_model_call() -> None:
    outcome = quoted([], answer_tools="qoute")

    assert isinstance(outcome.error, InvokeBadRequestError)
    assert str(outcome.error).startswith("parameter 'answer_tools': the node has no tool 'qoute'; its tools are: ")
    assert outcome.model.requests == []


@pytest.mark.parametrize("names", ["*", "tools/quote", ["acme/tools/tools/quote", "search"], "quote，order"])
def test_tools_are_named_as_in_allowed_tools_and_a_star_means_all(names: object) -> None:
    assert quoted(answer_tools=names).text == QUOTE
