"""The schemas of MCP tools and answers: which references are followed, and which values are let through."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.node.schema import Problem, SchemaUnusable, Unchecked, _compiled, check_of, embedded

OLD = "http://json-schema.org/draft-07/schema#"


def fits(schema: dict[str, Any], value: object) -> bool:
    return check_of(schema).is_satisfied_by(value)


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
    whole = {"properties": {"a%20b/日": embedded(schema, "a%20b/日")}}

    assert fits(schema, {"it": 7})
    assert not fits(schema, {"it": "text"})
    assert fits(whole, {"a%20b/日": {"it": 7}})
    assert not fits(whole, {"a%20b/日": {"it": "text"}})


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
        ("#/$defs/a/title", "does not point to a schema"),
        ("#/$defs/a/anyOf", "does not point to a schema"),
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

    with pytest.raises(SchemaUnusable, match="nested too deeply"):
        check_of({"$ref": "#/$defs/d0", "$defs": {**chain, "d2000": {}}})


@pytest.mark.parametrize("dialect", ["https://host.test/schema", "http://json-schema.org/draft-03/schema#", ""])
def test_a_dialect_that_is_unknown_is_read_as_the_latest(dialect: str) -> None:
    assert fits({"$schema": dialect, "type": "integer"}, 7)
    assert not fits({"$schema": dialect, "items": {"$schema": dialect, "type": "integer"}}, ["x"])


def test_names_of_a_schema_do_not_change_where_its_references_lead() -> None:
    named = {"$id": "https://host.test/a", "$ref": "#/$defs/n", "$defs": {"n": {"$id": "b", "type": "integer"}}}

    assert fits(named, 7)
    assert not fits(named, "x")


def test_an_old_name_of_a_schema_does_not_change_where_its_references_lead() -> None:
    properties = {"id": {"$ref": "#/definitions/n"}}
    named = {"id": "https://host.test/a", "properties": properties, "definitions": {"n": {"type": "integer"}}}

    assert fits({"$schema": "http://json-schema.org/draft-04/schema#", **named}, {"id": 7})
    assert not fits({"$schema": "http://json-schema.org/draft-04/schema#", **named}, {"id": "x"})


@pytest.mark.parametrize("reference", ["https://host.test/a", "file:///etc/hostname", "other.json"])
def test_the_library_fetches_nothing_either(reference: str) -> None:
    with pytest.raises(SchemaUnusable, match="retrieving it failed"):
        _compiled({"$ref": reference})


def test_what_an_old_dialect_puts_beside_a_reference_is_not_looked_at() -> None:
    schema = {"properties": {"a": {"$ref": "#/definitions/n", "minimum": 5}}, "definitions": {"n": {"type": "integer"}}}

    assert fits({"$schema": OLD, **schema}, {"a": 1})
    assert not fits(schema, {"a": 1})


def test_formats_and_encodings_are_not_checked() -> None:
    assert fits({"format": "date", "contentEncoding": "base64", "$schema": OLD}, "?")


def test_half_a_surrogate_pair_cannot_be_checked() -> None:
    with pytest.raises(Unchecked):
        fits({"type": "string"}, "\ud800")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"dependentRequired": {"pattern": ["b"]}}, {"pattern": 1}),
        ({"dependentRequired": {"$id": ["b"]}}, {"$id": 1}),
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


def test_a_stricter_check_keeps_the_rules_that_it_had() -> None:
    check = check_of({"type": "string"})
    first = check.stricter(lambda text: [Problem((), "must not be blank")] if not text.strip() else [])
    both = first.stricter(lambda text: [Problem((), "must not shout")] if text.isupper() else [])

    assert [both.is_satisfied_by(text) for text in ("good", " ", "LOUD")] == [True, False, False]
    assert [problem.predicate for text in (" ", "LOUD") for problem in both.more(text)] == [
        "must not be blank",
        "must not shout",
    ]
    assert first.is_satisfied_by("LOUD")


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_choices_within_choices_of_a_recursive_schema_are_checked() -> None:
    """Were each level to double the work, this test would not end."""
    branch = {"type": "object", "properties": {"a": A}}
    assert fits(
        {**A, "$defs": {"a": {"oneOf": [branch, {**branch, "required": ["y"]}, {"type": "integer"}]}}}, deep(60)
    )


TOO_LARGE: dict[str, tuple[dict[str, Any], object]] = {
    "many parts": ({"items": {"minimum": 0}}, [1] * 200_000),
    "objects as options": ({"items": {"enum": [{"a": n} for n in range(400)]}}, [{"a": 399}] * 1_000),
    "alternatives": ({"items": {"anyOf": [{"const": n} for n in range(400)]}}, [399] * 10_000),
    "multiples": ({"items": {"allOf": [{"multipleOf": 0.01}] * 400}}, [3.21] * 1_000),
    "large integers that are to differ": ({"uniqueItems": True}, [10**30 + n for n in range(5_000)]),
    "names by many patterns": ({"patternProperties": {f"[a-y]{n}$": {} for n in range(400)}}, {"x" * 9_000: 1}),
}


@pytest.mark.parametrize(("schema", "value"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_check_that_takes_too_long_is_not_begun(schema: dict[str, Any], value: object) -> None:
    with pytest.raises(Unchecked):
        fits(schema, value)


USUAL: dict[str, tuple[dict[str, Any], object]] = {
    "a large table": (
        {"items": {"type": "object", "properties": {"id": {"type": "integer"}, "name": {}}, "required": ["id"]}},
        [{"id": n, "name": f"name {n}"} for n in range(20_000)],
    ),
    "a long text": ({"type": "string", "maxLength": 3_000_000}, "x" * 2_000_000),
    "countries": ({"items": {"enum": [f"c{n}" for n in range(4_000)]}}, ["c3999"] * 50_000),
    "alternatives": ({"items": {"anyOf": [{"const": n} for n in range(50)]}}, [49] * 100),
    "money": ({"items": {"multipleOf": 0.01}}, [19.99] * 2_000),
}


@pytest.mark.heavy
@pytest.mark.parametrize(("schema", "value"), USUAL.values(), ids=USUAL)
def test_what_people_ask_for_is_checked(schema: dict[str, Any], value: object) -> None:
    assert fits(schema, value)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"enum": ["x" * 500_000]}, "longer than 400,000 characters"),
        ({"enum": [{"a": n} for n in range(4_000)]}, "too large"),
        ({"anyOf": [{"type": "integer"}] * 6_000}, "too large"),
        ({"patternProperties": {"[": {}}}, "is not a regular expression"),
        ({"items": {"pattern": "x" * 3_000}}, "too large"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaUnusable, match=reason):
        check_of(schema)


def test_keywords_that_walk_a_value_again_and_again_are_refused() -> None:
    schema: dict[str, Any] = {"properties": {"a": {}}}
    for _ in range(20):
        schema = {"allOf": [schema], "unevaluatedProperties": False}

    with pytest.raises(SchemaUnusable, match="too large"):
        check_of(schema)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("b", "abc", "acd"),
        ("^[A-Z]{2}\\d+$", "DE12", "De12"),
        ("^(?=.*[A-Z])(?=.*\\d).{8,}$", "Passw0rd", "password"),
        ("^.{1,50}$", "x" * 50, "x" * 51),
        ("^(a+)+$", "a" * 60, "a" * 60 + "!"),
    ],
)
def test_a_text_must_match(pattern: str, matching: str, other: str) -> None:
    assert fits({"pattern": pattern}, matching)
    assert not fits({"pattern": pattern}, other)


@pytest.mark.parametrize("pattern", ["(a|b)*a(a|b){400}c", "^(?=b)"])
def test_long_texts_are_checked_without_patterns(pattern: str) -> None:
    schema = {"type": "array", "maxItems": 1, "items": {"pattern": pattern}}

    assert fits(schema, ["ab" * 500_000])
    assert not fits(schema, ["ab" * 500_000, ""])
