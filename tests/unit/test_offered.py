"""Names and schemas as models are told them: which names are safe, and which properties keep their own."""

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema_rs import meta

from internal.call import ToolCall
from internal.calls.judging import validate_arguments
from internal.model.turn import given_secrets
from internal.node.offered import offered_schema, safe_names, safe_property_names, with_property_names
from internal.node.tools import Toolbox, build_toolbox
from tests.support.builders import file, tool_of
from tests.support.generators import small_schemas, text_from_the_host
from tests.support.wire import parameter, tool

NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


@given(st.lists(text_from_the_host | st.sampled_from(["$a", "_a", "_a_2", "#a", "a.b-c", "", "x" * 65, "x" * 64])))
@example(["検", "索", "parameter", "$", "_"])
def test_each_name_that_an_api_refuses_has_one_that_all_take_and_no_other_name_is(names: list[str]) -> None:
    safe = safe_names(names)

    assert set(safe) == {name for name in names if not NAME.fullmatch(name)}
    assert all(NAME.fullmatch(name) for name in safe.values())
    assert len({*names, *safe.values()}) == len(set(names)) + len(safe)
    assert safe_names(names) == safe


@given(small_schemas)
def test_what_is_offered_is_a_schema_to_which_no_api_objects(schema: dict[str, Any]) -> None:
    before = repr(schema)

    offered = offered_schema(schema)

    meta.validate(offered)
    assert offered_schema(offered) == offered
    assert repr(schema) == before
    for part in parts(offered):
        assert all(isinstance(option, str) for option in part.get("enum", []))
        assert part.get("type") != "array" or "items" in part


def parts(schema: object) -> Iterator[dict[str, Any]]:
    """Each schema in a schema; no property of the generated ones is called like a keyword."""
    if isinstance(schema, dict):
        yield schema
        yield from chain.from_iterable(map(parts, schema.values()))
    elif isinstance(schema, list):
        yield from chain.from_iterable(map(parts, schema))


def test_a_safe_name_says_as_much_as_it_can() -> None:
    names = ["$filter", "filter[x]", "検", "a" * 70, "a" * 71, "#filter"]

    assert safe_names(names) == {
        "$filter": "_filter",
        "filter[x]": "filter_x_",
        "検": "parameter",
        "a" * 70: "a" * 64,
        "a" * 71: "a" * 62 + "_2",
        "#filter": "_filter_2",
    }


def test_the_names_are_the_same_in_each_turn_whatever_is_left_out() -> None:
    raw = tool("send", parameter("$a", "file"), parameter("#a"), parameter("%a", form="form"))

    without = build_toolbox([raw])
    with_file = build_toolbox([raw], files={"a.png": file()})

    assert [each.name for each in without.tools["send"].parameters.values()] == ["_a_2"]
    assert [each.name for each in with_file.tools["send"].parameters.values()] == ["_a", "_a_2"]


@pytest.mark.parametrize("given", ["_key_2", "$key"])
def test_what_a_model_gives_to_a_secret_parameter_is_found_under_either_name(given: str) -> None:
    found = tool_of(parameter("$key", "secret-input"), parameter("_key"), parameter("$q"))
    call = ToolCall("c1", "search", json.dumps({given: "hunter2-hunter2", "_q": "b"}))

    assert list(found.prompt_tool.parameters["properties"]) == ["_key_2", "_key", "_q"]
    assert validate_arguments(found, call.parsed.args) == {"$key": "hunter2-hunter2", "$q": "b"}
    assert list(given_secrets(call, Toolbox().with_tool(found))) == ["hunter2-hunter2"]


OBJECT: dict[str, Any] = {"type": "object", "properties": {"$a": {"type": "integer"}}, "required": ["$a", "$b"]}
KEEPS = {
    "its parts apply together": {**OBJECT, "allOf": [{"required": ["$a"]}]},
    "patterns of names": {**OBJECT, "patternProperties": {r"^\\$": {}}},
    "names that depend on others": {**OBJECT, "dependentRequired": {"$a": ["b"]}},
    "a recursion": {**OBJECT, "properties": {"$a": {"$ref": "#"}}},
    "a pointer to a property": {**OBJECT, "properties": {"$a": {}, "b": {"items": {"$ref": "#/properties/$a"}}}},
    "a definition that leads back": {**OBJECT, "$defs": {"a": {"$ref": "#"}}},
    "names that all take": {"type": "object", "properties": {"a": {}}, "required": ["b"]},
    "no properties": {"type": "object"},
}


@pytest.mark.parametrize("schema", KEEPS.values(), ids=KEEPS)
def test_properties_keep_their_names_where_other_parts_of_the_schema_depend_on_them(schema: dict[str, Any]) -> None:
    assert safe_property_names(schema) == {}


def test_properties_are_renamed_with_what_is_required_and_not_inside() -> None:
    inner = {"$ref": "#/$defs/a"}
    schema = {**OBJECT, "properties": {"$a": inner, "c": OBJECT, "$d": True}, "$defs": {"a": OBJECT}}

    names = safe_property_names(schema)

    assert names == {"$a": "_a", "$d": "_d", "$b": "_b"}
    assert with_property_names(schema, names) == {
        "type": "object",
        "properties": {"_a": {**inner, "description": 'Its full name is "$a".'}, "c": OBJECT, "_d": True},
        "required": ["_a", "_b"],
        "$defs": {"a": OBJECT},
    }
    assert with_property_names({"properties": {"$a": True}}, {"$a": "_a"}) == {"properties": {"_a": True}}
