"""Calls are judged before any runs: arguments are checked and converted, and endless loops of one call are stopped."""

import json
from typing import Any

import pytest

from internal.call import ToolCall, ValidCall
from internal.calls.judging import (
    ArgumentsInvalid,
    call_parameters,
    validate_arguments,
)
from internal.node.tools import Tool
from internal.node.virtual_tools import answer_tool
from tests.support.builders import file, tool_of, toolbox_of
from tests.support.wire import parameter

SEARCH = tool_of(
    parameter("q", required=True),
    parameter("limit", "number", min=1, max=10),
    parameter("exact", "boolean"),
    parameter("order", "select", options=[{"value": "up"}, {"value": "down"}]),
    parameter("tags", "array"),
    parameter("filter", "object"),
    parameter("page", "number", required=True, default=1),
)


def values(*options: str) -> list[dict[str, Any]]:
    """Options as Dify sends them."""
    return [{"value": option, "label": {"en_US": option}} for option in options]


def problem(tool: Tool, **arguments: Any) -> str:  # noqa: ANN401 - whatever a model writes
    with pytest.raises(ArgumentsInvalid) as refusal:
        validate_arguments(tool, arguments)
    text = str(refusal.value)
    assert text.startswith("tool arguments validation error: ")
    return text.removeprefix("tool arguments validation error: ")


def valid(kind: str, value: object, **more: Any) -> object:  # noqa: ANN401 - any field of a parameter
    return validate_arguments(tool_of(parameter("x", kind, **more)), {"x": value})["x"]


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("number", "7", 7),
        ("number", " 7.5 ", 7.5),
        ("boolean", "true", True),
        ("array", "[1, 2]", [1, 2]),
        ("object", '{"a": 1}', {"a": 1}),
        ("string", 7, "7"),
        ("string", True, "true"),
        ("string", {"a": None, "b": ["é"]}, '{"a": null, "b": ["é"]}'),
        ("select", 3, "3"),
        ("date-range", {"start": 2024}, {"start": "2024"}),
    ],
)
def test_values_are_converted_when_nothing_is_lost(kind: str, given: object, expected: object) -> None:
    value = valid(kind, given)

    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("options", "given", "taken"),
    [
        (["true", "false"], False, "false"),
        (["1", "2"], 2.0, "2"),
        (["2.0", "2"], 2.0, "2.0"),
        (["0.5"], 0.5, "0.5"),
    ],
)
@pytest.mark.parametrize("own", [None, {"type": "string"}, {}], ids=["select", "mcp", "mcp without a type"])
def test_a_boolean_or_number_becomes_the_option_of_the_same_text(
    own: dict[str, Any] | None, options: list[str], given: object, taken: str
) -> None:
    more: dict[str, Any] = {"options": values(*options)} if own is None else {"input_schema": {**own, "enum": options}}

    assert valid("select", given, **more) == taken
    if own is None:
        assert valid("select", [given], multiple=True, **more) == [taken]


@pytest.mark.parametrize(
    ("given", "taken"), [(1, 1), ("1", 1), (True, True), ("true", True), (None, None), ("null", None), ("a", "a")]
)
def test_values_of_an_enum_that_are_not_texts_reach_the_tool_as_they_are_declared(given: object, taken: object) -> None:
    mixed = {"enum": [1, True, None, "a"]}
    tool = tool_of(parameter("x", "any", required=True, input_schema=mixed))
    answer = answer_tool(json.dumps({"type": "object", "properties": {"x": mixed}, "required": ["x"]}))

    assert "enum" not in tool.prompt_tool.parameters["properties"]["x"]
    for each in (tool, answer):
        assert repr(validate_arguments(each, {"x": given})) == repr({"x": taken})
        assert "not in options" in problem(each, x=2)


REFUSED: list[tuple[str, dict[str, Any], object, str]] = [
    ("number", {}, True, "must be a number, got a boolean"),
    ("number", {}, "seven", "must be a number, got a string"),
    ("number", {"min": 1}, 0, ": value 0 is less than the minimum of 1"),
    ("boolean", {}, 1, "must be a boolean, got a number"),
    ("array", {}, '{"a": 1}', "must be an array, got a string; send a JSON array or its text"),
    ("array", {}, "a, b", "must be an array, got a string; send a JSON array or its text"),
    ("array", {}, {"a": 1}, "must be an array, got an object"),
    ("object", {}, "a: 1", "must be an object, got a string; send a JSON object or its text"),
    ("select", {"options": values("a", "b")}, "A", 'value "A" not in options ["a", "b"]'),
    ("object", {"input_schema": {"type": "object", "required": ["n"]}}, {}, ': "n" is a required property'),
]


@pytest.mark.parametrize(("kind", "more", "given", "predicate"), REFUSED, ids=lambda value: repr(value)[:30])
def test_a_value_that_does_not_fit_is_refused(kind: str, more: dict[str, Any], given: object, predicate: str) -> None:
    said = problem(tool_of(parameter("x", kind, **more)), x=given)

    assert said == f"parameter 'x'{'' if predicate[0] == ':' else ' '}{predicate}"


