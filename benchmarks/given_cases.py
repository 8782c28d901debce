"""What tools and the node may give at once: cases of the benchmark of pauses, each a scenario by its size."""

import base64
import json
from collections.abc import Callable

from benchmarks.line_host import Failure, Json, prepared
from benchmarks.model_cases import ANSWER, PROSE, SEARCH, filled
from benchmarks.pauses import Case, Scenario
from tests.support.wire import calls, json_message, model, parameter, text_message, tool

SECRET = "an-access-key-of-the-node"  # noqa: S105 - made up
SCHEMA_SIZE = 1_000
"""Characters of one tool's schema."""
SCHEMAS = 600
TWO_MEGABYTES = 2_000_000


def brings(messages: Callable[[int], list[Json]], **params: object) -> Callable[[int], Scenario]:
    """One call, whose tool says this; what it says is read by the model and goes back to it."""
    turn = prepared(calls(("search", {"q": "x"})))
    return lambda size: Scenario([turn, ANSWER], [prepared(messages(size))], {**SEARCH, **params})


def breaks(message: Callable[[int], str]) -> Callable[[int], Scenario]:
    turn = prepared(calls(("search", {"q": "x"})))
    return lambda size: Scenario([turn, ANSWER], [Failure(message(size))], SEARCH)


def given(**params: Callable[[int], object]) -> Callable[[int], Scenario]:
    """The node gives this, and the model answers at once."""
    return lambda size: Scenario([ANSWER], params={**SEARCH, **{name: made(size) for name, made in params.items()}})


