"""Texts that were pasted, or that Dify wrote in place of a variable: read as the JSON that they mean."""

import ast
import json
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.errors import InvalidParameters
from internal.node.params import StrategyParams, read_params
from internal.node.tools import build_toolbox
from internal.node.virtual_tools import answer_tool
from internal.policy import build_system_instruction
from internal.sources import read_context
from internal.text.texts import looks_like_selector, read_pasted
from tests.support.wire import model, tool
from tests.unit.generators import any_text, joined, json_objects, json_values

MARK = "\ufeff"
VARIABLE = "looks like a variable that does not exist"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "default": None}}, "additionalProperties": False}


def read(**given: Any) -> StrategyParams:  # noqa: ANN401 - whatever a host may send
    return read_params({"model": model(), "query": "Why?", **given}, StrategyParams)


@given(st.lists(json_values, max_size=4) | json_objects)
def test_pythons_repr_of_a_list_or_object_is_read_like_its_json(value: object) -> None:
    assert json.loads(read_pasted(repr(value))) == value
    assert json.loads(read_pasted(json.dumps(value))) == value


@given(any_text | joined(["[", "{", "'a'", '"', ",", ":", "1", "-", "None", "nan", "b''", "(", "}", "]", " ", "\\"]))
def test_text_that_is_neither_json_nor_a_repr_stays_unchanged(text: str) -> None:
    with warnings.catch_warnings(action="error"):
        meant = read_pasted(text)

    if meant != text and MARK not in text:
        assert meant == json.dumps(ast.literal_eval(text.strip()), ensure_ascii=False)


@pytest.mark.parametrize(
    "text",
    [
        *("{1, 2}", "[b'a']", "[1e999]", "[1 + 1]", "[f'{1}']", "[search]", "[__import__('os')]", "{'a': {'b'}}"),
        # nested too deeply for Python's parser, or too long to be parsed at once
        *("[" * 90_000, "['x', " + "[" * 90_000, "[" + "-" * 99_000 + "1]", "['" + "x" * 100_000 + "']"),
    ],
    ids=lambda text: text[:7],
)
def test_a_repr_of_other_types_than_those_of_json_is_not_read(text: str) -> None:
    assert read_pasted(text) == text


@pytest.mark.parametrize("before", [MARK, f" \n{MARK}", f"{MARK}{MARK}"], ids=ascii)
def test_a_byte_order_mark_is_not_part_of_the_pasted_text(before: str) -> None:
    assert read_pasted(before + '{"a": 1}') == '{"a": 1}'
    assert read_pasted(before + "plain") == "plain"
    assert read_pasted(f"a{MARK}b") == f"a{MARK}b"


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        (f'{MARK}["search", "acme/clock"]', ("search", "acme/clock")),
        (" ['search', None, 'acme/clock']\n", ("search", "acme/clock")),
        (f"{MARK}search, acme/clock", ("search", "acme/clock")),
        (["['search', 'acme/clock']"], ("search", "acme/clock")),
        (["search", "acme/clock"], ("search", "acme/clock")),
        ('[""]', ()),
        ("[None]", ()),
        ("[search", ("[search",)),
        ("[1, 2", ("[1", "2")),
    ],
    ids=ascii,
)
def test_allowed_tools_may_be_the_text_of_a_list(given: object, allowed: tuple[str, ...]) -> None:
    assert read(allowed_tools=given).allowed_tools == allowed


@pytest.mark.parametrize("write", [json.dumps, repr])
def test_fields_that_hold_json_may_be_pasted_or_come_from_a_variable(write: Any) -> None:  # noqa: ANN401
    form = answer_tool(MARK + write(SCHEMA)).check
    prompt = build_system_instruction("", MARK + write({"persistence_policy": False, "extra_policy": "It's ours."}))
    context = [{"title": "Leave", "content": "It's 30 days."}, {"title": "Pay", "content": "Monthly."}]

    assert form is not None
    assert form.schema == SCHEMA
    assert "<persistence>" not in prompt
    assert prompt.endswith("\n\nIt's ours.")
    assert read_context(MARK + write(context)) == read_context(context)


@pytest.mark.parametrize("text", ["{'type': 'object', 'a': {1}}", "{'type': 'object', 'x': '\\ud83d'}", "['object']"])
def test_a_repr_that_is_not_a_schema_is_refused_like_json(text: str) -> None:
    with pytest.raises(InvalidParameters, match="parameter 'answer_schema'"):
        answer_tool(text)


@pytest.mark.parametrize("text", ["start.tools", " 1732007415808.text\n", "sys.query", "node.result.items"])
def test_a_bare_selector_is_recognised(text: str) -> None:
    assert looks_like_selector(text)


@pytest.mark.parametrize("text", ["3.14", "search", "a.b c", "See start.tools", "{{#a.b#}}", "a..b", ["a.b"], None])
def test_other_values_are_not_selectors(text: object) -> None:
    assert not looks_like_selector(text)


def test_a_missing_variable_is_named() -> None:
    with pytest.raises(InvalidParameters, match=rf"parameter 'answer_schema': 'start\.schema' {VARIABLE}"):
        answer_tool("start.schema")
    for name in ("context", "instruction", "tools", "files"):
        assert read(**{name: "start.docs"}).notes[0].startswith(f"{name}: 'start.docs' {VARIABLE}")
    assert read(query="example.com").notes == ()
    notes = list[str]()
    build_system_instruction("", "conversation.policy", note=notes.append)
    assert notes[0].startswith(f"prompt_policy_overrides: 'conversation.policy' {VARIABLE}")
    notes = [*build_toolbox([tool("search")], allowed=["start.tools"]).notes]
    assert [note for note in notes if "'start.tools'" in note and VARIABLE in note]
