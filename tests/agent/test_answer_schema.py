"""Answers in a schema: handed over by a call, corrected twice, asked for once; and which schemas are taken."""

import json
from typing import Any

import pytest
from dify_plugin.errors.model import InvokeBadRequestError

from prompt import template, user_texts
from tests.support.host import Json
from tests.support.plans import UP_TO_THE_ANSWER, blocks, every_strategy, offered
from tests.support.run import Outcome, run
from tests.support.scenes import CITY, FOUND, check_prompt, last_note, results_in, search, submits
from tests.support.wire import calls, model, replies, says

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "people": {"type": "integer", "minimum": 1},
        "rivers": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city"],
    "additionalProperties": False,
}
GOOD: Json = {"city": "Köln", "people": 1_000_000, "rivers": ["Rhein"]}


def schema_run(strategy: str, *steps: Any, schema: object = None, **params: Any) -> Outcome:  # noqa: ANN401 - turns
    """Run a strategy up to its answer, for which these are the turns."""
    blueprint, before = UP_TO_THE_ANSWER[strategy]
    given = json.dumps(SCHEMA) if schema is None else schema
    return run([*before, *steps], FOUND, {"answer_schema": given, **params}, blueprint=blueprint)


def closing_prompts(outcome: Outcome) -> list[list[Json]]:
    """The prompts of the calls in which the answer may be handed over."""
    return [request["prompt_messages"] for request in outcome.model.requests if "submit_answer" in offered(request)]


def satisfied(outcome: Outcome, answer: Json = GOOD) -> bool:
    assert outcome.error is None
    assert outcome.stop_reason == "answered"
    assert outcome.variables["structured_output"] == answer
    assert outcome.text == json.dumps(answer, ensure_ascii=False, indent=2)
    return True


def unsatisfied(outcome: Outcome) -> bool:
    assert outcome.error is None
    assert outcome.stop_reason == "answer_invalid"
    assert outcome.variables["structured_output"] is None
    return True


@every_strategy
def test_the_arguments_of_a_call_with_the_schema_are_the_answer_as_object_and_as_pretty_json(strategy: str) -> None:
    """Plans, subtasks and judgements do not offer the call."""
    outcome = schema_run(strategy, submits(GOOD))

    assert satisfied(outcome)
    assert '"city": "Köln"' in outcome.text
    assert outcome.text.startswith("{\n")
    last = outcome.model.requests[-1]
    assert offered(last) == (["submit_answer"] if strategy == "plan and reflect" else ["search", "submit_answer"])
    assert last["tools"][-1]["parameters"] == SCHEMA
    assert len(closing_prompts(outcome)) == 1


@pytest.mark.parametrize("blank", ["", "  \n", None, {}, []])
@every_strategy
def test_without_a_schema_the_answer_is_text(strategy: str, blank: object) -> None:
    blueprint, before = UP_TO_THE_ANSWER[strategy]
    outcome = run([*before, says("Köln.")], FOUND, {"answer_schema": blank}, blueprint=blueprint)

    assert (outcome.text, outcome.stop_reason) == ("Köln.", "answered")
    assert "structured_output" not in outcome.variables
    assert all("submit_answer" not in offered(request) for request in outcome.model.requests)


def test_a_schema_that_dify_has_parsed_is_taken_and_values_are_converted_by_it() -> None:
    assert satisfied(schema_run("function calling", submits({**GOOD, "people": "1000000"}), schema=SCHEMA))


UNFIT: dict[str, Json | str] = {
    "a wrong type": {"city": ["Köln"]},
    "out of range": {"city": "Köln", "people": 0},
    "a wrong item": {"city": "Köln", "rivers": [{"name": "Rhein"}]},
    "no object": "[1]",
    "broken JSON": '{"city": "K',
    "nothing": "",
}