def test_a_wrong_part_is_named_with_its_place() -> None:
    select = tool_of(parameter("x", "select", options=values("a", "b"), multiple=True))

    assert validate_arguments(select, {"x": ["a", "b"]}) == {"x": ["a", "b"]}
    assert problem(select, x=["a", "c"]) == """parameter 'x[1]' value "c" not in options ["a", "b"]"""


def test_unknown_and_missing_arguments_are_refused_and_every_problem_is_named_at_once() -> None:
    text = problem(SEARCH, limit=99, order="sideways", odd=1)

    assert "unknown argument 'odd'; valid arguments are: q, limit, exact, order, tags, filter, page" in text
    assert all(word in text for word in ("missing required argument 'q'", "'limit'", "'order'"))
    assert "valid arguments are: none" in problem(tool_of(), q="x")
    assert problem(SEARCH, q=None) == "missing required argument 'q'"


def test_nulls_of_optional_parameters_are_dropped_and_required_defaults_filled_in() -> None:
    assert validate_arguments(SEARCH, {"q": "x", "limit": None, "tags": None, "page": None}) == {"q": "x", "page": 1}


def test_a_value_given_to_a_secret_parameter_is_not_quoted() -> None:
    tool = tool_of(parameter("key", "secret-input", input_schema={"type": "string", "enum": ["a"]}))

    assert problem(tool, key="S3CR" + "abcdefghij" * 30) == "parameter 'key' does not fit"


def test_null_is_a_value_of_a_required_parameter_if_its_schema_allows_it() -> None:
    def tool(own: dict[str, Any] | None) -> Tool:
        return tool_of(parameter("x", "array", required=True, input_schema=own))

    assert validate_arguments(tool({"type": ["array", "null"]}), {"x": None}) == {"x": None}
    assert problem(tool({"type": ["array", "null"]})) == "missing required argument 'x'"
    for own in ({"type": "array"}, None):
        assert problem(tool(own), x=None) == "missing required argument 'x'"


def test_names_of_files_are_exchanged_for_the_files() -> None:
    files = (file("a.png"), file("b.pdf", "document"))
    toolbox = toolbox_of(parameter("one", "file"), parameter("all", "files"), files=files)
    tool = toolbox.tools["search"]

    arguments = validate_arguments(tool, {"one": "b.pdf", "all": ["a.png", "b.pdf"]})
    sent = call_parameters(tool, arguments, toolbox)

    assert 'value "c.png" not in options ["a.png", "b.pdf"]' in problem(tool, all=["a.png", "c.png"])
    first, second = (item.model_dump(mode="json") for item in files)
    assert sent == {"one": second, "all": [first, second]}
    assert sent["one"]["dify_model_identity"] == "__dify__file__"


def test_an_empty_text_for_an_optional_file_means_none() -> None:
    one = parameter("one", "file")
    more = parameter("more", "files")
    needed = parameter("n", "file", required=True)

    assert validate_arguments(toolbox_of(one, more, files=(file(),)).tools["search"], {"one": "", "more": ""}) == {}
    assert 'value "" not in options' in problem(toolbox_of(needed, files=(file(),)).tools["search"], n="")


OPTIONS = {"items": {"enum": [{"n": n} for n in range(400)]}}


def test_a_value_of_a_plain_type_needs_no_check_by_the_library() -> None:
    def is_plain(kind: str, value: object, **more: Any) -> bool:  # noqa: ANN401 - any field of a parameter
        return tool_of(parameter("x", kind, **more)).parameters["x"].plainly_takes(value)

    assert all(is_plain(kind, value) for kind, value in (("string", ""), ("number", 1), ("number", 1.5)))
    assert is_plain("boolean", value=True, llm_description="Whether.")
    assert not is_plain("number", value=True)
    assert not any(is_plain(kind, value) for kind, value in (("boolean", 1), ("string", None), ("object", {})))
    assert not is_plain("number", 7, max=5)
    assert not is_plain("string", "a", input_schema={"type": "string", "minLength": 2})


def test_an_argument_that_takes_too_long_to_check_is_left_to_the_tool() -> None:
    given = [{"n": 500}] * 1_000

    assert valid("array", given, input_schema={"type": "array", **OPTIONS}) == given
    assert "not in options" in problem(tool_of(parameter("x", "array", input_schema=OPTIONS)), x=given[:1])


def test_an_answer_that_takes_too_long_to_check_is_refused() -> None:
    tool = answer_tool(json.dumps({"type": "object", "properties": {"rows": OPTIONS}}))

    assert problem(tool, rows=[{"n": 1}] * 1_000) == "they could not be checked against the schema"
    assert validate_arguments(tool, {"rows": [{"n": 1}]}) == {"rows": [{"n": 1}]}


def call_of(arguments: dict[str, Any]) -> ValidCall:
    return ValidCall(ToolCall("call_1", "search", "{}"), tool_of(), arguments)


def test_the_values_of_arguments_make_another_call_and_their_order_does_not() -> None:
    assert call_of({"a": 1, "b": {"c": 2, "d": 3}}).signature == call_of({"b": {"d": 3, "c": 2}, "a": 1}).signature
    assert len({call_of({"a": value}).signature for value in (1, "1", True, 1.0)}) == 4
