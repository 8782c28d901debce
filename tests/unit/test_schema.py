"""The schemas of MCP tools and answers: which are usable, which values fit, what is converted, and what is said."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from internal.node.schema import Problem, SchemaUnusable, Unchecked, check_of, fitted, quoted
from tests.support.generators import json_values, small_schemas, small_values

OLD = "http://json-schema.org/draft-07/schema#"
NULL = {"type": "null"}
NUMBERS = {"type": "array", "items": {"type": "integer"}}


def fits(schema: dict[str, Any], value: object) -> bool:
    return check_of(schema).accepts(value)


def converted(schema: dict[str, Any], value: object, *, takes_texts: bool = True) -> object:
    return fitted(check_of(schema), value, "p", takes_texts=takes_texts)[0]


def said(schema: dict[str, Any], value: object, name: str = "p") -> list[str]:
    return fitted(check_of(schema), value, name, takes_texts=False)[1]


# Which schemas are usable.


def nested(levels: int, around: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {"a": {}}}
    for _ in range(levels):
        schema = around(schema)
    return schema


DOUBLING = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
CHAIN = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(2_000)}
UNUSABLE: dict[str, tuple[dict[str, Any], str]] = {
    "a remote reference": ({"items": {"$ref": "https://host.test/a"}}, "leads out of it"),
    "a dynamic reference to another document": (
        {"items": {"$dynamicRef": "https://host.test/a#b"}},
        "'https://host.test/a#b' leads out of it",
    ),
    "references to each other": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}},
        "leads back to itself",
    ),
    "a reference to itself, within": (
        {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"title": "A", "$ref": "#/$defs/a"}}},
        "leads back to itself",
    ),
    "a reference to the whole": ({"$ref": "#"}, "leads back to itself"),
    "an anchor": ({"$ref": "#foo", "$anchor": "foo"}, "names an anchor"),
    "a reference to nothing": ({"items": {"$ref": "#/$defs/b"}}, "leads nowhere"),
    "a reference beyond a list": ({"anyOf": [{}], "items": {"$ref": "#/anyOf/-1"}}, "leads nowhere"),
    "a reference to a text": ({"title": "A", "items": {"$ref": "#/title"}}, "does not point to a schema"),
    "levels without measure": (nested(5_000, lambda inner: {"items": inner}), "nested too deeply"),
    "keywords that look at a value again and again": (
        nested(20, lambda inner: {"allOf": [inner], "unevaluatedProperties": False}),
        "too large",
    ),
    "references that double": ({"$ref": "#/$defs/d0", "$defs": {**DOUBLING, "d40": {}}}, "too large"),
    "a long way of references": ({"$ref": "#/$defs/d0", "$defs": {**CHAIN, "d2000": {}}}, "too large"),
    "many alternatives": ({"anyOf": [{"type": "integer"}] * 6_000}, "too large"),
    "half a surrogate pair": ({"title": "\ud83d"}, "half a surrogate pair"),
    "a long text": ({"enum": ["x" * 500_000]}, "longer than 400,000 characters"),
    "a name that is not a pattern": ({"patternProperties": {"[": {}}}, "is not a regular expression"),
    "a long pattern": ({"items": {"pattern": "x" * 3_000}}, "too large"),
    "a pattern large once compiled": ({"items": {"pattern": "^.{1,9999}$"}}, "too large"),
    "many patterns": ({"allOf": [{"pattern": f"^{n}"} for n in range(60)]}, "more than 40 patterns"),
    "a wrong type": ({"properties": {"a": {"type": "strin"}}}, 'properties/a/type: "strin" is not'),
}


@pytest.mark.parametrize(("schema", "reason"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_schema_that_cannot_be_used_says_why(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaUnusable, match=reason):
        check_of(schema)


# Which values fit.

A = {"$ref": "#/$defs/a"}
FITTING: dict[str, tuple[dict[str, Any], object, object]] = {
    "large and small decimals": ({"multipleOf": 0.01}, -0.29, 5e-324),
    "an unknown dialect": ({"$schema": "https://host.test/s", "type": "integer"}, 7, "x"),
    "an old dialect": ({"$schema": OLD, "items": [{}], "additionalItems": {"type": "string"}}, [1, "a"], [1, 2]),
    "a recursion": ({**A, "$defs": {"a": {"properties": {"in": A}, "type": "object"}}}, {"in": {}}, {"in": {"in": 7}}),
    "a recursion in a choice": (
        {**A, "$defs": {"a": {"properties": {"in": {"anyOf": [NULL, A]}}, "type": "object"}}},
        {"in": {"in": None}},
        {"in": {"in": 7}},
    ),
    "a recursion to the whole": ({"items": {"$ref": "#"}, "type": "array"}, [[], [[]]], [7]),
    "a recursion behind two references": (
        {**A, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "object", "additionalProperties": A}}},
        {"x": {"y": {}}},
        {"x": 7},
    ),
    "a circle of references": ({"items": A, "$defs": {"a": {"anyOf": [A, NULL]}}}, [None], None),
    "text of two kinds": ({"pattern": "^[A-Z]{2}\\d+$"}, "DE12", "De12"),
    "a pattern behind a reference": ({"items": A, "$defs": {"a": {"pattern": "^a$"}}}, ["a"], ["ab"]),
    "a pointer into a list": (
        {"items": {"$ref": "#/$defs/a/anyOf/0"}, "$defs": {"a": {"anyOf": [{"type": "integer"}]}}},
        [7],
        ["text"],
    ),
    "a pointer with escaped and encoded letters": (
        {"items": {"$ref": "#/$defs/a~1%7E0%25%E6%97%A5"}, "$defs": {"a/~%日": {"type": "integer"}}},
        [7],
        ["text"],
    ),
    "look-around": ({"pattern": "^(?=.*[A-Z])(?=.*\\d).{8,}$"}, "Passw0rd", "password"),
    "a number of characters": ({"pattern": "^.{1,255}$"}, "x" * 255, "x" * 256),
    "a pattern that other engines never finish": ({"pattern": "^(a+)+$"}, "a" * 60, "a" * 60 + "!"),
}


@pytest.mark.parametrize(("schema", "good", "bad"), FITTING.values(), ids=FITTING)
def test_a_value_fits_or_does_not(schema: dict[str, Any], good: object, bad: object) -> None:
    assert fits(schema, good)
    if bad is not None:
        assert not fits(schema, bad)


def test_a_stricter_check_keeps_the_rules_that_it_had() -> None:
    first = check_of({"type": "string"}).stricter(
        lambda text: [] if text.strip() else [Problem((), "must not be blank")]
    )
    both = first.stricter(lambda text: [Problem((), "must not shout")] if text.isupper() else [])

    assert [bool([*both.more(text)]) for text in ("good", " ", "LOUD")] == [False, True, True]
    assert [fitted(both, text, "p", takes_texts=True)[1] for text in (" ", "LOUD")] == [
        ["parameter 'p' must not be blank"],
        ["parameter 'p' must not shout"],
    ]
    assert not list(first.more("LOUD"))


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = {"a": value}
    return value


BRANCH = {"type": "object", "properties": {"a": A}}
CHOICES: dict[str, Any] = {**A, "$defs": {"a": {"oneOf": [BRANCH, {**BRANCH, "required": ["y"]}, {"type": "integer"}]}}}


def test_choices_within_choices_of_a_recursive_schema_are_checked() -> None:
    """Were each level to double the work, this test would not end; the library's errors do, and are not asked for."""
    assert fits(CHOICES, deep(60))
    assert said(CHOICES, "x") == [
        "parameter 'p' must be an object or an integer, got a string; send a JSON object or its text"
    ]
    assert said({**CHOICES, "required": ["z"]}, deep(30)) == ["parameter 'p' does not satisfy the schema"]