@pytest.mark.parametrize("answer", UNFIT.values(), ids=UNFIT)
@every_strategy
def test_errors_in_the_answer_go_back_to_the_model_twice_and_then_the_output_is_null(
    strategy: str, answer: Json | str
) -> None:
    corrected = schema_run(strategy, submits(answer), submits(answer), submits(GOOD))
    given_up = schema_run(strategy, *[submits(answer)] * 3)

    assert satisfied(corrected)
    last = closing_prompts(corrected)[-1]
    check_prompt(last)
    assert [result.startswith("tool arguments ") for result in results_in(last)] == [True, True]
    assert unsatisfied(given_up)
    assert given_up.text == user_texts.NO_ANSWER["answer_invalid"]["en"]
    assert len(closing_prompts(given_up)) == 3


@pytest.mark.parametrize("words", ["Köln.", json.dumps(GOOD), "", "x" * 500], ids=["short", "json", "none", "long"])
@every_strategy
def test_a_model_that_answers_in_text_is_asked_once_more(strategy: str, words: str) -> None:
    turns = [says(words)]
    if not words:  # it is asked for once more
        turns *= 2

    outcome = schema_run(strategy, *turns, submits(GOOD))

    assert satisfied(outcome)
    *_, first, second = closing_prompts(outcome)
    assert second[: len(first)] == first
    assert second[-1]["role"] == "user"
    assert "submit_answer" in second[-1]["content"]


@every_strategy
def test_a_model_that_answers_in_text_again_has_no_answer(strategy: str) -> None:
    outcome = schema_run(strategy, says("Köln."), says("Köln!"))

    assert unsatisfied(outcome)
    assert len(closing_prompts(outcome)) == 2


@every_strategy
def test_with_thoughts_shown_text_is_a_thought_and_never_the_answer(strategy: str) -> None:
    long = "I think it is Köln. " * 40
    steps = [says(f"<think>Hm.</think>{long}"), submits(GOOD, text="Here it is.")]

    outcome = schema_run(strategy, *steps, emit_intermediate_thoughts=True)

    thoughts = blocks(outcome.text)
    assert outcome.text.rpartition("</think>")[2].strip() == json.dumps(GOOD, ensure_ascii=False, indent=2)
    assert any(long.strip() in thought for thought in thoughts)
    assert any("Here it is." in thought for thought in thoughts)


@every_strategy
def test_a_cut_answer_is_not_taken(strategy: str) -> None:
    outcome = schema_run(strategy, submits(GOOD, finish_reason="length"))

    assert outcome.stop_reason == "length"
    assert outcome.variables["structured_output"] is None
    assert outcome.text == user_texts.NO_ANSWER["length"]["en"]


# The answer among calls of other tools.

BONN = {"city": "Bonn"}
TEXT = json.dumps(BONN, indent=2)
SUBMIT = ("submit_answer", BONN)


def city_run(*steps: Any, **params: Any) -> Outcome:  # noqa: ANN401 - turns
    return run(steps, FOUND, {"answer_schema": CITY, **params})


@pytest.mark.parametrize("first", [0, 1], ids=["answer first", "answer last"])
def test_an_answer_together_with_other_calls_is_the_answer(first: int) -> None:
    turn = [("search", {"q": "a"}), ("nonsense", {})]
    turn.insert(0 if first == 0 else 2, SUBMIT)

    outcome = city_run(calls(*turn))

    assert (outcome.text, outcome.stop_reason) == (TEXT, "answered")
    assert outcome.variables["structured_output"] == BONN
    assert len(outcome.variables["tool_runs"]) == 3
    assert "start" not in {log["status"] for log in outcome.logs.values()}


def test_of_two_answers_in_one_turn_the_first_that_fits_counts() -> None:
    """Without one that fits, the other calls of the turn run."""
    turn = calls(("submit_answer", {}), SUBMIT, ("submit_answer", {"city": "Kiel"}))

    outcome = city_run(calls(("search", {"q": "a"}), ("submit_answer", {})), turn)

    assert outcome.variables["structured_output"] == BONN
    found, refused = results_in(outcome.model.prompts[-1])
    assert found == "found"
    assert "city" in refused


def test_in_the_closing_call_the_answer_is_the_one_call_that_is_not_refused() -> None:
    outcome = city_run(search("a"), calls(("search", {"q": "b"}), SUBMIT), maximum_iterations=1)

    assert (outcome.text, outcome.stop_reason) == (TEXT, "iteration_limit")
    assert outcome.variables["structured_output"] == BONN
    assert len(outcome.tools.requests) == 1
    assert [item["status"] for item in outcome.variables["tool_runs"]] == ["ok", "refused", "ok"]
    assert last_note(outcome.model.prompts[-1]) == template.CLOSING_NOTE_FOR_SUBMISSION


