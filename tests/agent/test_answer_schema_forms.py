"""What may stand in ``answer_schema``: references into itself and patterns; the rest is refused."""

import json

import pytest
from dify_plugin.errors.model import InvokeBadRequestError

from tests.agent.test_answer_schema import STRATEGIES
from tests.support.host import Json
from tests.support.run import Outcome, run
from tests.support.wire import calls


def submitted(schema: object, *answers: Json) -> Outcome:
    steps = [calls(("submit_answer", answer)) for answer in answers]
    given = schema if isinstance(schema, str) else json.dumps(schema)
    return run(steps, {}, {"answer_schema": given})


UNUSABLE: dict[str, str] = {
    "no JSON": "{city: string}",
    "two of it": "{} {}",
    "a list": '[{"type": "object"}]',
    "a number": "7",
    "prose": "An object with a city.",
    "a schema of a text": '{"type": "string"}',
    "a type deeper down that is none": '{"type": "object", "properties": {"a": {"type": "strin"}}}',
    "a remote reference": '{"$ref": "https://schemas.test/city.json"}',
    "a file": '{"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}',
    "a reference to nothing": '{"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}',
    "a reference to a text": '{"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}',
    "a reference to itself on top": '{"$ref": "#"}',
    "references in a circle on top": '{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}',
    "choices of which none is an object": '{"anyOf": [{"type": "string"}, {"type": "integer"}]}',
    "a reference that is not text": '{"type": "object", "properties": {"a": {"$ref": 7}}}',
    "NaN": '{"type": "object", "properties": {"a": {"maximum": NaN}}}',
    "infinity": '{"type": "object", "properties": {"a": {"maximum": 1e999}}}',
    "half a surrogate pair": '{"type": "object", "description": "\\ud800"}',
    "a pattern that is none": '{"type": "object", "properties": {"a": {"pattern": "["}}}',
    "too deep": '{"type":"object","properties":{"a":' * 2_000 + "{}" + "}}" * 2_000,
    "long": json.dumps({"type": "object", "properties": {"a": {"type": "secret" * 1_000}}}),
}


@pytest.mark.parametrize("schema", UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_schema_is_one_clear_error_before_any_call(schema: str) -> None:
    outcome = submitted(schema)

    assert isinstance(outcome.error, InvokeBadRequestError)
    assert "answer_schema" in str(outcome.error)
    assert len(str(outcome.error)) < 500
    assert outcome.model.requests == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_refuses_it(strategy: str) -> None:
    blueprint, _ = STRATEGIES[strategy]
    outcome = run([], {}, {"answer_schema": '{"type": "string"}'}, blueprint=blueprint)

    assert isinstance(outcome.error, InvokeBadRequestError)


CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
REFERENCES: dict[str, Json] = {
    "on top, over two steps": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/city"}, "city": CITY}},
    "deeper down": {
        **CITY,
        "properties": {"city": {"$ref": "#/$defs/A%20%E6%97%A5~1"}},
        "$defs": {"A 日/": {"type": "string"}},
    },
    "within a list of choices": {"type": "object", "allOf": [{"$ref": "#/$defs/city"}], "$defs": {"city": CITY}},
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


def test_a_schema_that_refers_to_itself_is_followed_as_deep_as_the_answer_is() -> None:
    node = {"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["n"]}
    good = {"n": 1, "next": {"n": 2, "next": {"n": 3}}}

    outcome = submitted(node, {"n": 1, "next": {"n": 2, "next": {}}}, good)

    assert outcome.variables["structured_output"] == good


@pytest.mark.parametrize("kind", [{}, {"type": ["object"]}, {"type": ["object", "null"]}], ids=str)
def test_an_object_may_be_one_type_of_several_or_not_named(kind: Json) -> None:
    outcome = submitted({**CITY, **kind}, {"city": "Bonn"})

    assert outcome.variables["structured_output"] == {"city": "Bonn"}
    assert outcome.model.requests[0]["tools"][0]["parameters"] == CITY


PATTERNS: dict[str, Json] = {
    "of a value": {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
    "of names": {"patternProperties": {"^(a+)+$": {"type": "integer"}}, "additionalProperties": False},
    "behind a reference": {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"pattern": "^(a+)+$"}}},
}


@pytest.mark.parametrize("schema", PATTERNS.values(), ids=PATTERNS)
def test_a_pattern_is_checked(schema: Json) -> None:
    """Each could hold the process up; the model reads why its first answer does not fit."""
    is_of_names = "patternProperties" in schema
    wrong: Json = {"b": 1} if is_of_names else {"a": "a" * 60 + "!"}
    right: Json = {"aa": 1} if is_of_names else {"a": "aa"}

    outcome = submitted({"type": "object", **schema}, wrong, right)

    assert outcome.variables["structured_output"] == right
    assert "validation error" in outcome.model.prompts[-1][-1]["content"]
