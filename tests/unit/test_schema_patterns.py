"""Patterns are checked wherever they stand, and none of them can hold the process up."""

from typing import Any

import pytest

from internal.schema.check import check_of
from internal.schema.patterns import MAX_PATTERN_LENGTH, MAX_SECONDS, Matching, compiled
from internal.schema.references import SchemaUnusable

OLD = "http://json-schema.org/draft-07/schema#"
WORD, NUMBER = {"pattern": "^[a-z]+$"}, {"pattern": "^[0-9]+$"}
CATASTROPHIC = "^(a+)+$"


def fits(schema: dict[str, Any], value: object) -> bool:
    return check_of(schema).is_satisfied_by(value)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("b", "abc", "acd"),
        ("^[A-Z]{2}\\d+$", "DE12", "De12"),
        ("^\\d{4}-\\d{2}-\\d{2}$", "2026-11-22", "22.11.2026"),
        ("^\\p{L}+$", "日本", "1"),
        ("^(?!\\s*$).+", " a", "  "),
        ("^(?=.*[A-Z])(?=.*\\d).{8,}$", "Passw0rd", "password"),
        ("^(a|b)\\1$", "aa", "ab"),
        ("^.{1,50}$", "x" * 50, "x" * 51),
        (CATASTROPHIC, "a" * 60, "a" * 60 + "!"),
    ],
)
def test_a_text_must_match(pattern: str, matching: str, other: str) -> None:
    for schema in ({"pattern": pattern}, {"$schema": OLD, "type": "string", "pattern": pattern}):
        assert fits(schema, matching)
        assert not fits(schema, other)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"^\w+$", "東京タワー_2", "東京 タワー"),
        (r"^[\w-]+$", "são-paulo", "são paulo"),
        (r"^\d{3}$", "１２３", "１２三"),
        (r"^(?!x)\w+$", "日本", "x日本"),
        (r"^\\w$", "\\w", "日"),
    ],
)
def test_letters_and_digits_of_all_scripts_match(pattern: str, matching: str, other: str) -> None:
    """Authors who test their patterns in Python mean them; JSON Schema alone would read ASCII."""
    assert fits({"pattern": pattern}, matching)
    assert not fits({"pattern": pattern}, other)


def test_a_long_pattern_of_letters_is_checked_too() -> None:
    schema = {"pattern": "^" + r"\w" * (MAX_PATTERN_LENGTH // 2 - 1) + "$"}

    assert not fits(schema, "x")
    assert fits(schema, "x" * (MAX_PATTERN_LENGTH // 2 - 1))


def test_a_pattern_says_nothing_about_other_types() -> None:
    assert fits(NUMBER, ["word", None, 7])


@pytest.mark.parametrize(
    ("schema", "fitting", "other"),
    [
        ({"not": NUMBER}, "word", "7"),
        ({"not": {"$ref": "#/$defs/number"}, "$defs": {"number": NUMBER}}, "word", "7"),
        ({"oneOf": [WORD, NUMBER]}, "word", "a7"),
        ({"if": NUMBER, "then": {"const": "7"}}, "7", "8"),
        ({"propertyNames": WORD}, {"a": 1}, {"A": 1}),
        ({"patternProperties": {"^x-": {"type": "integer"}}}, {"x-a": 1, "y": ""}, {"x-a": ""}),
        ({"patternProperties": {"^x-": {}}, "additionalProperties": False}, {"x-a": 1}, {"y-a": 1}),
        (
            {"allOf": [{"patternProperties": {"^x-": {}}}], "unevaluatedProperties": False},
            {"x-a": 1},
            {"x-a": 1, "y": 1},
        ),
    ],
    ids=["not", "behind a reference", "oneOf", "if", "names", "values by name", "other names", "unevaluated"],
)
def test_a_pattern_counts_wherever_it_stands(schema: dict[str, Any], fitting: object, other: object) -> None:
    assert fits(schema, fitting)
    assert not fits(schema, other)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a*)*(?=b)\\1c", "a" * 1_000),
        ("(?<=a+)b", "a" * 1_000_000),
        ("(a|b)*a(a|b){400}c", "ab" * 500_000),
        ("^.{1,9999}$", "x" * 20_000),
        ("^a\\Z", "b"),
    ],
    ids=["backtracking", "look-around", "many states", "too large", "Python's alone"],
)
def test_a_pattern_that_may_take_too_long_is_left_out(pattern: str, text: str) -> None:
    assert fits({"pattern": pattern}, text)


def test_when_all_matches_together_have_taken_too_long_the_others_are_left_out() -> None:
    matching, pattern = Matching(), compiled("^b")
    matching.begin()
    assert not matching.accepts(pattern, "a")

    matching.seconds = MAX_SECONDS + 0.01

    assert matching.accepts(pattern, "a")
    matching.begin()
    assert not matching.accepts(pattern, "a")


@pytest.mark.parametrize("pattern", ["[", "(?P<a", "a{2,1}", "x" * (MAX_PATTERN_LENGTH + 1)], ids=lambda text: text[:9])
def test_what_is_not_a_regular_expression_is_refused(pattern: str) -> None:
    schemas: list[dict[str, Any]] = [{"items": {"pattern": pattern}}, {"patternProperties": {pattern: {}}}]
    for schema in schemas:
        with pytest.raises(SchemaUnusable, match="pattern"):
            check_of(schema)


def test_names_are_matched_in_linear_time_only() -> None:
    with pytest.raises(SchemaUnusable, match="names cannot be matched with the pattern"):
        check_of({"patternProperties": {"^(?!x-)": {}}})


def test_a_schema_has_so_many_patterns() -> None:
    with pytest.raises(SchemaUnusable, match="more than 500 patterns"):
        check_of({"properties": {f"a{n}": {"pattern": f"{n}"} for n in range(501)}})


def test_a_pattern_is_compiled_once() -> None:
    assert compiled("^once$") is compiled("^once$")
