"""What an Agent node makes of its settings: constants, templates and selectors of variables."""

from typing import Any

import pytest

from devhost.errors import NodeParameterError, ParameterError
from devhost.node.parameters import NodeVariables, node_parameters, resolved
from devhost.plugin.casting import cast_parameter
from devhost.plugin.declaration import Parameter
from support.node_golden import LINES, Line, of_kind, variables

FILE = {"dify_model_identity": "__dify__file__", "url": "http://files/1", "type": "image", "filename": "cat.png"}


def declared(given: dict[str, Any]) -> Parameter:
    label = {"en_US": "P"}
    options = [{"value": value, "label": label} for value in given.get("options", [])]
    return Parameter.model_validate({"name": "p", "label": label, **given, "options": options})


def setting(dsl: dict[str, Any]) -> dict[str, Any]:
    if dsl["type"] == "variable":
        return {"variable": ".".join(dsl["value"])}
    return {"constant": dsl["value"]}


@pytest.mark.parametrize("line", of_kind("node_parameter"))
def test_golden_node_parameter(line: Line) -> None:
    settings = {} if line["dsl"] is None else {"p": setting(line["dsl"])}
    if "node_shows" in line:
        with pytest.raises(NodeParameterError) as refusal:
            node_parameters([declared(line["declared"])], settings, NodeVariables(variables()))
        assert refusal.value.words == line["node_shows"]
        return
    value = node_parameters([declared(line["declared"])], settings, NodeVariables(variables()))["p"]
    assert value == line["plugin_gets"]
    assert type(value) is type(line["plugin_gets"])


def test_every_golden_line_is_of_a_kind_that_a_test_reads() -> None:
    assert {line["kind"] for line in LINES.values()} == {"about", "node_parameter", "node_run", "node_error"}


@pytest.mark.parametrize("selector", ["n", "n.o.x", "n.o.a.b.c", "n.file.colour", "n.list.length", "n.gone"])
def test_the_error_for_a_selector_without_a_value_names_it(selector: str) -> None:
    pool = NodeVariables({"n.o": {"a": {"b": 1}}, "n.file": FILE, "n.list": [1]})
    with pytest.raises(NodeParameterError, match=r"^Variable '\[.*\]' does not exist$"):
        resolved({"variable": selector}, pool)


def test_references_within_other_constants_are_filled_and_what_is_broken_by_it_is_a_text() -> None:
    pool = NodeVariables({"n.text": "T", "n.quoted": '"'})
    assert resolved({"k": ["{{#n.text#}}"]}, pool) == {"k": ["T"]}
    assert resolved(["{{#n.quoted#}}"], pool) == '["""]'


@pytest.mark.parametrize("name", ["items", "start.two words", "a.b.c", "start.", "start.1"])
def test_a_variable_has_a_name_that_a_template_can_name(name: str) -> None:
    with pytest.raises(ParameterError, match=r"the name must be NODE.NAME"):
        NodeVariables({name: 1})


@pytest.mark.parametrize(
    ("kind", "more", "value", "expected"),
    [
        ("select", {"options": ["a", "b"], "multiple": True}, ["b", "a"], ["b", "a"]),
        ("select", {"options": ["a", "b"], "multiple": True, "default": ["b"]}, [], ["b"]),
        ("select", {"options": ["a", "b"], "multiple": True}, None, []),
        ("dynamic-select", {"multiple": True}, "c", ["c"]),
        ("array[tools]", {"required": True}, [], []),
        ("array[tools]", {}, None, None),
        ("files", {}, FILE, [FILE]),
        ("file", {}, FILE, FILE),
        ("file", {}, [FILE], FILE),
    ],
)
def test_values_that_no_recording_has(kind: str, more: dict[str, Any], value: object, expected: object) -> None:
    assert cast_parameter(declared({"type": kind, **more}), value) == expected


@pytest.mark.parametrize(
    ("kind", "more", "value", "words"),
    [
        ("select", {"options": ["a", "b"], "required": True}, "", "p is empty: it needs a value"),  # before the options
        ("select", {"options": ["1"]}, 1, "value 1 not in options"),
        ("model-selector", {}, "gpt-5", "The selector must be a dictionary"),
        ("file", {}, [FILE, FILE], "only accepts one file"),
    ],
)
def test_refusals_that_no_recording_has(kind: str, more: dict[str, Any], value: object, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        cast_parameter(declared({"type": kind, **more}), value)
