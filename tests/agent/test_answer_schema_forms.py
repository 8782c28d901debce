"""What may stand in ``answer_schema``: references into itself and patterns; the rest is refused."""

import json

import pytest
from dify_plugin.errors.model import InvokeBadRequestError

from tests.agent.test_answer_schema import STRATEGIES
from tests.support.host import Json
from tests.support.run import Outcome, run
from tests.support.wire import calls


def submitted(schema: object, *answers: Json, strategy: str = "function calling") -> Outcome:
    blueprint, before = STRATEGIES[strategy]
    steps = [*before, *(calls(("submit_answer", answer)) for answer in answers)]
    given = schema if isinstance(schema, str) else json.dumps(schema)
    return run(steps, {}, {"answer_schema": given}, blueprint=blueprint)


def nested(depth: int) -> str:
    return '{"type":"object","properties":{"a":' * depth + "{}" + "}}" * depth


UNUSABLE: dict[str, str] = {
    "no JSON": "{city: string}",
    "half of it": '{"type": "object"',
    "two of it": "{} {}",
    "a text": '"object"',
    "a list": '[{"type": "object"}]',
    "a truth value": "true",
    "a number": "7",
    "null": "null",
    "prose": "An object with a city.",
    "a schema of a text": '{"type": "string"}',
    "a schema of a list": '{"type": "array", "items": {}}',
    "no such type": '{"type": "objekt"}',
    "a type deeper down that is none": '{"type": "object", "properties": {"a": {"type": "strin"}}}',
    "properties that are none": '{"type": "object", "properties": 7}',
    "required that is not a list": '{"type": "object", "required": "city"}',
    "a remote reference": '{"$ref": "https://schemas.test/city.json"}',
    "a remote reference deeper down": '{"type": "object", "properties": {"a": {"$ref": "http://schemas.test/a"}}}',
    "a file": '{"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}',
    "a reference to nothing": '{"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}',
    "a reference to nothing on top": '{"$ref": "#/$defs/a"}',
    "a reference to a text": '{"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}',
    "a reference to itself on top": '{"$ref": "#"}',
    "references in a circle on top": '{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}',
    "references in a circle deeper down": (
        '{"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}'
    ),
    "a remote dynamic reference": '{"properties": {"a": {"$dynamicRef": "https://schemas.test/city.json"}}}',
    "a remote recursive reference": '{"properties": {"a": {"$recursiveRef": "https://schemas.test/city.json"}}}',
    "choices of which none is an object": '{"anyOf": [{"type": "string"}, {"type": "integer"}]}',
    "a reference that is not text": '{"type": "object", "properties": {"a": {"$ref": 7}}}',
    "NaN": '{"type": "object", "properties": {"a": {"maximum": NaN}}}',
    "infinity": '{"type": "object", "properties": {"a": {"maximum": 1e999}}}',
    "half a surrogate pair": '{"type": "object", "description": "\\ud800"}',
    "half a surrogate pair in a name": '{"type": "object", "properties": {"\\udc00": {}}}',
    "a dialect that is not text": '{"$schema": [], "type": "object"}',
    "too deep": nested(2_000),
}