TOO_LARGE: dict[str, tuple[dict[str, Any], object]] = {
    "many parts": ({"items": {"minimum": 0}}, [1] * 200_000),
    "objects as options": ({"items": {"enum": [{"a": n} for n in range(400)]}}, [{"a": 399}] * 1_000),
    "alternatives": ({"items": {"anyOf": [{"const": n} for n in range(400)]}}, [399] * 10_000),
    "names by patterns": ({"patternProperties": {f"[a-y]{n}$": {} for n in range(40)}}, {"x" * 9_000: 1}),
}


@pytest.mark.parametrize(("schema", "value"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_check_that_takes_too_long_is_not_begun(schema: dict[str, Any], value: object) -> None:
    with pytest.raises(Unchecked):
        fits(schema, value)


ROW = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {}}, "required": ["id"]}
USUAL: dict[str, tuple[dict[str, Any], object]] = {
    "a large table": ({"items": ROW}, [{"id": n, "name": f"name {n}"} for n in range(20_000)]),
    "a long text": ({"type": "string", "maxLength": 3_000_000}, "x" * 2_000_000),
    "countries": ({"items": {"enum": [f"c{n}" for n in range(4_000)]}}, ["c3999"] * 50_000),
}


@pytest.mark.heavy
@pytest.mark.parametrize(("schema", "value"), USUAL.values(), ids=USUAL)
def test_what_people_ask_for_is_checked(schema: dict[str, Any], value: object) -> None:
    assert fits(schema, value)


