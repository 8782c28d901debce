"""Large inputs from the node: cases for the benchmark of pauses."""

import json
from collections.abc import Callable

from benchmarks.answers import Json
from benchmarks.pauses import Case
from benchmarks.scenario import ANSWER, PROSE, SEARCH, Scenario, filled
from benchmarks.tool_inputs import rows
from internal.memory.records import AnswerRecord, State, UserRecord
from internal.memory.state import encode
from tests.support.wire import model, parameter, tool

SCHEMA_SIZE = 1_000
"""Number of characters in the schema of one tool."""
SCHEMAS = 600
TWO_MEGABYTES = 2_000_000


def given(**params: Callable[[int], object]) -> Callable[[int], Scenario]:
    """Return a case with these parameters, in which the model answers immediately."""
    return lambda size: Scenario([ANSWER], params={**SEARCH, **{name: made(size) for name, made in params.items()}})


def history(pattern: str, size: int, messages: int = 1) -> Json:
    """Return a model parameter with earlier turns of this total size."""
    said = filled(pattern, size // messages)
    listed = [{"role": "assistant", "content": said}, {"role": "user", "content": "And?"}] * messages
    return model(history_prompt_messages=[{"role": "user", "content": "?"}, *listed])


def state(size: int, turns: int) -> str:
    """Return the state of an earlier run, which contains only the newest turns if there are very many."""
    turn = UserRecord(text="And?"), AnswerRecord(text=filled(PROSE, size // turns))
    return encode(State(strategy="gpt5_function_calling", entries=turn * turns))


def segments(size: int) -> list[Json]:
    """Return segments in the form of the knowledge node."""
    return [
        {
            "title": f"page {number}",
            "content": filled(PROSE, 400),
            "metadata": {"document_id": str(number), "score": 0.5, "_source": "knowledge"},
        }
        for number in range(size // 500 + 1)
    ]


def schema_tool(number: int, size: int) -> Json:
    """Return a tool of an MCP server with its own schema."""
    fields = {
        f"field{number}_{position}": {"type": ["string", "null"], "enum": ["a", "b", None], "description": PROSE}
        for position in range(size // 150 + 1)
    }
    schema = {"type": "object", "properties": fields, "additionalProperties": False}
    return tool(f"tool{number}", parameter("options", "object", input_schema=schema), provider_type="mcp")


def schemas(size: int) -> list[Json]:
    count = max(1, SCHEMAS * size // TWO_MEGABYTES)
    return [schema_tool(number, SCHEMA_SIZE) for number in range(count)]


def answer_schema(size: int) -> str:
    """Return a schema with many fields."""
    fields = {f"field{number}": {"type": "string", "description": PROSE} for number in range(size // 120 + 1)}
    return json.dumps({"type": "object", "properties": fields})


def overrides(size: int) -> str:
    return json.dumps({"extra_policy": filled(PROSE, size)})


CASES = [
    Case("history, one message", given(model=lambda size: history(PROSE, size))),
    Case("history of `a ", given(model=lambda size: history("`a ", size)), share=0.5),
    Case("history of thoughts", given(model=lambda size: history("<think>a</think>b\n", size))),
    Case("history of <think>", given(model=lambda size: history("<think>", size))),
    Case("history, many messages", given(model=lambda size: history(PROSE, size, messages=200))),
    Case("a state of one turn", given(state=lambda size: state(size, 1), extra_outputs=lambda _size: "state")),
    Case("a state of 5,000 turns", given(state=lambda size: state(size, 5_000), extra_outputs=lambda _size: "state")),
    Case("context, one text", given(context=lambda size: filled(PROSE, size))),
    Case("context, a list of sources", given(context=segments)),
    Case("context, rows", given(context=rows)),
    Case("context, JSON as text", given(context=lambda size: json.dumps(rows(size)))),
    Case("context, Python's repr as text", given(context=lambda size: str(rows(size)))),
    Case("context of `<`", given(context=lambda size: filled("<", size))),
    Case("a question", given(query=lambda size: filled(PROSE, size))),
    Case("an instruction", given(instruction=lambda size: filled(PROSE, size))),
    Case("policy overrides", given(prompt_policy_overrides=overrides)),
    Case("policy overrides, cut", given(prompt_policy_overrides=lambda size: overrides(size)[:-2])),
    Case("allowed tools", given(allowed_tools=lambda size: filled("search, nope, ", size))),
    Case("an answer schema", given(answer_schema=answer_schema), share=0.1),
    Case("an answer schema that is not JSON", given(answer_schema=lambda size: filled("{", size))),
    Case("600 tools with schemas", given(tools=schemas)),
    Case(
        "a tool's description",
        given(tools=lambda size: [tool("search", parameter("q", llm_description=filled(PROSE, size)))]),
    ),
    Case(
        "a tool's options",
        given(
            tools=lambda size: [
                tool(
                    "search",
                    parameter(
                        "q",
                        "select",
                        options=[
                            {"value": f"option {number}", "label": {"en_US": "x"}} for number in range(size // 55 + 1)
                        ],
                    ),
                )
            ]
        ),
    ),
]
