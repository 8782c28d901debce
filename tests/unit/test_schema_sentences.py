"""Sentences about arguments: JSON's words, the place, and the alternative that came closest."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from internal.node.schema import check_of, quoted, sentences
from tests.unit.generators import json_values, small_schemas, small_values

POINT = {"type": "object", "properties": {"x": {"type": "number"}, "kind": {"const": "point"}}, "required": ["x"]}
LINE = {"type": "object", "properties": {"kind": {"const": "line"}, "to": POINT}, "required": ["kind", "to"]}


def said(schema: dict[str, Any], value: object) -> list[str]:
    return sentences(check_of(schema), value, "p")


SENTENCES: dict[str, tuple[dict[str, Any], object, str]] = {
    "type": ({"type": "number"}, None, "parameter 'p' must be a number, got null"),
    "types": ({"type": ["array", "null"]}, True, "parameter 'p' must be null or an array, got a boolean"),
    "enum": ({"enum": ["a", None, True]}, False, "parameter 'p' value false not in options [\"a\", null, true]"),
    "enum before type": ({"enum": ["a"], "type": "string"}, 3, "parameter 'p' value 3 not in options [\"a\"]"),
    "enum after type": ({"type": "string", "enum": ["a"]}, 3, "parameter 'p' value 3 not in options [\"a\"]"),
    "const": ({"const": None}, "None", "parameter 'p' value \"None\" must be null"),
    "minimum": ({"minimum": 1}, 0, "parameter 'p' value 0 is below the minimum 1"),
    "maximum": ({"maximum": 1}, 2.5, "parameter 'p' value 2.5 is above the maximum 1"),
    "exclusive": ({"exclusiveMinimum": 1}, 1, "parameter 'p' value 1 must be above 1"),
    "multiple": ({"multipleOf": 0.01}, 1.005, "parameter 'p' value 1.005 is not a multiple of 0.01"),
    "pattern": ({"pattern": "^a"}, "b", 'parameter \'p\' value "b" does not match the pattern "^a"'),
    "length": ({"minLength": 2}, "a", "parameter 'p' has 1 characters and must have at least 2"),
    "items": ({"maxItems": 1}, [1, 2], "parameter 'p' has 2 items and must have at most 1"),
    "equal items": ({"uniqueItems": True}, [1, 1], "parameter 'p' must not have equal items"),
    "required": (POINT, {}, "parameter 'p': 'x' is a required property"),
    "more": (
        {"additionalProperties": False},
        {"a": None},
        "parameter 'p': Additional properties are not allowed",
    ),
    "more than those named": (
        {"properties": {"b": {}}, "additionalProperties": False},
        {"a": None},
        "parameter 'p': Additional properties are not allowed ('a' was unexpected)",
    ),
    "never": ({"properties": {"a": False}}, {"a": 1}, "parameter 'p.a' must not hold 1"),
    "not": ({"not": {"type": "null"}}, None, 'parameter \'p\' must not satisfy {"type": "null"}'),
    "contains": ({"contains": {"const": None}}, [], "parameter 'p' does not satisfy contains"),
    "a name": (
        {"propertyNames": {"maxLength": 1}},
        {"ab": 1},
        "parameter 'p': the name \"ab\" has 2 characters and must have at most 1",
    ),
    "names that are not allowed": (
        {"unevaluatedProperties": False},
        {"a": 1},
        "parameter 'p': Additional properties are not allowed ('a' was unexpected)",
    ),
    "required beside another": (
        {"dependentRequired": {"a": ["b"]}},
        {"a": 1},
        "parameter 'p': 'b' is a required property",
    ),
    "a condition": (
        {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}},
        {"a": 1},
        "parameter 'p': 'b' is a required property",
    ),
    "more items of an old dialect": (
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}], "additionalItems": {"type": "string"}},
        [1, 2],
        "parameter 'p[1]' must be a string, got a number",
    ),
    "a recursive reference": (
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "properties": {"in": {"$recursiveRef": "#"}, "n": {"type": "integer"}},
        },
        {"in": {"n": "x"}},
        "parameter 'p.in.n' must be an integer, got a string",
    ),
    "behind a reference": (
        {"$ref": "#/$defs/n", "$defs": {"n": {"allOf": [{"type": "number"}]}}},
        "x",
        "parameter 'p' must be a number, got a string",
    ),
    "a name by a pattern": (
        {"patternProperties": {"^x-": {"type": "number"}}},
        {"x-a": "1"},
        "parameter 'p.x-a' must be a number, got a string",
    ),
    "another name": (
        {"additionalProperties": {"type": "number"}},
        {"a": "1"},
        "parameter 'p.a' must be a number, got a string",
    ),
    "one by one": (
        {"prefixItems": [{"type": "number"}], "items": False},
        ["x"],
        "parameter 'p[0]' must be a number, got a string",
    ),
    "for one more property": (
        {"dependentSchemas": {"a": {"required": ["b"]}}},
        {"a": 1},
        "parameter 'p': 'b' is a required property",
    ),
    "a place": (
        {"items": {"properties": {"a": {"type": "null"}}}},
        [{}, {"a": "x"}],
        "parameter 'p[1].a' must be null, got a string",
    ),
    "types in a choice": (
        {"anyOf": [{"type": "string"}, {"type": "array"}, {"type": "null"}]},
        7,
        "parameter 'p' must be a string, an array or null, got a number",
    ),
    "the branch of its type": (
        {"anyOf": [{"type": "null"}, POINT]},
        {"x": None},
        "parameter 'p.x' must be a number, got null (the closest of 2 alternatives)",
    ),
    "the branch of its kind": (
        {"oneOf": [POINT, LINE]},
        {"kind": "line", "to": {"x": "1"}},
        "parameter 'p.to.x' must be a number, got a string (the closest of 2 alternatives)",
    ),
    "a choice in a choice": (
        {"anyOf": [{"type": "null"}, {"type": "array", "items": {"anyOf": [POINT, LINE, {"type": "null"}]}}]},
        [None, {"kind": "point", "x": True}],
        "parameter 'p[1].x' must be a number, got a boolean (the closest of 3 alternatives)",
    ),
    "more than one": (
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        7,
        "parameter 'p' fits more than one of the alternatives, and only one may fit",
    ),
}


@pytest.mark.parametrize(("schema", "value", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_errors_use_the_terms_of_json(schema: dict[str, Any], value: object, sentence: str) -> None:
    assert said(schema, value) == [sentence]


def test_a_place_has_one_sentence_and_three_places_are_enough() -> None:
    assert len(said({"minLength": 5, "enum": ["aaaaa"], "const": "b"}, "a")) == 1
    assert len(said({"items": {"type": "null"}}, [1] * 4_000)) == 3


def test_a_value_too_large_for_the_library_to_explain_is_wrong_as_a_whole() -> None:
    """Its errors hold copies of the value, and those of nested alternatives double with each level."""
    branch = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}
    choice = {"$ref": "#/$defs/a", "$defs": {"a": {"oneOf": [branch, {**branch, "required": ["y"]}]}}}
    deep: dict[str, Any] = {"a": 1}
    for _ in range(30):
        deep = {"a": deep}

    for schema, value in ((choice, deep), ({"items": {"type": "null"}}, [1] * 50_000)):
        assert said(schema, value) == ["parameter 'p' does not satisfy the schema"]


def test_all_arguments_together_have_a_name_too() -> None:
    assert sentences(check_of(POINT), {}, "") == ["parameter '(all)': 'x' is a required property"]
    assert sentences(check_of(POINT), {"x": None}, "") == ["parameter 'x' must be a number, got null"]


@pytest.mark.parametrize("value", ["x" * 10_000, ["x" * 10_000], {"x" * 10_000: 1}, list(range(10_000))], ids=type)
def test_a_long_value_is_quoted_in_part(value: object) -> None:
    (sentence,) = said({"const": 1}, value)

    assert len(sentence) < 300
    assert len(quoted(value)) == 201


@given(json_values, st.sampled_from([schema for schema, _, _ in SENTENCES.values()]))
def test_python_is_never_spoken(value: object, schema: dict[str, Any]) -> None:
    for sentence in said(schema, value):
        rest = sentence
        for text in json.dumps(value, ensure_ascii=False), quoted(value):
            rest = rest.replace(text, "")
        if not isinstance(value, dict | list | str):
            assert not {"None", "True", "False"} & set(rest.replace("'", " ").split())


@given(small_schemas, small_values)
def test_there_is_a_sentence_exactly_where_the_value_does_not_satisfy_the_schema(
    schema: dict[str, Any], value: object
) -> None:
    assert bool(said(schema, value)) is not Draft202012Validator(schema).is_valid(value)


CLOSED = {"properties": {"a": {"type": "integer"}}, "patternProperties": {"^b": {"type": "integer"}}}
FIRST = [{"type": "integer"}]


@pytest.mark.parametrize(
    ("schema", "value", "place"),
    [
        ({**CLOSED, "additionalProperties": False}, {"a": "x"}, "p.a"),
        ({**CLOSED, "additionalProperties": False}, {"b1": "x"}, "p.b1"),
        ({**CLOSED, "additionalProperties": {"type": "string"}}, {"a": "x", "c": "x"}, "p.a"),
        ({"prefixItems": FIRST, "items": False}, ["x"], "p[0]"),
        ({"prefixItems": FIRST, "items": {"type": "string"}}, ["x", "x"], "p[0]"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "items": FIRST, "additionalItems": False},
            ["x"],
            "p[0]",
        ),
    ],
)
def test_what_is_wrong_with_a_part_is_said_of_that_part_alone(
    schema: dict[str, Any], value: object, place: str
) -> None:
    """A property that is of a wrong type is not also one that is not allowed."""
    assert said(schema, value) == [f"parameter '{place}' must be an integer, got a string"]
