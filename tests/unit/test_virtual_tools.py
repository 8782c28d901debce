"""Virtual tools: what of a plan, a judgement or an answer is taken, and which schemas an answer may have."""

import json
from typing import Any

import pytest
from jsonschema_rs import meta

from internal.call import ToolCall, ValidCall
from internal.calls.judging import RepeatGuard, judge_calls
from internal.errors import InvalidParameters
from internal.node.tools import Tool, Toolbox
from internal.node.virtual_tools import (
    RESERVED_NAMES,
    answer_tool,
    find_tools_tool,
    plan_tool,
    read_result_tool,
    read_skill_tool,
    reflection_tool,
    review_tool,
)

CITY = json.dumps({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
READ = read_result_tool(lambda _: ("", None))
FIND = find_tools_tool(50, lambda _: ("", None))
SKILL = read_skill_tool(["a", "b"], lambda _: ("", None))
ALL = [plan_tool(4), reflection_tool(), review_tool(), answer_tool(CITY), READ, FIND, SKILL]


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_the_model_gets_a_schema_of_an_object(tool: Tool) -> None:
    shown = tool.prompt_tool

    assert shown.name in RESERVED_NAMES
    assert shown.description
    assert shown.parameters["type"] == "object"
    meta.validate(shown.parameters)


def test_each_virtual_tool_has_its_name() -> None:
    assert {tool.name for tool in ALL} == RESERVED_NAMES


TAKEN: list[tuple[Tool, dict[str, Any]]] = [
    (plan_tool(3), {"subtasks": ["a", "b", "c"]}),
    (plan_tool(3), {"subtasks": '["a", "b"]'}),
    (reflection_tool(), {"is_completed": "true", "advice": "Go on."}),
    (review_tool(), {"passes": True, "problems": ["Long."]}),
    (review_tool(), {"passes": "false", "problems": ["Long.", "No source."]}),
    (READ, {"id": "r1", "offset": None, "find": "a"}),
]
REFUSED: list[tuple[Tool, dict[str, Any]]] = [
    (plan_tool(3), {"subtasks": ["a", "b", "c", "d"]}),
    (plan_tool(3), {"subtasks": []}),
    (plan_tool(3), {"subtasks": ["a", " "]}),
    (plan_tool(3), {"subtasks": ["a"], "why": "b"}),
    (reflection_tool(), {"advice": "Go on."}),
    (reflection_tool(), {"is_completed": 1, "advice": ""}),
    (review_tool(), {"passes": False, "problems": []}),
    (review_tool(), {"passes": False, "problems": [" "]}),
    (review_tool(), {"passes": 80, "problems": []}),
    (READ, {"id": "r1", "find": "a" * 201}),
]


@pytest.mark.parametrize(
    ("tool", "arguments", "fits"), [(*row, rows is TAKEN) for rows in (TAKEN, REFUSED) for row in rows]
)
def test_a_plan_a_judgement_or_a_place_in_a_result_is_taken_if_it_says_what_it_must(
    tool: Tool, arguments: dict[str, Any], *, fits: bool
) -> None:
    assert is_taken(tool, arguments) is fits


def is_taken(tool: Tool, arguments: dict[str, Any]) -> bool:
    call = ToolCall("call_1", tool.name, json.dumps(arguments))
    (planned,) = judge_calls([call], Toolbox({tool.name: tool}), RepeatGuard())
    return isinstance(planned, ValidCall)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("[]", "expected a JSON object, got an array"),
        ("hello", "Expecting value at character 0, near 'hello'"),
        ('{"maximum": ' + "9" * 5_000 + "}", "a number has more than 4,300 digits"),
    ],
)
def test_the_error_of_an_unusable_schema_says_what_would_be_right(schema: str, reason: str) -> None:
    with pytest.raises(InvalidParameters) as raised:
        answer_tool(schema)

    assert str(raised.value) == f"parameter 'answer_schema': it must be the JSON Schema of an object; {reason}"


def test_the_dialect_of_a_schema_is_not_shown_to_the_model() -> None:
    schema = json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **json.loads(CITY)})

    assert answer_tool(schema).prompt_tool.parameters == json.loads(CITY)


def shown(**schema: object) -> dict[str, Any]:
    return answer_tool(json.dumps(schema)).prompt_tool.parameters


X = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def test_keywords_next_to_a_reference_apply_together_with_its_target() -> None:
    schema = {"$ref": "#/$defs/a", "properties": {"y": {}}, "required": ["y"], "$defs": {"a": X}}

    assert shown(**schema) == {
        "type": "object",
        "properties": {"y": {}},
        "required": ["y"],
        "allOf": [{"$ref": "#/$defs/a"}],
        "$defs": {"a": X},
    }
    assert not is_taken(answer_tool(json.dumps(schema)), {"y": 1})
    assert is_taken(answer_tool(json.dumps(schema)), {"x": 1, "y": 1})


def test_an_answer_schema_whose_references_lead_in_a_circle_is_an_error() -> None:
    with pytest.raises(InvalidParameters, match="leads back to itself"):
        answer_tool('{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}')