@pytest.mark.parametrize("pattern", ["(a|b)*a(a|b){400}c", "^(?=b)"])
def test_long_texts_are_checked_without_patterns(pattern: str) -> None:
    schema = {"type": "array", "maxItems": 1, "items": {"pattern": pattern}}

    assert fits(schema, ["ab" * 500_000])
    assert not fits(schema, ["ab" * 500_000, ""])


# What is converted.

POINT = {"type": "object", "properties": {"x": {"type": "number"}, "note": {"type": "string"}}, "required": ["x"]}
DEFS = {"$defs": {"point": POINT, "numbers": NUMBERS}}
CONVERTED: dict[str, tuple[dict[str, Any], object, object]] = {
    "text of an array or null": ({"anyOf": [NUMBERS, NULL]}, '["1", 2]', [1, 2]),
    "a list of types": ({"type": ["array", "null"]}, "[1]", [1]),
    "text where text will do": ({"type": ["array", "string"]}, "[1]", "[1]"),
    "text where that text will not do": ({"type": ["string", "integer"], "enum": [1, 2, "auto"]}, "2", 2),
    "an option or a number": ({"anyOf": [{"enum": ["auto"]}, {"type": "integer"}]}, "7", 7),
    "the option": ({"anyOf": [{"enum": ["auto"]}, {"type": "integer"}]}, "auto", "auto"),
    "oneOf": ({"oneOf": [POINT, NUMBERS]}, '{"x": "1.5"}', {"x": 1.5}),
    "allOf": ({"allOf": [{"type": "array"}, {"items": {"type": "integer"}}]}, '["1"]', [1]),
    "a reference": ({"$ref": "#/$defs/point", **DEFS}, '{"x": "1"}', {"x": 1}),
    "deep inside": (
        {"properties": {"a": {"type": "array", "items": {"anyOf": [POINT, NULL]}}}},
        {"a": [{"x": "1"}, None, '{"x": 2}']},
        {"a": [{"x": 1}, None, {"x": 2}]},
    ),
    "an object for text or null": ({"type": ["string", "null"]}, {"a": None}, '{"a": null}'),
    "an object that fits no object": ({"anyOf": [POINT, {"type": "string"}]}, {"y": 1}, {"y": 1}),
    "a number above its bound": ({"anyOf": [{"type": "integer", "maximum": 5}, {"type": "string"}]}, 7, 7),
    "an object for text inside": ({"properties": {"a": {"type": "string"}}}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "other names": ({"additionalProperties": {"type": "integer"}}, {"a": "1"}, {"a": 1}),
    "a constant": ({"const": "true"}, True, "true"),
    "null for an optional value": (POINT, {"x": 1, "note": None}, {"x": 1}),
    "null for a required value": (POINT, {"x": None}, {"x": None}),
    "null that is taken": ({"properties": {"a": {"type": ["string", "null"]}}}, {"a": None}, {"a": None}),
    "null in a list": ({"properties": {"l": {"items": POINT}}}, {"l": [{"x": 1, "note": None}]}, {"l": [{"x": 1}]}),
    "null in a choice": ({"anyOf": [NULL, POINT]}, {"x": "1", "note": None}, {"x": 1}),
    "many at once": (NUMBERS, ["1"] * 3_000, [1] * 3_000),
}


@pytest.mark.parametrize(("schema", "value", "expected"), CONVERTED.values(), ids=CONVERTED)
def test_a_value_is_converted_where_nothing_is_lost(schema: dict[str, Any], value: object, expected: object) -> None:
    before = repr(value)

    assert repr(converted(schema, value)) == repr(expected)
    assert repr(value) == before


def test_a_text_of_a_whole_value_is_for_tools_only() -> None:
    for value in ({"a": 1}, [1], True):
        assert converted({"type": "string"}, value, takes_texts=False) == value


SCHEMAS = [schema for schema, _, _ in CONVERTED.values()]


@given(st.sampled_from(SCHEMAS), json_values | st.sampled_from(['["1"]', "7", "null", {"x": "1", "note": None}]))
def test_a_value_that_fits_stays_unchanged(schema: dict[str, Any], value: object) -> None:
    check = check_of(schema)
    result, problems = fitted(check, value, "p", takes_texts=True)

    assert not problems or not check.accepts(result)
    if check.accepts(value):
        assert result is value


# What is said.

KINDS = {"type": "object", "properties": {"x": {"type": "number"}, "kind": {"const": "point"}}, "required": ["x"]}
LINE = {"type": "object", "properties": {"kind": {"const": "line"}, "to": KINDS}, "required": ["kind", "to"]}
CLOSED = {"properties": {"a": {"type": "integer"}}, "patternProperties": {"^b": {"type": "integer"}}}
SENTENCES: dict[str, tuple[dict[str, Any], object, str]] = {
    "type": ({"type": "number"}, None, "'p' must be a number, got null"),
    "types": ({"type": ["array", "null"]}, True, "'p' must be null or an array, got a boolean"),
    "a text for one of two": (
        {"type": ["array", "object"]},
        "a",
        "'p' must be an array or an object, got a string; send a JSON array, a JSON object or its text",
    ),
    "a text inside": (
        {"items": {"type": "array"}},
        ["a"],
        "'p[0]' must be an array, got a string; send a JSON array or its text",
    ),
    "enum": ({"enum": ["a", None, True]}, False, "'p' value false not in options [\"a\", null, true]"),
    "minimum": ({"minimum": 1}, 0, "'p': value 0 is less than the minimum of 1"),
    "multiple": ({"multipleOf": 0.01}, 1.005, "'p': value 1.005 is not a multiple of 0.01"),
    "pattern": ({"pattern": "^a"}, "b", '\'p\': value "b" does not match "^a"'),
    "required": (POINT, {}, "'p': \"x\" is a required property"),
    "more than those named": (
        {"properties": {"b": {}}, "additionalProperties": False},
        {"a": None},
        "'p': Additional properties are not allowed ('a' was unexpected)",
    ),
    "a condition": (
        {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}},
        {"a": 1},
        "'p': \"b\" is a required property",
    ),
    "a name by a pattern": (CLOSED, {"b-a": "x"}, "'p.b-a' must be an integer, got a string"),
    "a place": ({"items": {"properties": {"a": NULL}}}, [{}, {"a": "x"}], "'p[1].a' must be null, got a string"),
    "a wrong type, and not one too many": (
        {**CLOSED, "additionalProperties": False},
        {"a": "x"},
        "'p.a' must be an integer, got a string",
    ),
    "types in a choice": (
        {"anyOf": [{"type": "string"}, {"type": "array"}, NULL]},
        {},
        "'p' must be a string, an array or null, got an object",
    ),
    "the branch of its type": (
        {"anyOf": [NULL, KINDS]},
        {"x": [None]},
        "'p.x' must be a number, got an array (the closest of 2 alternatives)",
    ),
    "the branch of its kind": (
        {"oneOf": [KINDS, LINE]},
        {"kind": "line", "to": {"x": "?"}},
        "'p.to.x' must be a number, got a string (the closest of 2 alternatives)",
    ),
    "a choice in a choice": (
        {"anyOf": [NULL, {"type": "array", "items": {"anyOf": [KINDS, LINE, NULL]}}]},
        [None, {"kind": "point", "x": True}],
        "'p[1].x' must be a number, got a boolean (the closest of 3 alternatives)",
    ),
    "more than one": (
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        7,
        "'p': value 7 is valid under more than one of the schemas listed in the 'oneOf' keyword",
    ),
}


