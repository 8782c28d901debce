"""Parsing a tool call's name and arguments: fail-closed, and every error says where."""

import json
import math
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.tooling import (
    MAX_ARGUMENTS_LENGTH,
    ToolArgumentsParseResult,
    json_type,
    parse_tool_arguments,
    resolve_tool_instance,
    unknown_tool_error,
    without_quote,
)
from tests.unit.generators import any_text, joined, json_objects, json_values

SCRAPS = ["{", "}", '"a"', ":", ",", "1", "1e999", "NaN", "-Infinity", "[", "]", '"\\ud83d"', "null", "tru", " ", "\n"]


def nested(levels: int, innermost: str = "") -> str:
    """An object with this many levels of objects in all."""
    return '{"a":' * (levels - 1) + "{" + innermost + "}" + "}" * (levels - 1)


def leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


@given(json_objects, st.sampled_from([None, 2]), st.booleans())
def test_every_json_object_is_accepted(value: dict[str, object], indent: int | None, ascii_only: bool) -> None:  # noqa: FBT001
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    assert parse_tool_arguments(text) == ToolArgumentsParseResult(ok=True, args=value)


@given(any_text | joined(SCRAPS) | json_values.map(json.dumps))
def test_accepted_arguments_are_a_json_object_that_can_be_written(text: str) -> None:
    result = parse_tool_arguments(text)

    if result.ok:
        assert result.error is None
        assert result.args == json.loads(text or "{}")
        assert all(math.isfinite(leaf) for leaf in leaves(result.args) if isinstance(leaf, float))
        assert json.dumps(result.args, ensure_ascii=False, allow_nan=False).encode()
    else:
        assert result.args == {}
        assert str(result.error).startswith("tool arguments parse error: ")


def test_an_empty_text_is_an_empty_object() -> None:
    assert parse_tool_arguments("") == ToolArgumentsParseResult(ok=True, args={})


@pytest.mark.parametrize(
    "text", [" ", "\n\t ", "\ufeff{}", "{} {}", "{'a': 1}", '{"a": 1,}', "{", '"{}"', "x"], ids=repr
)
def test_a_text_that_is_not_a_json_object_is_refused_and_never_repaired(text: str) -> None:
    result = parse_tool_arguments(text)

    assert not result.ok
    assert "expected a JSON object" in str(result.error) or "at character " in str(result.error)


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("[]", "an array"),
        ('"a"', "a string"),
        ("1", "a number"),
        ("1.5", "a number"),
        ("true", "a boolean"),
        ("null", "null"),
    ],
)
def test_the_error_names_the_type_of_json_that_is_not_an_object(text: str, got: str) -> None:
    assert f"got {got};" in str(parse_tool_arguments(text).error)


@pytest.mark.parametrize("value", [None, {}, {"a": 1}, b"{}", 1, True], ids=repr)
def test_arguments_that_are_not_text_are_refused(value: object) -> None:
    result = parse_tool_arguments(value)

    assert not result.ok
    assert f"got {type(value).__name__}" in str(result.error)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": 1,}', f"at character {8 if sys.version_info < (3, 13) else 7}"),  # 3.13 points to the comma
        ('{"a": }', "at character 6"),
        ('{"a": [1, "\\ud83d"]}', "at $.a[1]"),
        ('{"a": {"b\\udc00": 1}}', "at $.a"),
        ('{"a": {"b": 1e999}}', "at $.a.b"),
        ('{"a": -1e999}', "at $.a"),
        ('{"a": NaN}', "at "),
        ('{"a": [Infinity]}', "at "),
        ('{"a": -Infinity}', "at "),
        (nested(66), "at $.a.a"),
    ],
    ids=[
        "comma",
        "no value",
        "surrogate",
        "surrogate name",
        "1e999",
        "-1e999",
        "NaN",
        "Infinity",
        "-Infinity",
        "depth",
    ],
)
def test_an_error_has_the_position(text: str, where: str) -> None:
    result = parse_tool_arguments(text)

    assert not result.ok
    assert where in str(result.error)


@pytest.mark.parametrize("innermost", ["", '"b": 1', '"b": []'], ids=["empty", "a number", "an array more"])
def test_64_levels_are_taken_and_65_are_not(innermost: str) -> None:
    deepest = 63 if "[]" in innermost else 64

    assert parse_tool_arguments(nested(deepest, innermost)).ok
    assert "nested deeper than 64" in str(parse_tool_arguments(nested(deepest + 1, innermost)).error)


@pytest.mark.parametrize("opening", ["[", '{"a":'], ids=["arrays", "objects"])
def test_nesting_beyond_any_parser_is_refused_too(opening: str) -> None:
    text = '{"a":' + opening * 190_000

    assert "nested deeper than 64" in str(parse_tool_arguments(text).error)


def test_arguments_beyond_a_million_characters_are_refused_unread() -> None:
    longest = json.dumps({"q": "x" * (MAX_ARGUMENTS_LENGTH - len('{"q": ""}'))})

    assert len(longest) == MAX_ARGUMENTS_LENGTH
    assert parse_tool_arguments(longest).ok
    for too_long in (longest + " ", "NaN" * MAX_ARGUMENTS_LENGTH):
        assert "longer than 1,000,000 characters" in str(parse_tool_arguments(too_long).error)


def test_a_number_with_thousands_of_digits_is_refused() -> None:
    refused = parse_tool_arguments('{"a": ' + "1" * 10_000 + "}")

    assert refused.error == "tool arguments parse error: a number has more than 4,300 digits"


def test_an_error_quotes_little_of_a_long_text() -> None:
    assert len(str(parse_tool_arguments('{"a": ' + "x" * 100_000).error)) < 300
    assert len(str(parse_tool_arguments(json.dumps({"k" * 100_000: "\ud83d"})).error)) < 300


@pytest.mark.parametrize("text", ['{"q": "x" "n": 1}', """{"token": "it's" "n": 1}"""])
def test_an_error_quotes_the_text_around_its_position(text: str) -> None:
    refusal = str(parse_tool_arguments(text).error)

    assert f"near {text!r}" in refusal
    assert "n" not in without_quote(refusal).partition("at character ")[2].partition(";")[0]
    assert without_quote(refusal).endswith("; send one JSON object")


def test_a_tool_is_found_only_by_its_exact_name() -> None:
    assert resolve_tool_instance({"search": 1}, "search") == 1
    assert resolve_tool_instance({"search": 1}, "Search") is None
    assert resolve_tool_instance({}, "") is None
    assert resolve_tool_instance(None, "search") is None


def test_an_unknown_name_is_answered_with_the_known_names() -> None:
    assert unknown_tool_error("X", ["a", "b"]).startswith("there is not a tool named X")
    assert "a, b" in unknown_tool_error("X", ["a", "b"])
    assert unknown_tool_error("X", []) == "there is not a tool named X; there are no tools"


@pytest.mark.parametrize(
    ("value", "name"),
    [({}, "an object"), ([], "an array"), ("", "a string"), (True, "a boolean"), (1, "a number"), (None, "null")],
    ids=repr,
)
def test_a_type_has_the_name_that_a_person_would_give_it(value: object, name: str) -> None:
    assert json_type(value) == name
