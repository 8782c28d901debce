"""One parameter as the model sees it: valid JSON Schema, whatever Dify or an MCP server declares."""

import json
import socket
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, meta

from internal.calls.judging import ArgumentsInvalid, validate_arguments
from internal.node.tools import build_toolbox
from tests.support.wire import parameter, tool
from tests.unit.builders import file, parameter_of, tool_of

JSON_TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}
PLAIN_KINDS = [
    "string",
    "secret-input",
    "text-input",
    "select",
    "dynamic-select",
    "date",
    "number",
    "boolean",
    "checkbox",
    "object",
    "array",
    "any",
    "date-range",
]
ADDRESS = {
    "type": "object",
    "properties": {"home": {"$ref": "#/$defs/place"}, "rest": {"type": "array", "items": {"$ref": "#/$defs/place"}}},
    "required": ["home"],
    "$defs": {"place": {"type": "object", "properties": {"zip": {"type": "integer"}}, "required": ["zip"]}},
}


def mcp(schema: dict[str, Any], kind: str = "object", name: str = "x", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return parameter(name, kind, input_schema=schema, **more)


def types_in(schema: object) -> set[str]:
    if isinstance(schema, dict):
        own = schema.get("type")
        listed = own if isinstance(own, list) else [own] if isinstance(own, str) else []
        return set(listed).union(*(types_in(value) for value in schema.values()))
    if isinstance(schema, list):
        return set[str]().union(*map(types_in, schema))
    return set()


@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_every_type_of_dify_becomes_json_schema(kind: str) -> None:
    found = tool_of(parameter("x", kind, options=[{"value": "a"}], min=1, max=5, llm_description="What it is."))

    meta.validate(found.prompt_tool.parameters)
    schema = found.prompt_tool.parameters["properties"]["x"]
    assert types_in(schema) <= JSON_TYPES
    assert schema["description"] == "What it is."


@pytest.mark.parametrize(
    ("more", "schema"),
    [
        (
            {"options": [{"value": "a", "label": {}}, {"value": "b", "label": {}}]},
            {"type": "string", "enum": ["a", "b"]},
        ),
        ({"options": None}, {"type": "string"}),
        (
            {"options": [{"value": "a"}], "multiple": True},
            {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        ),
    ],
)
def test_options_of_a_select_are_an_enum(more: dict[str, Any], schema: dict[str, Any]) -> None:
    assert parameter_of("select", **more).schema == schema


@pytest.mark.parametrize(
    ("more", "bounds"),
    [
        ({"min": 0, "max": 1.5}, {"minimum": 0, "maximum": 1.5}),
        ({"min": None, "max": None}, {}),
    ],
)
def test_bounds_of_a_number_are_numbers(more: dict[str, Any], bounds: dict[str, Any]) -> None:
    assert parameter_of("number", **more).schema == {"type": "number", **bounds}


@pytest.mark.parametrize(
    ("more", "required"),
    [({}, False), ({"required": True}, True), ({"required": True, "default": "d"}, False), ({"required": None}, False)],
)
def test_with_a_default_there_is_nothing_to_ask_the_model_for(more: dict[str, Any], required: bool) -> None:  # noqa: FBT001
    found = tool_of(parameter("x", **more))

    assert found.prompt_tool.parameters["required"] == (["x"] if required else [])


def test_a_file_parameter_takes_the_names_of_this_turns_files() -> None:
    raw = tool("read", parameter("one", "file", required=True), parameter("all", "files"))

    schema = build_toolbox([raw], files={"a.png": file("a.png"), "b.pdf": file("b.pdf")}).prompt_tools[0].parameters

    names = {"type": "string", "enum": ["a.png", "b.pdf"]}
    assert schema["properties"] == {"one": names, "all": {"type": "array", "items": names}}
    assert schema["required"] == ["one"]


@pytest.mark.parametrize(("required", "tools"), [(False, ["read"]), (True, [])])
def test_without_files_a_file_parameter_is_left_out(required: bool, tools: list[str]) -> None:  # noqa: FBT001 - a table
    toolbox = build_toolbox([tool("read", parameter("one", "file", required=required))])

    assert list(toolbox.tools) == tools
    assert "this turn has none" in toolbox.notes[0]


@pytest.mark.parametrize("name", ["x", "a/b", "a~b", "a b", "日本"])
def test_local_references_of_an_mcp_schema_keep_their_targets(name: str) -> None:
    whole = tool_of(mcp(ADDRESS, name=name)).prompt_tool.parameters
    meta.validate(whole)
    check = Draft202012Validator(whole)

    assert check.is_valid({name: {"home": {"zip": 1}, "rest": [{"zip": 2}]}})
    assert not check.is_valid({name: {"home": {"zip": "no"}}})


def test_an_mcp_schema_may_refer_to_itself_as_a_whole() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}}
    found = tool_of(mcp(tree))

    assert validate_arguments(found, {"x": {"child": {"n": 1}}}) == {"x": {"child": {"n": 1}}}
    with pytest.raises(ArgumentsInvalid, match=r"x\.child\.n"):
        validate_arguments(found, {"x": {"child": {"n": "no"}}})
    assert not Draft202012Validator(found.prompt_tool.parameters).is_valid({"x": {"child": {"n": "no"}}})


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "strnig"},
        {"type": "object", "properties": 5},
        {"type": "string", "minLength": "x"},
        {"type": "string", "pattern": 5},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "https://host.test/schema.json"},
    ],
    ids=json.dumps,
)
def test_a_broken_schema_is_named_and_only_its_check_is_skipped(broken: dict[str, Any]) -> None:
    toolbox = build_toolbox([tool("search", mcp(broken, llm_description="What."), parameter("q"))])

    whole = toolbox.prompt_tools[0].parameters
    meta.validate(whole)
    assert whole["properties"]["x"] == {"type": "object", "description": "What."}
    assert validate_arguments(toolbox.tools["search"], {"x": {"any": "thing"}}) == {"x": {"any": "thing"}}
    (note,) = toolbox.notes
    assert "'x'" in note


