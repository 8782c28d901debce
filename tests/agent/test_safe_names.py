"""Parameters whose names an API refuses: the model knows them by safe names, all others by their own."""

import json
from typing import Any

import pytest

from internal.memory.records import RoundRecord
from internal.memory.state import decode
from tests.support.host import Json, Step
from tests.support.plans import UP_TO_THE_ANSWER, every_strategy
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, CITY, check_growth, log_of, submits
from tests.support.wire import calls, parameter, replies, tool

QUERY = tool(
    "query",
    parameter("_filter"),
    parameter("$filter", required=True, llm_description="OData."),
    parameter("page[size]", "number", input_schema={"type": "integer", "minimum": 1}),
    parameter("件数", "array"),
    parameter("$top", "number", form="form"),
    provider_type="mcp",
    runtime_parameters={"$top": 5},
)
LONG = "".join(f"Line {number} of the rows. " for number in range(60))
WRITTEN = '{ "_filter_2": "a eq 1",  "page_size_": "2", "parameter": ["x"] }'
"""As the model writes it, which is neither canonical nor converted."""
SENT: Json = {"$filter": "a eq 1", "page[size]": 2, "件数": ["x"], "$top": 5}
OWN: Json = {name: SENT[name] for name in SENT if name != "$top"}
"""The model's part of it."""


def queried(*steps: Step, **params: Any) -> Outcome:  # noqa: ANN401 - of the node
    return run(steps, {"query": replies(LONG)}, {"tools": [QUERY], **params})


def sent(outcome: Outcome) -> list[Json]:
    return [request["tool_parameters"] for request in outcome.tools.requests]


def written_back(outcome: Outcome) -> list[str]:
    """The arguments of all calls in the last prompt."""
    messages = outcome.model.prompts[-1]
    return [call["function"]["arguments"] for message in messages for call in message.get("tool_calls") or ()]


def recorded(outcome: Outcome) -> list[str]:
    """The arguments of all calls in the state."""
    state = decode(outcome.variables["state"])
    assert state
    return [call.arguments for entry in state.entries if isinstance(entry, RoundRecord) for call in entry.calls]


def test_the_model_is_told_safe_names_and_the_tool_is_called_by_its_own() -> None:
    outcome = queried(calls(("query", WRITTEN)), ANSWER, extra_outputs="tool_results")

    assert outcome.error is None
    told = outcome.model.requests[0]["tools"][0]["parameters"]
    assert told["required"] == ["_filter_2"]
    assert told["properties"] == {
        "_filter": {"type": "string"},
        "_filter_2": {"type": "string", "description": 'OData.\nIts full name is "$filter".'},
        "page_size_": {"type": "integer", "minimum": 1, "description": 'Its full name is "page[size]".'},
        "parameter": {"type": "array", "items": {}, "description": 'Its full name is "件数".'},
    }
    assert sent(outcome) == [SENT]
    assert written_back(outcome) == [WRITTEN]
    assert [each["arguments"] for each in outcome.variables["tool_results"]] == [OWN]
    assert log_of(outcome, "CALL query")["data"]["arguments"] == {**OWN, "page[size]": "2"}
    check_growth(outcome.model.requests)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "missing required argument '_filter_2'"),
        ({"_filter_2": "x", "page_size_": 0}, "parameter 'page_size_': value 0 is less than the minimum of 1"),
        (
            {"_filter_2": "x", "top": 1},
            "unknown argument 'top'; valid arguments are: _filter, _filter_2, page_size_, parameter",
        ),
        ({"_filter_2": "x", "$filter": "y"}, "argument '_filter_2' is there twice; give it once"),
    ],
    ids=str,
)
def test_errors_have_the_names_that_the_model_knows(arguments: Json, problem: str) -> None:
    outcome = queried(calls(("query", arguments)), ANSWER, extra_outputs="tool_results")

    assert outcome.tool_results() == [f"tool arguments validation error: {problem}"]
    assert sent(outcome) == []


def test_a_call_that_does_not_run_has_the_own_names_in_log_and_variables_too() -> None:
    outcome = queried(calls(("query", {"page_size_": 0})), ANSWER, extra_outputs="tool_results")

    assert log_of(outcome, "CALL query")["data"]["arguments"] == {"page[size]": 0}
    assert [each["arguments"] for each in outcome.variables["tool_results"]] == [{"page[size]": 0}]


def test_a_log_without_contents_shows_the_own_names_and_no_others() -> None:
    wanted = calls(("query", {"_filter_2": "x", "secret name": 1}))
    outcome = run([wanted, ANSWER], {}, {"tools": [QUERY]}, environment={"LOG_CONTENT": "off"})

    row = log_of(outcome, "CALL query")["data"]["arguments"]
    assert row == {"$filter": "1 character", "a name of 11 characters": "1 character"}


