"""Answers in a schema, on every strategy: handed over by a call, corrected at most twice, text asked once more."""

import json
from typing import Any

import pytest
from dify_plugin.errors.model import InvokeBadRequestError

from internal.agent import FUNCTION_CALLING, Blueprint
from internal.plan_and_reflect import PLAN_AND_REFLECT
from prompt import template
from strategies.gpt5_react import GPT5ReActStrategy
from tests.agent.plans import blocks, done_at_once, offered, plans
from tests.agent.scenes import check_prompt, results_in
from tests.support.host import Json
from tests.support.run import Outcome, run
from tests.support.wire import MODEL, USAGE, calls, model, replies, says

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
FOUND = {"search": replies("found")}
STRATEGIES: dict[str, tuple[Blueprint[Any], list[Any]]] = {
    "function calling": (FUNCTION_CALLING, []),
    "react": (GPT5ReActStrategy.blueprint, []),
    "plan and reflect": (PLAN_AND_REFLECT, [plans("alpha"), *done_at_once("alpha")]),
}
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def submits(answer: Json | str, **more: Any) -> list[Any]:  # noqa: ANN401 - passed on as it is
    return calls(("submit_answer", answer), **more)


def schema_run(strategy: str, *steps: Any, schema: object = None, **params: Any) -> Outcome:  # noqa: ANN401 - turns
    """Run a strategy up to its answer, for which these are the turns."""
    blueprint, before = STRATEGIES[strategy]
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
def test_the_arguments_of_the_call_are_the_answer_as_object_and_as_pretty_json(strategy: str) -> None:
    outcome = schema_run(strategy, submits(GOOD))

    assert satisfied(outcome)
    assert '"city": "Köln"' in outcome.text
    assert outcome.text.startswith("{\n")


@every_strategy
def test_the_tool_is_offered_beside_the_others_with_the_schema_as_its_parameters(strategy: str) -> None:
    outcome = schema_run(strategy, submits(GOOD))

    last = outcome.model.requests[-1]
    assert offered(last) == (["submit_answer"] if strategy == "plan and reflect" else ["search", "submit_answer"])
    assert last["tools"][-1]["parameters"] == SCHEMA


def test_plans_subtasks_and_judgements_do_not_offer_it() -> None:
    outcome = schema_run("plan and reflect", submits(GOOD))

    assert len(closing_prompts(outcome)) == 1


@pytest.mark.parametrize("blank", ["", "  \n", None, {}, []])
@every_strategy
def test_without_a_schema_the_answer_is_text(strategy: str, blank: object) -> None:
    blueprint, before = STRATEGIES[strategy]
    outcome = run([*before, says("Köln.")], FOUND, {"answer_schema": blank}, blueprint=blueprint)

    assert (outcome.text, outcome.stop_reason) == ("Köln.", "answered")
    assert "structured_output" not in outcome.variables
    assert all("submit_answer" not in offered(request) for request in outcome.model.requests)


def test_a_schema_that_dify_has_parsed_is_accepted() -> None:
    assert satisfied(schema_run("function calling", submits(GOOD), schema=SCHEMA))


def test_values_are_converted_by_the_schema_when_nothing_is_lost() -> None:
    assert satisfied(schema_run("function calling", submits({**GOOD, "people": "1000000"})))


UNFIT: dict[str, Json | str] = {
    "a wrong type": {"city": ["Köln"]},
    "a missing value": {"people": 3},
    "an unknown value": {"city": "Köln", "mayor": "?"},
    "out of range": {"city": "Köln", "people": 0},
    "a wrong item": {"city": "Köln", "rivers": [{"name": "Rhein"}]},
    "no object": "[1]",
    "broken JSON": '{"city": "K',
    "no number": '{"city": "Köln", "people": NaN}',
    "nothing": "",
}


@pytest.mark.parametrize("answer", UNFIT.values(), ids=UNFIT)
@every_strategy
def test_errors_in_the_answer_go_back_to_the_model_twice(strategy: str, answer: Json | str) -> None:
    outcome = schema_run(strategy, submits(answer), submits(answer), submits(GOOD))

    assert satisfied(outcome)
    last = closing_prompts(outcome)[-1]
    check_prompt(last)
    assert [result.startswith("tool arguments ") for result in results_in(last)] == [True, True]


@pytest.mark.parametrize("answer", UNFIT.values(), ids=UNFIT)
@every_strategy
def test_after_two_corrections_the_answer_is_invalid_and_the_output_null(strategy: str, answer: Json | str) -> None:
    outcome = schema_run(strategy, *[submits(answer)] * 3)

    assert unsatisfied(outcome)
    assert outcome.text == template.NO_ANSWER["answer_invalid"]["en"]
    assert len(closing_prompts(outcome)) == 3


@pytest.mark.parametrize("words", ["Köln.", json.dumps(GOOD), "", "x" * 500], ids=["short", "json", "none", "long"])
@every_strategy
def test_a_model_that_answers_in_text_is_asked_once_more(strategy: str, words: str) -> None:
    outcome = schema_run(strategy, says(words), submits(GOOD))

    assert satisfied(outcome)
    first, second = closing_prompts(outcome)
    assert second[: len(first)] == first
    assert second[-1]["role"] == "user"
    assert "submit_answer" in second[-1]["content"]


@every_strategy
def test_a_model_that_answers_in_text_again_has_no_answer(strategy: str) -> None:
    outcome = schema_run(strategy, says("Köln."), says("Köln!"))

    assert unsatisfied(outcome)
    assert len(closing_prompts(outcome)) == 2


@every_strategy
def test_text_and_corrections_may_come_together(strategy: str) -> None:
    steps = [submits({"people": 3}), says("Köln."), submits({"city": 7, "people": "x"}), submits(GOOD)]

    assert satisfied(schema_run(strategy, *steps))


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
def test_with_thoughts_hidden_text_beside_the_call_is_not_shown(strategy: str) -> None:
    assert satisfied(schema_run(strategy, submits(GOOD, text="<think>Hm.</think>" + "Here it is. " * 60)))


@every_strategy
def test_a_cut_answer_is_not_taken(strategy: str) -> None:
    outcome = schema_run(strategy, submits(GOOD, finish_reason="length"))

    assert outcome.stop_reason == "length"
    assert outcome.variables["structured_output"] is None
    assert outcome.text == template.NO_ANSWER["length"]["en"]


@every_strategy
def test_usage_counts_every_call_for_the_answer(strategy: str) -> None:
    outcome = schema_run(strategy, says("Köln."), submits({}), submits(GOOD))

    usage = outcome.last_json["execution_metadata"]
    assert usage["total_tokens"] == len(outcome.model.requests) * USAGE["total_tokens"]


@every_strategy
def test_a_model_that_cannot_call_tools_is_one_clear_error(strategy: str) -> None:
    blueprint, _ = STRATEGIES[strategy]
    params = {"answer_schema": json.dumps(SCHEMA), "model": model(features=[])}

    outcome = run([], {}, params, blueprint=blueprint)

    assert isinstance(outcome.error, InvokeBadRequestError)
    assert "cannot call tools" in str(outcome.error)
    assert outcome.model.requests == []


@every_strategy
def test_the_log_shows_the_call_and_how_it_went(strategy: str) -> None:
    outcome = schema_run(strategy, submits({}), submits(GOOD))

    shown = [log for log in outcome.logs.values() if log["label"] == "CALL submit_answer"]
    assert [log["status"] for log in shown] == ["error", "success"]
    assert {log["status"] for log in outcome.logs.values()} <= {"error", "success"}
    assert MODEL in {log["label"] for log in outcome.logs.values()}
