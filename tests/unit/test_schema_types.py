"""Which types can satisfy a schema: what is called impossible is."""

from typing import Any

import pytest
from hypothesis import given
from jsonschema_rs import Draft202012Validator

from internal.schema.check import Steps, check_of
from internal.schema.types import ALL_TYPES, possible_types, type_of
from tests.unit.generators import small_schemas, small_values

TEXT, NUMBER = {"type": "string"}, {"type": "number"}


def possible(schema: dict[str, Any]) -> frozenset[str]:
    return possible_types(schema, check_of(schema), Steps())


IMPOSSIBLE: dict[str, dict[str, Any]] = {
    "not": {"not": {}},
    "not true": {"not": True},
    "enum of another type": {"type": "string", "enum": [1, 2]},
    "const of another type": {"type": "integer", "const": "1"},
    "enum out of bounds": {"type": "integer", "enum": [1, 2], "minimum": 3},
    "enum and const": {"enum": ["a"], "const": "b"},
    "bounds": {"type": "number", "minimum": 2, "maximum": 1},
    "exclusive bounds": {"type": "number", "exclusiveMinimum": 1, "maximum": 1},
    "no whole number between": {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
    "no whole number in": {"type": "integer", "minimum": 1.2, "maximum": 1.8},
    "lengths": {"type": "string", "minLength": 3, "maxLength": 2},
    "sizes": {"type": "array", "minItems": 3, "maxItems": 2},
    "items": {"type": "array", "minItems": 1, "items": False},
    "properties": {"type": "object", "minProperties": 2, "maxProperties": 1},
    "too many required": {"type": "object", "required": ["a", "b"], "maxProperties": 1},
    "required and forbidden": {"type": "object", "required": ["a"], "properties": {}, "additionalProperties": False},
    "required and impossible": {"type": "object", "required": ["a"], "properties": {"a": {**TEXT, "enum": [1]}}},
    "allOf": {"allOf": [TEXT, NUMBER]},
    "beside allOf": {**TEXT, "allOf": [NUMBER]},
    "anyOf": {"anyOf": [{**TEXT, "not": TEXT}, {**NUMBER, "enum": []}]},
    "beside oneOf": {"type": "boolean", "oneOf": [TEXT, NUMBER]},
    "a reference": {**TEXT, "$ref": "#/$defs/n", "$defs": {"n": NUMBER}},
    "a reference inside": {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {**NUMBER, "const": "x"}},
    },
}


@pytest.mark.parametrize("schema", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_contradictions_leave_no_type(schema: dict[str, Any]) -> None:
    assert possible(schema) == frozenset()


POSSIBLE: dict[str, tuple[dict[str, Any], set[str]]] = {
    "anything": ({}, set(ALL_TYPES)),
    "number": (NUMBER, {"integer", "fraction"}),
    "bounds of other types": ({"type": ["string", "null"], "minimum": 2, "maximum": 1}, {"string", "null"}),
    "one of two types": ({"type": ["string", "number"], "minLength": 2, "maxLength": 1}, {"integer", "fraction"}),
    "bounds beyond the floats": ({**NUMBER, "minimum": 10**400, "maximum": 10**400}, {"integer"}),
    "one whole number": ({**NUMBER, "minimum": 2, "maximum": 2}, {"integer"}),
    "no items at all": ({"type": "array", "items": False}, {"array"}),
    "optional and impossible": ({"type": "object", "properties": {"a": False}}, {"object"}),
    "by pattern": (
        {"type": "object", "required": ["a"], "patternProperties": {"a": {}}, "additionalProperties": False},
        {"object"},
    ),
    "itself inside": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}}},
        {"object"},
    ),
    "beside a reference in an old dialect": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {**TEXT, "$ref": "#/definitions/n"}},
            "required": ["a"],
            "type": "object",
            "definitions": {"n": NUMBER},
        },
        {"object"},
    ),
}


@pytest.mark.parametrize(("schema", "types"), POSSIBLE.values(), ids=POSSIBLE)
def test_a_possible_schema_is_not_called_impossible(schema: dict[str, Any], types: set[str]) -> None:
    assert possible(schema) == types


@given(small_schemas, small_values)
def test_a_value_that_satisfies_a_schema_is_of_a_possible_type(schema: dict[str, Any], value: object) -> None:
    if Draft202012Validator(schema).is_valid(value):
        assert type_of(value) in possible(schema)
