"""Answers in a schema beside other tools: in rounds, together with other calls, in the closing call; and secrets."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from prompt import template
from tests.agent.scenes import check_growth, results_in, search
from tests.support.run import Outcome, run
from tests.support.wire import calls, model, replies, says

if TYPE_CHECKING:
    from tests.support.host import Handler

SCHEMA = json.dumps({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
GOOD = {"city": "Bonn"}
TEXT = json.dumps(GOOD, indent=2)
SUBMIT = ("submit_answer", GOOD)


def schema_run(*steps: Any, **params: Any) -> Outcome:  # noqa: ANN401 - turns
    handlers: dict[str, Handler] = {"search": replies("found")}
    return run(steps, handlers, {"answer_schema": SCHEMA, **params})


def test_the_other_tools_keep_working() -> None:
    outcome = schema_run(search("a"), search("b"), calls(SUBMIT))

    assert (outcome.text, outcome.stop_reason) == (TEXT, "answered")
    assert [request["tool_parameters"]["q"] for request in outcome.tools.requests] == ["a", "b"]
    assert results_in(outcome.model.prompts[-1]) == ["found", "found"]
    check_growth(outcome.model.requests)


def test_other_tools_run_beside_an_answer_that_does_not_fit() -> None:
    outcome = schema_run(calls(("search", {"q": "a"}), ("submit_answer", {})), calls(SUBMIT))

    found, refused = results_in(outcome.model.prompts[-1])
    assert found == "found"
    assert "city" in refused
    assert outcome.variables["structured_output"] == GOOD


@pytest.mark.parametrize("first", [0, 1], ids=["answer first", "answer last"])
def test_an_answer_together_with_other_calls_is_the_answer(first: int) -> None:
    turn = [("search", {"q": "a"}), ("nonsense", {})]
    turn.insert(0 if first == 0 else 2, SUBMIT)

    outcome = schema_run(calls(*turn))

    assert (outcome.text, outcome.stop_reason) == (TEXT, "answered")
    assert outcome.variables["structured_output"] == GOOD
    assert len(outcome.variables["tool_runs"]) == 3
    assert "start" not in {log["status"] for log in outcome.logs.values()}


def test_of_two_answers_in_one_turn_the_first_that_fits_counts() -> None:
    turn = calls(("submit_answer", {}), SUBMIT, ("submit_answer", {"city": "Kiel"}))

    assert schema_run(turn).variables["structured_output"] == GOOD


def test_in_the_closing_call_the_answer_is_the_one_call_that_is_not_refused() -> None:
    outcome = schema_run(search("a"), calls(("search", {"q": "b"}), SUBMIT), maximum_iterations=1)

    assert (outcome.text, outcome.stop_reason) == (TEXT, "iteration_limit")
    assert outcome.variables["structured_output"] == GOOD
    assert len(outcome.tools.requests) == 1
    assert [item["status"] for item in outcome.variables["tool_runs"]] == ["ok", "refused", "ok"]
    assert outcome.model.prompts[-1][-1]["content"] == template.CLOSING_NOTE_FOR_SUBMISSION


def test_the_closing_note_asks_for_the_call() -> None:
    assert "submit_answer" in template.CLOSING_NOTE_FOR_SUBMISSION


def test_an_answer_that_does_not_fit_in_the_closing_call_goes_back_too() -> None:
    outcome = schema_run(search("a"), calls(("submit_answer", {})), calls(SUBMIT), maximum_iterations=1)

    assert outcome.variables["structured_output"] == GOOD
    assert outcome.text == TEXT


def test_a_closing_answer_in_text_is_asked_for_once_more() -> None:
    outcome = schema_run(search("a"), says("Bonn."), calls(SUBMIT), maximum_iterations=1)

    assert outcome.variables["structured_output"] == GOOD
    assert outcome.text == TEXT


@pytest.mark.parametrize(
    "turn",
    [says("Bonn."), says(), calls(("submit_answer", {})), search("b")],
    ids=["text", "nothing", "unfit", "other"],
)
def test_without_any_answer_in_the_closing_call_the_output_is_null_and_says_so(turn: list[Any]) -> None:
    outcome = run(
        [search("a"), *[turn] * 4],
        {"search": replies("found")},
        {"answer_schema": SCHEMA, "maximum_iterations": 1},
        expect_all_steps=False,
    )

    assert outcome.variables["structured_output"] is None
    assert outcome.stop_reason == "answer_invalid"
    assert outcome.text


def test_repeated_calls_end_in_an_answer_in_the_schema_too() -> None:
    outcome = schema_run(*[search("same")] * 4, calls(SUBMIT))

    assert (outcome.stop_reason, outcome.variables["structured_output"]) == ("repeated_calls", GOOD)


def test_a_repeated_closing_does_not_need_described_models() -> None:
    outcome = schema_run(search("a"), calls(SUBMIT), maximum_iterations=1, model=model(features=None))

    assert outcome.variables["structured_output"] == GOOD