def rows(size: int) -> list[Json]:
    return [{"id": number, "name": f"row {number}", "ok": True, "x": None} for number in range(size // 55 + 1)]


def nested(size: int) -> Json:
    """Objects side by side, each sixty deep."""
    deep: Json = {"leaf": PROSE}
    for _ in range(60):
        deep = {"k": deep}
    return {f"branch{number}": deep for number in range(size // 500 + 1)}


def message(kind: str, body: Json, meta: Json | None = None) -> Json:
    return {"type": kind, "message": body, "meta": meta}


def variables(size: int) -> list[Json]:
    return [
        message("variable", {"variable_name": f"v{number}", "variable_value": PROSE, "stream": False})
        for number in range(size // len(PROSE) + 1)
    ]


def resources(size: int) -> list[Json]:
    found = [
        {"position": number, "document_name": f"page {number}", "content": filled(PROSE, 300), "score": 0.5}
        for number in range(size // 400 + 1)
    ]
    return [message("retriever_resources", {"retriever_resources": found, "context": ""})]


def blob(size: int) -> list[Json]:
    data = base64.b64encode(filled(PROSE, size * 3 // 4).encode()).decode()
    return [message("blob", {"blob": data}, {"mime_type": "application/pdf", "filename": "a.pdf"})]


def links(size: int) -> list[Json]:
    return [
        message("image_link", {"text": f"/files/tools/{number}.png"}, {"tool_file_id": f"file-{number}"})
        for number in range(size // 100 + 1)
    ]


def history(pattern: str, size: int, messages: int = 1) -> Json:
    """Turns of an earlier conversation, together of this size."""
    said = filled(pattern, size // messages)
    listed = [{"role": "assistant", "content": said}, {"role": "user", "content": "And?"}] * messages
    return model(history_prompt_messages=[{"role": "user", "content": "?"}, *listed])


def segments(size: int) -> list[Json]:
    """What the knowledge node gives."""
    return [
        {
            "title": f"page {number}",
            "content": filled(PROSE, 400),
            "metadata": {"document_id": str(number), "score": 0.5, "_source": "knowledge"},
        }
        for number in range(size // 500 + 1)
    ]


def schema_tool(number: int, size: int) -> Json:
    """A tool of an MCP server with a schema of its own."""
    fields = {
        f"field{number}_{position}": {"type": ["string", "null"], "enum": ["a", "b", None], "description": PROSE}
        for position in range(size // 150 + 1)
    }
    schema = {"type": "object", "properties": fields, "additionalProperties": False}
    return tool(f"tool{number}", parameter("options", "object", input_schema=schema), provider_type="mcp")


def schemas(size: int) -> list[Json]:
    count = max(1, SCHEMAS * size // TWO_MEGABYTES)
    return [schema_tool(number, SCHEMA_SIZE) for number in range(count)]


def with_secrets(size: int) -> list[Json]:
    """A tool with many values that its developer keeps secret."""
    fixed = {f"key{number}": f"{SECRET}-{number}" for number in range(size // 40 + 1)}
    declared = [parameter(name, "secret-input", form="form") for name in fixed]
    return [tool("search", parameter("q"), *declared, runtime_parameters=fixed)]


def nearly(secret: str, size: int) -> list[Json]:
    return [text_message(filled(secret[:-1] + " ", size))]


def answer_schema(size: int) -> str:
    """A schema of many fields."""
    fields = {f"field{number}": {"type": "string", "description": PROSE} for number in range(size // 120 + 1)}
    return json.dumps({"type": "object", "properties": fields})


def overrides(size: int) -> str:
    return json.dumps({"extra_policy": filled(PROSE, size)})


CASES = [
    Case("a tool's text in one message", brings(lambda size: [text_message(filled(PROSE, size))])),
    Case(
        "a tool's text in messages of 75",
        brings(lambda size: [text_message(PROSE) for _ in range(size // len(PROSE) + 1)]),
    ),
    Case("a tool's text of line breaks", brings(lambda size: [text_message(filled("\n", size))])),
    Case("a tool's JSON of small values", brings(lambda size: [json_message({"rows": rows(size)})])),
    Case("a tool's JSON of small lists", brings(lambda size: [json_message([[n, n] for n in range(size // 14)])])),
    Case("a tool's JSON, deep", brings(lambda size: [json_message(nested(size))])),
    Case("a tool's JSON of one text", brings(lambda size: [json_message({"text": filled(PROSE, size)})])),
    Case("a tool's JSON as text", brings(lambda size: [text_message(json.dumps({"rows": rows(size)}))])),
    Case(
        "a tool's text and the same as JSON",
        brings(
            lambda size: [text_message(json.dumps({"rows": rows(size // 2)})), json_message({"rows": rows(size // 2)})]
        ),
    ),
    Case("a tool's variables", brings(variables)),
    Case("a tool's sources", brings(resources)),
    Case("a tool's file", brings(blob)),
    Case("a tool's links", brings(links)),
    Case("a tool's log", brings(lambda size: [message("log", {"label": "x", "data": {"rows": rows(size)}})])),
    Case("a tool's error", breaks(lambda size: filled(PROSE, size)), share=3),
    Case(
        "a tool's error of JSON",
        breaks(
            lambda size: (
                "PluginInvokeError: "
                + json.dumps(
                    {"args": {"rows": rows(size)}, "error_type": "ValueError", "message": filled(PROSE, size // 2)}
                )
            )
        ),
    ),
    Case("a tool's error of brackets", breaks(lambda size: "PluginInvokeError: " + filled("{", size)), share=3),
    Case("a tool's error of addresses", breaks(lambda size: filled("http://user:word@host/ ", size)), share=3),
    Case("a tool's error of paths", breaks(lambda size: filled("/usr/lib/python/file.py ", size)), share=3),
    Case("a tool's error of letters", breaks(lambda size: filled("a", size)), share=3),
    Case(
        "secrets, and text that is nearly one",
        lambda size: Scenario(
            [prepared(calls(("search", {"q": "x"}))), ANSWER],
            [prepared(nearly(SECRET, size))],
            {"tools": with_secrets(size // 10)},
        ),
    ),
    Case("history, one message", given(model=lambda size: history(PROSE, size))),
    Case("history of `a ", given(model=lambda size: history("`a ", size)), share=0.5),
    Case("history of thoughts", given(model=lambda size: history("<think>a</think>b\n", size))),
    Case("history of <think>", given(model=lambda size: history("<think>", size))),
    Case("history, many messages", given(model=lambda size: history(PROSE, size, messages=200))),
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
    Case("an answer schema that is no JSON", given(answer_schema=lambda size: filled("{", size))),
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
