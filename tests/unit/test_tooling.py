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
    parse_tool_arguments,
    resolve_tool_instance,
    unknown_tool_error,
    without_quote,
)
from tests.support.generators import any_text, joined, json_objects, json_values

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


def error(arguments: object) -> str:
    result = parse_tool_arguments(arguments)

    assert not result.ok
    assert result.args == {}
    assert len(str(result.error)) < 300
    return str(result.error).removeprefix("tool arguments parse error: ")


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
        assert error(text)


def test_an_empty_text_is_an_empty_object() -> None:
    assert parse_tool_arguments("") == ToolArgumentsParseResult(ok=True, args={})


LONGEST = json.dumps({"q": "x" * (MAX_ARGUMENTS_LENGTH - len('{"q": ""}'))})
REFUSED: list[tuple[object, str]] = [
    (" ", "expected a JSON object, got only white space"),
    ("\ufeff{}", "at character 0"),
    ("{} {}", "at character 3"),
    ("{'a': 1}", "at character 1"),
    ("{", "at character 1"),
    ('"{}"', "got a string;"),
    ("[]", "got an array;"),
    ("1.5", "got a number;"),
    ("true", "got a boolean;"),
    ("null", "got null;"),
    (None, "got NoneType"),
    ({"a": 1}, "got dict"),
    (b"{}", "got bytes"),
    ('{"a": 1,}', f"at character {8 if sys.version_info < (3, 13) else 7}"),  # 3.13 points to the comma
    ('{"a": }', "at character 6"),
    ('{"a": [1, "\\ud83d"]}', "at $.a[1]"),
    ('{"a": {"b\\udc00": 1}}', "at $.a"),
    ('{"a": {"b": 1e999}}', "at $.a.b"),
    ('{"NaN": NaN}', "NaN is not a JSON number, at character 8"),
    ('{"a": [-Infinity]}', "at character 7"),
    (nested(66), "at $.a.a"),
    (nested(65), "nested deeper than 64"),
    (nested(64, '"b": []'), "nested deeper than 64"),
    ('{"a":' * 190_000, "nested deeper than 64"),
    ('{"a":' + "[" * 190_000, "nested deeper than 64"),
    (LONGEST + " ", "longer than 1,000,000 characters"),
    ("NaN" * MAX_ARGUMENTS_LENGTH, "longer than 1,000,000 characters"),
    ('{"a": ' + "1" * 10_000 + "}", "a number has more than 4,300 digits"),
    ('{"a": ' + "x" * 100_000, "at character 6"),
    (json.dumps({"k" * 100_000: "\ud83d"}), "half a surrogate pair in the text at $.kkk"),
]


@pytest.mark.parametrize(("arguments", "where"), REFUSED, ids=lambda value: repr(value)[:30])
def test_anything_else_is_refused_with_its_position_and_never_repaired(arguments: object, where: str) -> None:
    assert where in error(arguments)


def test_64_levels_and_a_million_characters_are_taken() -> None:
    assert parse_tool_arguments(nested(64, '"b": 1')).ok
    assert parse_tool_arguments(LONGEST).ok


@pytest.mark.parametrize("text", ['{"q": "x" "n": 1}', """{"token": "it's" "n": 1}"""])
def test_an_error_quotes_the_text_around_its_position(text: str) -> None:
    refusal = error(text)

    assert f"near {text!r}" in refusal
    assert "n" not in without_quote(refusal).partition("at character ")[2].partition(";")[0]
    assert without_quote(refusal).endswith("; send one JSON object")


def test_a_tool_is_found_only_by_its_exact_name() -> None:
    assert resolve_tool_instance({"search": 1}, "search") == 1
    assert resolve_tool_instance({"search": 1}, "Search") is None
    assert resolve_tool_instance(None, "search") is None


def test_an_unknown_name_is_answered_with_the_known_names() -> None:
    assert unknown_tool_error("X", ["a", "b"]) == "there is not a tool named X; the tools are: a, b"
    assert unknown_tool_error("X", []) == "there is not a tool named X; there are no tools"
