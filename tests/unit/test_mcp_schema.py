"""The schemas of MCP tools and answers: which references are followed, and which values are let through."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from internal.schema.references import SchemaUnusable, check_of, own_schema

OLD = "http://json-schema.org/draft-07/schema#"
OLDEST = "http://json-schema.org/draft-03/schema#"


def fits(schema: dict[str, Any], value: object) -> bool:
    return not list(check_of(schema)(value))


@pytest.mark.parametrize("dialect", [{}, {"$schema": OLD}], ids=["latest", "old"])
@pytest.mark.parametrize(
    ("value", "step", "is_multiple"),
    [
        (19.99, 0.01, True),
        (4.35, 0.01, True),
        (0.29, 0.01, True),
        (-0.29, 0.01, True),
        (19.995, 0.01, False),
        (1e308, 1e-308, True),
        (5e-324, 0.01, False),
        (10**400, 0.1, True),
        (10**4_000, 3, False),
        (7, 3, False),
        (9.0, 3, True),
        (float("inf"), 0.01, False),
        (float("nan"), 0.01, False),
        (1, float("inf"), False),
        (True, 2, True),
        ("7", 2, True),
    ],
)
def test_multiples_are_those_of_the_numbers_as_written(
    dialect: dict[str, str],
    value: object,
    step: float,
    is_multiple: bool,  # noqa: FBT001 - a table
) -> None:
    assert fits({**dialect, "multipleOf": step}, value) is is_multiple


@given(st.integers(-(10**12), 10**12))
def test_every_sum_of_money_is_a_multiple_of_a_cent(cents: int) -> None:
    assert fits({"multipleOf": 0.01}, float(f"{cents}e-2"))


def test_the_checks_of_a_node_with_hundreds_of_tools_are_kept() -> None:
    schemas = [{"type": "string", "maxLength": number} for number in range(600)]
    checks = [check_of(schema) for schema in schemas]

    assert all(check_of(schema) is check for schema, check in zip(schemas, checks, strict=True))


def test_a_dialect_that_does_not_know_a_keyword_does_not_learn_it() -> None:
    assert fits({"$schema": OLDEST, "multipleOf": "x"}, 7)


POINTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "into a list": ("#/properties/a/anyOf/0", {"properties": {"a": {"anyOf": [{"type": "integer"}]}}}),
    "an encoded space": ("#/$defs/My%20Type", {"$defs": {"My Type": {"type": "integer"}}}),
    "encoded letters": ("#/$defs/%E6%97%A5", {"$defs": {"日": {"type": "integer"}}}),
    "an encoded percent sign": ("#/$defs/a%25b", {"$defs": {"a%b": {"type": "integer"}}}),
    "escaped and encoded": ("#/$defs/a~1%7E0", {"$defs": {"a/~": {"type": "integer"}}}),
    "an encoded slash": ("#/$defs%2Fa", {"$defs": {"a": {"type": "integer"}}}),
    "an empty name": ("#/", {"": {"type": "integer"}}),
    "an unknown keyword": ("#/components/schemas/a", {"components": {"schemas": {"a": {"type": "integer"}}}}),
}


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize(("pointer", "more"), POINTERS.values(), ids=POINTERS)
def test_a_json_pointer_is_resolved_as_the_standard_says(keyword: str, pointer: str, more: dict[str, Any]) -> None:
    schema = {"type": "object", **more, "properties": {**more.get("properties", {}), "it": {keyword: pointer}}}
    whole, check = own_schema(schema, "a%20b/日")
    embedded = Draft202012Validator({"properties": {"a%20b/日": whole}})

    assert not list(check({"it": 7}))
    assert list(check({"it": "text"}))
    assert embedded.is_valid({"a%20b/日": {"it": 7}})
    assert not embedded.is_valid({"a%20b/日": {"it": "text"}})


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("https://host.test/a", "leads out of it"),
        ("other.json#/x", "leads out of it"),
        ("#foo", "names an anchor"),
        ("#/$defs/b", "leads nowhere"),
        ("#/$defs/a/anyOf/1", "leads nowhere"),
        ("#/$defs/a/anyOf/-1", "leads nowhere"),
        ("#/$defs/a/anyOf/x", "leads nowhere"),
        ("#/$defs/a/title", "leads to what is no schema"),
        ("#/$defs/a/anyOf", "leads to what is no schema"),
    ],
)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef"])
def test_a_reference_that_cannot_be_followed_is_refused(keyword: str, reference: str, reason: str) -> None:
    anchored = {"$anchor": "foo", "title": "A", "anyOf": [{"type": "integer"}]}

    with pytest.raises(SchemaUnusable, match=reason):
        check_of({"items": {keyword: reference}, "$defs": {"a": anchored}})


A = {"$ref": "#/$defs/a"}
CIRCLES: dict[str, dict[str, Any]] = {
    "to itself": {"a": A},
    "over another": {"a": {"$ref": "#/$defs/b"}, "b": A},
    "in a choice": {"a": {"anyOf": [{"type": "null"}, A]}},
    "in a condition": {"a": {"if": A}},
    "for one more property": {"a": {"dependentSchemas": {"items": A}}},
    "by another keyword": {"a": {"$dynamicRef": "#/$defs/a"}},
}


@pytest.mark.parametrize("definitions", CIRCLES.values(), ids=CIRCLES)
@pytest.mark.parametrize("where", [{"properties": {"p": A}}, {"items": A}, A], ids=["property", "item", "top"])
def test_references_that_never_come_to_the_value_are_refused(
    where: dict[str, Any], definitions: dict[str, Any]
) -> None:
    with pytest.raises(SchemaUnusable, match="leads in a circle"):
        check_of({**where, "$defs": definitions})


RECURSIONS: dict[str, dict[str, Any]] = {
    "properties": {"type": "object", "properties": {"in": A}},
    "items": {"type": ["object", "array"], "items": A, "properties": {"in": A}},
    "a choice inside": {"type": "object", "properties": {"in": {"anyOf": [{"type": "null"}, A]}}},
    "other names": {"type": "object", "additionalProperties": A},
    "over another": {"type": "object", "properties": {"in": {"$ref": "#/$defs/b"}}},
}


@pytest.mark.parametrize("schema", RECURSIONS.values(), ids=RECURSIONS)
def test_a_schema_may_come_again_deeper_in_the_value(schema: dict[str, Any]) -> None:
    whole = {**A, "$defs": {"a": schema, "b": {"allOf": [A]}}}

    assert fits(whole, {"in": {"in": {"in": {}}}})
    assert not fits(whole, {"in": {"in": {"in": 7}}})


def test_a_circle_without_a_reference_to_it_is_harmless() -> None:
    assert fits({"$defs": {"a": A}}, 7)


def test_keywords_of_other_dialects_may_have_any_value() -> None:
    assert fits({"$schema": OLD, "$dynamicRef": 7}, 7)


def test_a_dialect_must_be_named_by_a_text() -> None:
    with pytest.raises(SchemaUnusable, match="must be a text"):
        check_of({"$schema": []})


@pytest.mark.heavy
def test_a_chain_of_references_has_an_end() -> None:
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(2_000)}

    with pytest.raises(SchemaUnusable, match="more than 50 references"):
        check_of({"$ref": "#/$defs/d0", "$defs": {**chain, "d2000": {}}})


def test_names_that_a_pattern_may_cover_are_accepted_wherever_the_pattern_is() -> None:
    covered = {"allOf": [{"patternProperties": {"^x-": {}}}], "unevaluatedProperties": False}

    assert fits(covered, {"x-a": 1})
    assert fits({"items": covered}, [{"x-a": 1}])
    assert fits({"patternProperties": {"^x-": {}}, "additionalProperties": False}, {"x-a": 1})


WORD, NUMBER = {"pattern": "^[a-z]+$"}, {"pattern": "^[0-9]+$"}


@pytest.mark.parametrize(
    "schema",
    [
        {"not": NUMBER},
        {"not": {"$ref": "#/$defs/number"}, "$defs": {"number": NUMBER}},
        {"oneOf": [WORD, NUMBER]},
        {"if": NUMBER, "then": {"const": 7}},
        {"not": {"patternProperties": {"^a": False}}},
    ],
)
def test_values_that_only_a_pattern_could_refuse_are_accepted(schema: dict[str, Any]) -> None:
    assert fits(schema, "word")


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"type": "string"}},
        {"oneOf": [{"type": "string"}, {"minLength": 1}]},
        {"if": {"type": "string"}, "then": {"const": 7}},
        {"oneOf": [{"type": "integer", "pattern": "a"}, {"type": "null"}]},
    ],
)
@pytest.mark.parametrize("elsewhere", [{}, {"$defs": {"a": WORD}}])
def test_without_a_pattern_everything_is_checked(schema: dict[str, Any], elsewhere: dict[str, Any]) -> None:
    assert not fits({**schema, **elsewhere}, "word")


def test_without_patterns_an_unknown_name_is_refused() -> None:
    assert not fits({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1, "b": 1})
    assert not fits({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1, "b": 1})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"dependentRequired": {"pattern": ["b"]}}, {"pattern": 1}),
        ({"$schema": OLD, "dependencies": {"pattern": ["b"]}}, {"pattern": 1}),
        ({"dependentSchemas": {"pattern": {"required": ["b"]}}}, {"pattern": 1}),
        ({"properties": {"patternProperties": {"type": "integer"}}}, {"patternProperties": "a"}),
        ({"properties": {"const": {"type": "integer"}}}, {"const": "a"}),
        ({"const": {"pattern": 1}}, {}),
        ({"enum": [{"pattern": 1}]}, {}),
    ],
)
def test_names_and_values_are_not_keywords(schema: dict[str, Any], value: object) -> None:
    assert not fits(schema, value)


def test_values_are_not_searched_for_references() -> None:
    schema = {"const": {"$ref": "#/nowhere"}, "default": {"$ref": "#"}, "examples": [{"$ref": "https://host.test"}]}

    assert fits(schema, {"$ref": "#/nowhere"})