@pytest.mark.parametrize("schema", UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_schema_is_one_clear_error_before_any_call(schema: str) -> None:
    outcome = submitted(schema)

    assert isinstance(outcome.error, InvokeBadRequestError)
    assert "answer_schema" in str(outcome.error)
    assert len(str(outcome.error)) < 1_000
    assert outcome.model.requests == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_refuses_it(strategy: str) -> None:
    blueprint, _ = STRATEGIES[strategy]
    outcome = run([], {}, {"answer_schema": '{"type": "string"}'}, blueprint=blueprint)

    assert isinstance(outcome.error, InvokeBadRequestError)


CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
REFERENCES: dict[str, Json] = {
    "on top": {"$ref": "#/$defs/city", "$defs": {"city": CITY}},
    "on top, over two steps": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/city"}, "city": CITY}},
    "deeper down": {**CITY, "properties": {"city": {"$ref": "#/$defs/name"}}, "$defs": {"name": {"type": "string"}}},
    "under a name to be escaped": {
        **CITY,
        "properties": {"city": {"$ref": "#/$defs/a~1b~0"}},
        "$defs": {"a/b~": {"type": "string"}},
    },
    "within a list of choices": {"type": "object", "allOf": [{"$ref": "#/$defs/city"}], "$defs": {"city": CITY}},
    "into a list": {
        "type": "object",
        "properties": {"old": {"anyOf": [{"type": "string"}, {}]}, "city": {"$ref": "#/properties/old/anyOf/0"}},
    },
    "under a name that is encoded": {
        **CITY,
        "properties": {"city": {"$ref": "#/$defs/A%20%E6%97%A5"}},
        "$defs": {"A 日": {"type": "string"}},
    },
    "under the old name": {"$ref": "#/definitions/city", "definitions": {"city": CITY}},
}


@pytest.mark.parametrize("schema", REFERENCES.values(), ids=REFERENCES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_references_into_the_schema_itself_are_followed(strategy: str, schema: Json) -> None:
    """The first answer does not fit, and the model reads why."""
    outcome = submitted(schema, {"city": ["no text"]}, {"city": "Bonn"}, strategy=strategy)

    assert outcome.variables["structured_output"] == {"city": "Bonn"}
    assert "city" in outcome.model.prompts[-1][-1]["content"]


@pytest.mark.parametrize("schema", REFERENCES.values(), ids=REFERENCES)
def test_the_offered_schema_has_its_type_at_the_top_and_no_reference(schema: Json) -> None:
    outcome = submitted(schema, {"city": "Bonn"})

    (tool,) = outcome.model.requests[0]["tools"]
    assert tool["parameters"]["type"] == "object"
    assert "$ref" not in tool["parameters"]


def test_a_schema_that_refers_to_itself_is_followed_as_deep_as_the_answer_is() -> None:
    node = {"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["n"]}
    good = {"n": 1, "next": {"n": 2, "next": {"n": 3}}}

    outcome = submitted(node, {"n": 1, "next": {"n": 2, "next": {}}}, good)

    assert outcome.variables["structured_output"] == good


def test_a_schema_without_a_type_is_one_of_an_object() -> None:
    assert submitted({"properties": {"a": {}}}, {"a": 1}).variables["structured_output"] == {"a": 1}


@pytest.mark.parametrize("kind", [["object"], ["object", "null"]])
def test_an_object_may_stand_in_a_list_of_types(kind: list[str]) -> None:
    outcome = submitted({**CITY, "type": kind}, {"city": "Bonn"})

    assert outcome.variables["structured_output"] == {"city": "Bonn"}
    assert outcome.model.requests[0]["tools"][0]["parameters"] == CITY


def test_multiples_are_checked_in_decimals() -> None:
    schema = {"type": "object", "properties": {"price": {"type": "number", "multipleOf": 0.01}}}

    outcome = submitted(schema, {"price": 19.995}, {"price": 19.99})

    assert outcome.variables["structured_output"] == {"price": 19.99}


PATTERNS: dict[str, Json] = {
    "of a value": {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
    "of names": {"patternProperties": {"^(a+)+$": {"type": "integer"}}, "additionalProperties": False},
    "behind a reference": {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"pattern": "^(a+)+$"}}},
    "of names in a part": {"allOf": [{"patternProperties": {"^(a+)+$": {}}}], "unevaluatedProperties": False},
    "in another dialect": {
        "properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}}
    },
    "behind a reference into a list of values": {
        "properties": {"a": {"$ref": "#/$defs/x/enum/0"}},
        "$defs": {"x": {"enum": [{"pattern": "^(a+)+$"}]}},
    },
}


@pytest.mark.parametrize("schema", PATTERNS.values(), ids=PATTERNS)
def test_a_pattern_is_checked(schema: Json) -> None:
    """Each could hold the process up; the model reads why its first answer does not fit."""
    is_of_names = "patternProperties" in json.dumps(schema)
    wrong: Json = {"b": 1} if is_of_names else {"a": "a" * 60 + "!"}
    right: Json = {"aa": 1} if is_of_names else {"a": "aa"}

    outcome = submitted({"type": "object", **schema}, wrong, right)

    assert outcome.variables["structured_output"] == right
    assert "validation error" in outcome.model.prompts[-1][-1]["content"]


def test_a_pattern_that_is_none_is_one_clear_error() -> None:
    outcome = submitted({"type": "object", "properties": {"a": {"pattern": "["}}})

    assert "answer_schema': the pattern '[' is not a regular expression" in str(outcome.error)


def test_an_error_does_not_repeat_a_whole_schema() -> None:
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "secret" * 1_000}}})

    assert len(str(submitted(schema).error)) < 500
