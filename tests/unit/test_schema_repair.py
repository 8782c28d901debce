"""Plain mistakes in the schema of a tool's parameter cost no more than the place where they stand."""

from typing import Any

import pytest
from jsonschema_rs import meta

from internal.calls.judging import ArgumentsInvalid, validate_arguments
from internal.node.schema import SchemaUnusable, repaired
from internal.node.tools import Toolbox, build_toolbox
from tests.support.wire import parameter, tool

INTEGER = {"type": "integer"}


def offered(own: dict[str, Any], kind: str = "object") -> Toolbox:
    toolbox = build_toolbox([tool("search", parameter("x", kind, input_schema=own, llm_description="What."))])
    meta.validate(toolbox.prompt_tools[0].parameters)
    return toolbox


def told(toolbox: Toolbox) -> Any:  # noqa: ANN401 - JSON Schema
    """What the model is told of the parameter."""
    return toolbox.prompt_tools[0].parameters["properties"]["x"]


def taken(toolbox: Toolbox, value: object) -> object:
    return validate_arguments(toolbox.tools["search"], {"x": value})["x"]


def refused(toolbox: Toolbox, value: object) -> str:
    with pytest.raises(ArgumentsInvalid) as refusal:
        taken(toolbox, value)
    return str(refusal.value)


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize(
    "reference", ["#/$defs/Filter", "https://host.test/a.json", "other.json#/x", "#anchor", "#/properties/n/type"]
)
def test_a_reference_without_a_target_is_not_checked(keyword: str, reference: str) -> None:
    lost = {keyword: reference, "description": "Which rows."}
    own = {"type": "object", "properties": {"filter": lost, "n": INTEGER, "all": {"items": {keyword: reference}}}}

    toolbox = offered(own)

    assert told(toolbox) == {
        "type": "object",
        "properties": {"filter": {"description": "Which rows."}, "n": INTEGER, "all": {"items": {}}},
        "description": "What.",
    }
    assert taken(toolbox, {"filter": {"any": "thing"}, "n": 1, "all": [1]}) == {
        "filter": {"any": "thing"},
        "n": 1,
        "all": [1],
    }
    assert "'x.n' must be an integer, got a string" in refused(toolbox, {"filter": 1, "n": "one"})
    (note,) = toolbox.notes
    assert "nothing is checked there" in note
    assert note.count(reference) == 1


def test_keywords_beside_a_lost_reference_still_apply() -> None:
    toolbox = offered(
        {"type": "array", "items": {"$ref": "#/$defs/Row", "type": "object", "required": ["id"]}}, "array"
    )

    assert taken(toolbox, [{"id": 1}]) == [{"id": 1}]
    assert "'id' is a required property" in refused(toolbox, [{}])


def test_values_and_names_that_look_like_references_stay_unchanged() -> None:
    own = {"properties": {"$ref": {"type": "string"}, "a": {"const": {"$ref": "#/no"}, "default": {"$ref": "#/no"}}}}

    assert repaired(own, pytest.fail) == own


@pytest.mark.parametrize("own", [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a", "description": "A."}, {"title": "A"}])
def test_a_schema_that_loses_every_keyword_becomes_the_plain_type(own: dict[str, Any]) -> None:
    toolbox = offered(own)

    assert told(toolbox)["type"] == "object"
    assert taken(toolbox, '{"a": 1}') == {"a": 1}
    assert "nothing is left of it" in toolbox.notes[0]


@pytest.mark.parametrize(
    ("own", "meant"),
    [
        ({"type": "array", "enum": ["a", "b"]}, {"type": "array", "items": {"enum": ["a", "b"]}}),
        (
            {"type": "array", "items": {"type": "string"}, "enum": ["a", "b"]},
            {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        ),
        (
            {"type": "array", "items": {"enum": ["a", "b"]}, "enum": ["c"]},
            {"type": "array", "items": {"enum": ["a", "b"]}},
        ),
        (
            {"type": ["array", "null"], "enum": ["a", "b", None]},
            {"type": ["array", "null"], "items": {"enum": ["a", "b"]}},
        ),
    ],
)
def test_options_of_an_array_apply_to_its_items(own: dict[str, Any], meant: dict[str, Any]) -> None:
    toolbox = offered(own, "array")

    assert told(toolbox) == {**meant, "description": "What."}
    assert taken(toolbox, ["b", "a"]) == ["b", "a"]
    assert taken(toolbox, '["a"]') == ["a"]
    assert 'value "c" not in options ["a", "b"]' in refused(toolbox, ["a", "c"])
    assert toolbox.notes == ()


def test_options_of_an_array_inside_are_those_of_its_items_too() -> None:
    toolbox = offered({"type": "object", "properties": {"tags": {"type": "array", "enum": ["a"]}}})

    assert taken(toolbox, {"tags": ["a"]}) == {"tags": ["a"]}
    assert "'x.tags[0]'" in refused(toolbox, {"tags": ["b"]})


@pytest.mark.parametrize(
    "own",
    [
        {"type": "array", "enum": [["a"], ["b"]]},
        {"type": "array", "enum": [[], "a"]},
        {"type": ["array", "string"], "enum": ["a", "b"]},
        {"type": "string", "enum": ["a"]},
        {"enum": ["a"]},
    ],
)
def test_options_that_are_possible_stay(own: dict[str, Any]) -> None:
    assert repaired(own, pytest.fail) == own


def test_a_schema_nested_beyond_measure_is_not_used() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"items": deep}

    with pytest.raises(SchemaUnusable, match="nested too deeply"):
        repaired(deep, pytest.fail)
