"""Values brought into the types that a schema asks for; inside alternatives too, chosen by what then fits."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.node.schema import Fitter, Unchecked, check_of
from tests.unit.generators import json_values

NUMBERS = {"type": "array", "items": {"type": "integer"}}
NULL = {"type": "null"}
POINT = {"type": "object", "properties": {"x": {"type": "number"}, "note": {"type": "string"}}, "required": ["x"]}
DEFS = {"$defs": {"point": POINT, "numbers": NUMBERS}}


def fitted(schema: dict[str, Any], value: object, *, takes_texts: bool = True) -> object:
    return Fitter(check_of(schema), takes_texts).fit(value)


UNIONS: dict[str, tuple[dict[str, Any], object, object]] = {
    "text of an array or null": ({"anyOf": [NUMBERS, NULL]}, '["1", 2]', [1, 2]),
    "text of null": ({"anyOf": [NUMBERS, NULL]}, "null", None),
    "null itself": ({"anyOf": [NUMBERS, NULL]}, None, None),
    "a list of types": ({"type": ["array", "null"]}, "[1]", [1]),
    "a list of types and a word": ({"type": ["boolean", "null"]}, "True", True),
    "text where text will do": ({"type": ["array", "string"]}, "[1]", "[1]"),
    "text where that text will not do": ({"type": ["string", "integer"], "enum": [1, 2, "auto"]}, "2", 2),
    "an option or a number": ({"anyOf": [{"enum": ["auto"]}, {"type": "integer"}]}, "7", 7),
    "the option": ({"anyOf": [{"enum": ["auto"]}, {"type": "integer"}]}, "auto", "auto"),
    "oneOf": ({"oneOf": [POINT, NUMBERS]}, '{"x": "1.5"}', {"x": 1.5}),
    "oneOf that fits twice": ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "7", "7"),
    "allOf": ({"allOf": [{"type": "array"}, {"items": {"type": "integer"}}]}, '["1"]', [1]),
    "a reference": ({"$ref": "#/$defs/point", **DEFS}, '{"x": "1"}', {"x": 1}),
    "a reference or null": ({"anyOf": [{"$ref": "#/$defs/numbers"}, NULL], **DEFS}, '["3"]', [3]),
    "deep inside": (
        {"properties": {"a": {"type": "array", "items": {"anyOf": [POINT, NULL]}}}},
        {"a": [{"x": "1"}, None, '{"x": 2}']},
        {"a": [{"x": 1}, None, {"x": 2}]},
    ),
    "an object for text or null": ({"type": ["string", "null"]}, {"a": None}, '{"a": null}'),
    "an object for text in a choice": ({"anyOf": [{"type": "string"}, NULL]}, {"a": 1}, '{"a": 1}'),
    "an object that fits no object": ({"anyOf": [POINT, {"type": "string"}]}, {"y": 1}, {"y": 1}),
    "a number above its bound": ({"anyOf": [{"type": "integer", "maximum": 5}, {"type": "string"}]}, 7, 7),
    "an object for text inside": ({"properties": {"a": {"type": "string"}}}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "other names": ({"additionalProperties": {"type": "integer"}}, {"a": "1"}, {"a": 1}),
    "one by one": ({"prefixItems": [{"type": "integer"}], "items": {"type": "boolean"}}, ["1", "true"], [1, True]),
    "a constant": ({"const": "true"}, True, "true"),
}


@pytest.mark.parametrize(("schema", "value", "expected"), UNIONS.values(), ids=UNIONS)
def test_a_value_is_converted_inside_alternatives_too(schema: dict[str, Any], value: object, expected: object) -> None:
    result = fitted(schema, value)

    assert result == expected
    assert repr(result) == repr(expected).replace("1.0", "1")


def test_a_text_of_a_whole_value_is_for_tools_only() -> None:
    for value in ({"a": 1}, [1], True):
        assert fitted({"type": "string"}, value, takes_texts=False) == value


NULLS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "optional": (POINT, {"x": 1, "note": None}, {"x": 1}),
    "required": (POINT, {"x": None}, {"x": None}),
    "unknown": (POINT, {"x": 1, "z": None}, {"x": 1, "z": None}),
    "taken": ({"properties": {"a": {"type": ["string", "null"]}}}, {"a": None}, {"a": None}),
    "deeper": ({"properties": {"p": POINT}}, {"p": {"x": 1, "note": None}}, {"p": {"x": 1}}),
    "in a list": ({"properties": {"l": {"items": POINT}}}, {"l": [{"x": 1, "note": None}]}, {"l": [{"x": 1}]}),
    "in a choice": ({"anyOf": [NULL, POINT]}, {"x": "1", "note": None}, {"x": 1}),
}


@pytest.mark.parametrize(("schema", "value", "expected"), NULLS.values(), ids=NULLS)
def test_null_for_a_nested_optional_is_left_out(
    schema: dict[str, Any], value: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert fitted(schema, value) == expected


SCHEMAS = [schema for schema, _, _ in [*UNIONS.values(), *NULLS.values()]]


@given(st.sampled_from(SCHEMAS), json_values | st.sampled_from(['["1"]', "7", "null", {"x": "1", "note": None}]))
def test_a_value_that_fits_stays_unchanged(schema: dict[str, Any], value: object) -> None:
    check = check_of(schema)

    if check.is_satisfied_by(value):
        assert check.is_satisfied_by(Fitter(check, takes_texts=True).fit(value))


@pytest.mark.heavy
def test_a_check_of_nested_alternatives_is_given_up() -> None:
    """Each level of the value has two alternatives that look at all of the next."""
    branch = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}
    check = check_of({"$ref": "#/$defs/a", "$defs": {"a": {"oneOf": [branch, {**branch, "required": ["y"]}]}}})
    value: dict[str, Any] = {"a": 1}
    for _ in range(50):
        value = {"a": value}

    with pytest.raises(Unchecked):
        Fitter(check, takes_texts=True).fit(value)


@pytest.mark.heavy
def test_a_long_array_is_fitted_and_an_endless_one_given_up() -> None:
    check = check_of(NUMBERS)

    assert Fitter(check, takes_texts=True).fit(["1"] * 9_000) == [1] * 9_000
    with pytest.raises(Unchecked):
        Fitter(check, takes_texts=True).fit(["1"] * 1_000_000)
