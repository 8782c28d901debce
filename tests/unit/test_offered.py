"""Names and schemas as models are told them: which names are safe, and which properties keep their own."""

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from internal.calls.judging import validate_arguments
from internal.node.offered import safe_names, safe_property_names, with_property_names
from internal.node.tools import build_toolbox
from tests.support.builders import file, tool_of
from tests.support.generators import text_from_the_host
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


def test_a_secret_parameter_keeps_its_name_by_which_its_values_are_hidden() -> None:
    found = tool_of(parameter("$key", "secret-input"), parameter("_key"), parameter("$q"))

    assert list(found.prompt_tool.parameters["properties"]) == ["$key", "_key", "_q"]
    assert validate_arguments(found, {"$key": "a", "_q": "b"}) == {"$key": "a", "$q": "b"}


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