@pytest.mark.parametrize("wrong", [calls(("submit_answer", {})), says("Bonn.")], ids=["unfit", "text"])
def test_in_the_closing_call_too_an_answer_may_be_corrected_or_asked_for(wrong: list[Any]) -> None:
    outcome = city_run(search("a"), wrong, calls(SUBMIT), maximum_iterations=1, model=model(features=None))

    assert (outcome.text, outcome.variables["structured_output"]) == (TEXT, BONN)


@pytest.mark.parametrize(
    "turn",
    [says("Bonn."), says(), calls(("submit_answer", {})), search("b")],
    ids=["text", "nothing", "unfit", "other"],
)
def test_without_any_answer_in_the_closing_call_the_output_is_null_and_says_so(turn: list[Any]) -> None:
    outcome = run(
        [search("a"), *[turn] * 4],
        {"search": replies("found")},
        {"answer_schema": CITY, "maximum_iterations": 1},
        expect_all_steps=False,
    )

    assert outcome.variables["structured_output"] is None
    assert outcome.stop_reason == "answer_invalid"
    assert outcome.text


# Which schemas are taken: references into itself and patterns; the rest is refused.


def submitted(schema: object, *answers: Json) -> Outcome:
    steps = [calls(("submit_answer", answer)) for answer in answers]
    given = schema if isinstance(schema, str) else json.dumps(schema)
    return run(steps, {}, {"answer_schema": given})


UNUSABLE: dict[str, str] = {
    "prose": "An object with a city.",
    "a schema of a text": '{"type": "string"}',
    "a reference to a text": '{"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}',
    "long": json.dumps({"type": "object", "properties": {"a": {"type": "secret" * 1_000}}}),
}


@pytest.mark.parametrize("schema", UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_schema_is_one_clear_error_before_any_call(schema: str) -> None:
    outcome = submitted(schema)

    assert isinstance(outcome.error, InvokeBadRequestError)
    assert "answer_schema" in str(outcome.error)
    assert len(str(outcome.error)) < 500
    assert outcome.model.requests == []


REFERENCES: dict[str, Json] = {
    "on top, over two steps": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/city"}, "city": CITY}},
    "under the old name": {"$ref": "#/definitions/city", "definitions": {"city": CITY}},
}


@pytest.mark.parametrize("schema", REFERENCES.values(), ids=REFERENCES)
def test_references_into_the_schema_itself_are_followed(schema: Json) -> None:
    """The first answer does not fit, and the model reads why."""
    outcome = submitted(schema, {"city": ["no text"]}, {"city": "Bonn"})

    assert outcome.variables["structured_output"] == {"city": "Bonn"}
    assert "city" in outcome.model.prompts[-1][-1]["content"]
    (tool,) = outcome.model.requests[0]["tools"]
    assert tool["parameters"]["type"] == "object"
    assert "$ref" not in tool["parameters"]


@pytest.mark.parametrize("kind", [{}, {"type": ["object"]}, {"type": ["object", "null"]}], ids=str)
def test_an_object_may_be_one_type_of_several_or_not_named(kind: Json) -> None:
    outcome = submitted({**CITY, **kind}, {"city": "Bonn"})

    assert outcome.variables["structured_output"] == {"city": "Bonn"}
    assert outcome.model.requests[0]["tools"][0]["parameters"] == CITY


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "leads back to"),
        ({"type": "object", "properties": {"a": {"$dynamicRef": "other.json#a"}}}, "leads out of it"),
    ],
    ids=["references to each other", "a dynamic reference to another document"],
)
def test_a_schema_without_an_end_is_one_clear_error_before_any_model_call(schema: Json, reason: str) -> None:
    outcome = run([], params={"answer_schema": json.dumps(schema)})

    assert isinstance(outcome.error, InvokeBadRequestError)
    assert str(outcome.error).startswith("parameter 'answer_schema': ")
    assert reason in str(outcome.error)
    assert outcome.messages == []
