"""``structured_output`` satisfies its schema or is null: secrets, large numbers, and citations."""

import json
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from tests.support.host import Json
from tests.support.plans import UP_TO_THE_ANSWER, every_strategy
from tests.support.run import Outcome, run
from tests.support.scenes import results_in, submits
from tests.support.wire import calls, parameter, replies, tool

SECRET = "s3cret-value-1234"
TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
LARGE = 2**53 + 1


def object_of(**properties: Any) -> Json:  # noqa: ANN401 - schemas
    return {"type": "object", "properties": properties}


def answered(schema: Json, *answers: Json) -> Outcome:
    outcome = run([submits(answer) for answer in answers], params={"answer_schema": schema})

    value = outcome.variables["structured_output"]
    assert value is None or Draft202012Validator(schema).is_valid(value)
    return outcome


# A secret in an answer.


def with_secret(*answers: Json, strategy: str = "function calling", schema: Json | None = None) -> Outcome:
    blueprint, before = UP_TO_THE_ANSWER[strategy]
    described = tool(
        "search", parameter("q"), parameter("key", "secret-input", form="form"), runtime_parameters={"key": SECRET}
    )
    return run(
        [*before, *(submits(answer) for answer in answers)],
        {"search": replies("found")},
        {"answer_schema": schema or object_of(city=TEXT, n={}), "tools": [described]},
        blueprint=blueprint,
    )


@every_strategy
def test_an_answer_that_holds_a_secret_is_refused_and_may_be_corrected(strategy: str) -> None:
    outcome = with_secret({"city": f"It is {SECRET}."}, {"city": "Bonn"}, strategy=strategy)

    assert outcome.variables["structured_output"] == {"city": "Bonn"}
    assert json.loads(outcome.text) == {"city": "Bonn"}
    (refused,) = results_in(outcome.model.prompts[-1])[-1:]
    assert refused.startswith("tool arguments validation error: ")
    assert "parameter 'city': it holds a secret value" in refused
    assert SECRET not in json.dumps(outcome.messages)


@pytest.mark.parametrize(
    "answer", [{"n": [1, {"a": SECRET}]}, {"n": {SECRET: 1}}, {"n": json.dumps({"a": SECRET})}], ids=str
)
def test_it_is_refused_wherever_the_secret_stands_and_counts_as_a_correction(answer: Json) -> None:
    outcome = with_secret(answer, answer, answer)

    assert outcome.variables["structured_output"] is None
    assert outcome.stop_reason == "answer_invalid"
    assert SECRET not in json.dumps(outcome.messages)
    assert all(SECRET not in result for result in results_in(outcome.model.prompts[-1]))


def test_what_the_model_gave_to_a_secret_parameter_is_refused_too() -> None:
    offered = tool("login", parameter("pin", "secret-input"))
    login = calls(("login", {"pin": "letme-in-123"}))

    outcome = run(
        [login, submits({"city": "letme-in-123"}), submits({"city": "Bonn"})],
        {"login": replies("in")},
        {"answer_schema": object_of(city=TEXT), "tools": [offered]},
    )

    assert outcome.variables["structured_output"] == {"city": "Bonn"}


# Numbers that the host rounds.


@pytest.mark.parametrize(
    ("schema", "answer", "value", "rounded"),
    [
        (object_of(id={"type": ["string", "integer"]}), {"id": LARGE}, {"id": str(LARGE)}, 0),
        (object_of(id=WHOLE), {"id": LARGE}, {"id": LARGE}, 1),
        (object_of(id=WHOLE), {"id": 2**53}, {"id": 2**53}, 0),
        (
            object_of(rows={"type": "array", "items": object_of(a=WHOLE, b={"type": ["integer", "string"]})}),
            {"rows": [{"a": LARGE, "b": LARGE}] * 200},
            {"rows": [{"a": LARGE, "b": LARGE}] * 200},
            400,
        ),
    ],
    ids=["text or integer", "integer", "exact", "rows"],
)
def test_large_integers_are_text_if_the_schema_allows_it_for_all_and_stay_numbers_otherwise(
    schema: Json, answer: Json, value: Json, rounded: int
) -> None:
    outcome = answered(schema, answer)

    assert outcome.variables["structured_output"] == value
    assert str(LARGE) in outcome.text or answer == {"id": 2**53}
    notes = [note for note in outcome.notes if "2^53" in note]
    assert [note.partition(" rounds ")[2].split()[0] for note in notes] == ([str(rounded)] if rounded else [])


def test_a_number_that_no_host_can_read_makes_the_variable_null() -> None:
    outcome = answered(object_of(id=WHOLE), {"id": 10**400})

    assert outcome.variables["structured_output"] is None
    assert outcome.stop_reason == "answered"
    assert json.loads(outcome.text) == {"id": 10**400}
    assert any("structured_output" in note for note in outcome.notes)


# Citations.


def test_a_number_in_the_brackets_of_a_list_cites_nothing() -> None:
    sources = [{"title": name, "content": name} for name in "abc"]

    outcome = run(
        [submits({"rows": [1], "text": "It is so [2].", "parts": ["[", "3]"]})],
        params={"answer_schema": object_of(), "context": sources},
    )

    assert [source["number"] for source in outcome.variables["sources"] if source["cited"]] == [2]
    assert [used["number"] for used in outcome.last_json["decision_summary"]["sources_used"]] == [2]