def test_own_names_are_taken_as_well() -> None:
    """They stand in descriptions, and in states of older versions."""
    assert sent(queried(calls(("query", {"$filter": "x"})), ANSWER)) == [{"$filter": "x", "$top": 5}]


def test_an_approval_has_the_own_names_and_the_state_what_the_model_wrote() -> None:
    outcome = queried(calls(("query", WRITTEN)), approval_required="query")
    again = queried(
        ANSWER,
        approval_required="query",
        state=outcome.variables["state"],
        approval="yes",
        extra_outputs="tool_results",
    )

    assert [each["arguments"] for each in outcome.variables["pending_calls"]] == [OWN]
    assert all(f"`{name}`" in outcome.variables["approval_question"] for name in OWN)
    assert "_filter" not in outcome.variables["approval_question"]
    assert recorded(outcome) == [WRITTEN]
    assert sent(again) == [SENT]
    assert written_back(again) == [WRITTEN]
    assert [each["arguments"] for each in again.variables["tool_results"]] == [OWN]
    assert recorded(again) == [WRITTEN]


def test_the_digest_of_an_approval_is_that_of_the_own_names() -> None:
    """A state of an older version, in which the model wrote the own names, has the same."""
    told = queried(calls(("query", {"_filter_2": "x"})), approval_required="query")
    own = queried(calls(("query", {"$filter": "x"})), approval_required="query")
    again = queried(ANSWER, approval_required="query", state=own.variables["state"], approval="yes")

    assert told.variables["pending_calls"] == own.variables["pending_calls"]
    assert sent(again) == [{"$filter": "x", "$top": 5}]


def test_a_result_is_handed_on_to_a_parameter_with_a_safe_name_also_after_an_approval() -> None:
    first = calls(("query", {"_filter_2": "x"}))
    referring = calls(("query", {"_filter_2": "result:r1", "parameter": '["result:r1"]'}))
    whole = {"$filter": LONG, "件数": [LONG], "$top": 5}

    outcome = queried(first, referring, ANSWER)
    assert sent(outcome)[1] == whole
    row = log_of(outcome, "CALL query")
    assert row["data"]["arguments"] == {"$filter": "x"}

    tools = [QUERY, tool("read", parameter("q"))]
    handlers = {"query": replies("done"), "read": replies(LONG)}
    params: Json = {"tools": tools, "approval_required": "query"}
    waiting = run([calls(("read", {"q": "x"})), referring], handlers, params)
    again = run([ANSWER], handlers, {**params, "state": waiting.variables["state"], "approval": "yes"})
    assert sent(again) == [whole]
    assert json.loads(written_back(again)[1]) == {"_filter_2": "result:r1", "parameter": '["result:r1"]'}


JAPANESE: Json = {
    "type": "object",
    "properties": {"結論": {"type": "string"}, "order id": {"type": "integer"}},
    "required": ["結論"],
    "additionalProperties": False,
}


@every_strategy
def test_an_answer_has_the_names_of_its_schema_and_the_model_safe_ones(strategy: str) -> None:
    blueprint, before = UP_TO_THE_ANSWER[strategy]
    wrong = submits({"parameter": "はい", "order_id": "x"})
    steps = [*before, submits({"order_id": 1}), wrong, submits({"parameter": "はい", "order_id": "7"})]

    outcome = run(steps, {"search": replies("found")}, {"answer_schema": json.dumps(JAPANESE)}, blueprint=blueprint)

    assert outcome.error is None
    (told,) = [each for each in outcome.model.requests[-1]["tools"] if each["name"] == "submit_answer"]
    assert list(told["parameters"]["properties"]) == ["parameter", "order_id"]
    assert told["parameters"]["required"] == ["parameter"]
    read = [message["content"] for message in outcome.model.prompts[-1] if message["role"] == "tool"]
    assert "parameter '(all)': \"parameter\" is a required property" in read[-2]
    assert "parameter 'order_id' must be an integer" in read[-1]
    assert outcome.variables["structured_output"] == {"結論": "はい", "order id": 7}


def test_an_answer_that_holds_a_secret_is_refused_by_the_name_that_the_model_knows() -> None:
    keyed = tool("search", parameter("q"), {**parameter("key", "secret-input"), "form": "form"})
    keyed["runtime_parameters"] = {"key": "s3cret-value-123"}
    steps = [submits({"parameter": "s3cret-value-123"}), submits({"parameter": "x"})]

    outcome = run(steps, {}, {"tools": [keyed], "answer_schema": json.dumps(JAPANESE)})

    assert "parameter 'parameter': it holds a secret value" in outcome.tool_results()[0]
    assert outcome.variables["structured_output"] == {"結論": "x"}


def test_names_that_all_apis_take_stay() -> None:
    outcome = run([submits({"city": "Köln"})], {}, {"answer_schema": json.dumps(CITY)})

    assert outcome.model.requests[0]["tools"][0]["parameters"] == CITY