def test_a_remote_reference_is_never_fetched() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)  # noqa: FBT003 - the name of the standard library
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        for schema in ({"$ref": address}, {"$dynamicRef": address}, {"$schema": address, "type": "object"}):
            validate_arguments(tool_of(mcp(schema)), {"x": {"a": 1}})

        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_pattern_that_is_none_costs_its_check_alone_and_is_named() -> None:
    properties = {"a": {"type": "string", "pattern": "["}, "b": {"type": "integer"}}
    toolbox = build_toolbox([tool("search", mcp({"type": "object", "properties": properties}))])

    assert validate_arguments(toolbox.tools["search"], {"x": {"a": "?"}}) == {"x": {"a": "?"}}
    with pytest.raises(ArgumentsInvalid, match=r"x\.b"):
        validate_arguments(toolbox.tools["search"], {"x": {"b": "no"}})
    assert "nothing is checked there: the pattern '['" in toolbox.notes[0]


def test_a_lost_reference_is_named_and_what_is_next_to_it_still_applies() -> None:
    """Dify drops the definitions of MCP servers."""
    lost = {"$ref": "#/$defs/Row", "type": "object", "required": ["id"]}
    raw = tool("search", mcp({"type": "array", "items": lost, "default": {"$ref": "#/no"}}, "array"))

    toolbox = build_toolbox([raw])

    told = toolbox.prompt_tools[0].parameters["properties"]["x"]
    assert told == {"type": "array", "items": {"type": "object", "required": ["id"]}, "default": {"$ref": "#/no"}}
    assert validate_arguments(toolbox.tools["search"], {"x": [{"id": 1}]}) == {"x": [{"id": 1}]}
    with pytest.raises(ArgumentsInvalid, match='"id" is a required property'):
        validate_arguments(toolbox.tools["search"], {"x": [{}]})
    (note,) = toolbox.notes
    assert "nothing is checked there: the reference '#/$defs/Row' leads nowhere" in note


@pytest.mark.parametrize("own", [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a", "description": "A."}, {"title": "A"}])
def test_a_schema_that_loses_every_keyword_becomes_the_plain_type(own: dict[str, Any]) -> None:
    toolbox = build_toolbox([tool("search", mcp(own))])

    assert toolbox.prompt_tools[0].parameters["properties"]["x"]["type"] == "object"
    assert validate_arguments(toolbox.tools["search"], {"x": '{"a": 1}'}) == {"x": {"a": 1}}
    assert "nothing is left of it" in toolbox.notes[0]