@pytest.mark.parametrize(("schema", "value", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_a_sentence_says_where_and_what_would_be_right(schema: dict[str, Any], value: object, sentence: str) -> None:
    assert said(schema, value) == [f"parameter {sentence}"]


def test_a_place_has_one_sentence_and_three_places_are_enough() -> None:
    assert len(said({"minLength": 5, "enum": ["aaaaa"], "const": "b"}, "a")) == 1
    assert len(said({"items": NULL}, [1] * 1_000)) == 3


def test_a_large_value_is_wrong_as_a_whole() -> None:
    assert said({"items": NULL}, [1] * 50_000) == ["parameter 'p' does not satisfy the schema"]


def test_all_arguments_together_have_a_name_too() -> None:
    assert said(POINT, {}, "") == ["parameter '(all)': \"x\" is a required property"]
    assert said(POINT, {"x": [None]}, "") == ["parameter 'x' must be a number, got an array"]


@pytest.mark.parametrize("value", ["x" * 10_000, ["x" * 5_000], {"x" * 5_000: 1}], ids=type)
def test_a_long_value_is_quoted_in_part(value: object) -> None:
    (sentence,) = said({"not": {}}, value)

    assert len(sentence) < 450
    assert len(quoted(value)) == 201


@given(small_schemas, small_values)
def test_there_is_a_sentence_exactly_where_the_value_does_not_satisfy_the_schema(
    schema: dict[str, Any], value: object
) -> None:
    result, problems = fitted(check_of(schema), value, "p", takes_texts=False)

    assert bool(problems) is not Draft202012Validator(schema).is_valid(result)
