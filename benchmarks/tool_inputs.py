"""Large outputs of tools: cases for the benchmark of pauses."""

import base64
import json
from collections.abc import Callable

from benchmarks.answers import Failure, Json, prepared
from benchmarks.pauses import Case
from benchmarks.scenario import ANSWER, PROSE, SEARCH, Scenario, filled
from tests.support.wire import calls, json_message, parameter, text_message, tool

SECRET = "an-access-key-of-the-node"  # noqa: S105 - made up


def brings(messages: Callable[[int], list[Json]], **params: object) -> Callable[[int], Scenario]:
    """Return a case with one call whose tool sends these messages. The model reads the result."""
    turn = prepared(calls(("search", {"q": "x"})))
    return lambda size: Scenario([turn, ANSWER], [prepared(messages(size))], {**SEARCH, **params})


def hands_on(messages: Callable[[int], list[Json]], kind: str, *references: str) -> Callable[[int], Scenario]:
    """Return a case with a call whose tool sends these messages, and a call that passes the result on by reference."""
    given = references[0] if len(references) == 1 else list(references)
    turns = [prepared(calls(("search", {"q": "x"}))), prepared(calls(("send", {"body": given})))]
    tools = [tool("search", parameter("q")), tool("send", parameter("body", kind))]
    sent = prepared([text_message("sent")])
    return lambda size: Scenario([*turns, ANSWER], [prepared(messages(size)), sent], {"tools": tools})


def breaks(message: Callable[[int], str]) -> Callable[[int], Scenario]:
    turn = prepared(calls(("search", {"q": "x"})))
    return lambda size: Scenario([turn, ANSWER], [Failure(message(size))], SEARCH)


def reads_on(pattern: str, wanted: str) -> Callable[[int], Scenario]:
    """Return a case with a long result in which the model then searches for a text that almost occurs."""
    turns = [
        prepared(calls(("search", {"q": "x"}))),
        prepared(calls(("read_result", {"id": "r1", "find": wanted}))),
    ]
    return lambda size: Scenario([*turns, ANSWER], [prepared([text_message(filled(pattern, size))])], SEARCH)


def many_errors(count: int) -> Callable[[int], Scenario]:
    """Return a case with a turn of ``count`` calls whose errors together have the requested size."""

    def scenario(size: int) -> Scenario:
        turn = prepared(calls(*(("search", {"q": str(number)}) for number in range(count))))
        return Scenario([turn, ANSWER], [Failure("cookie: " + filled("\\", size // count))], SEARCH)

    return scenario


def many_calls(count: int) -> Callable[[int], Scenario]:
    """Return a case with a turn of ``count`` calls whose results together have the requested size."""

    def scenario(size: int) -> Scenario:
        turn = prepared(calls(*(("search", {"q": str(number)}) for number in range(count))))
        return Scenario([turn, ANSWER], [prepared([text_message(filled(PROSE, size // count))])], SEARCH)

    return scenario


def rows(size: int) -> list[Json]:
    return [{"id": number, "name": f"row {number}", "ok": True, "x": None} for number in range(size // 55 + 1)]


def nested(size: int) -> Json:
    """Return an object with many members, each of which is nested sixty levels deep."""
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


def with_secrets(size: int) -> list[Json]:
    """Return a tool with many secret values that the developer set."""
    fixed = {f"key{number}": f"{SECRET}-{number}" for number in range(size // 40 + 1)}
    declared = [parameter(name, "secret-input", form="form") for name in fixed]
    return [tool("search", parameter("q"), *declared, runtime_parameters=fixed)]


def nearly(secret: str, size: int) -> list[Json]:
    return [text_message(filled(secret[:-1] + " ", size))]


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
    Case(
        "a reference to a tool's text",
        hands_on(lambda size: [text_message(filled(PROSE, size))], "string", "result:r1"),
    ),
    Case(
        "a reference to a tool's text that becomes an object",
        hands_on(lambda size: [text_message(json.dumps({"rows": rows(size * 4 // 5)}))], "object", "result:r1"),
    ),
    Case(
        "a reference to a tool's JSON",
        hands_on(lambda size: [json_message({"rows": rows(size * 4 // 5)})], "object", "result:r1#"),
    ),
    Case(
        "references to parts of a tool's JSON",
        hands_on(
            lambda size: [json_message({"rows": rows(size * 4 // 5)})],
            "array",
            *(f"result:r1#/rows/{number}/name" for number in range(10)),
        ),
    ),
    Case(
        "700 references into a tool's JSON",
        hands_on(
            lambda size: [json_message({"rows": rows(max(50_000, size * 4 // 5))})],
            "array",
            *(f"result:r1#/rows/{number}/name" for number in range(700)),
        ),
    ),
    Case("a text that is nearly in a result", reads_on("a", "a" * 198 + "b")),
    Case("a short text that is nearly in a result", reads_on("ａ", "a" * 20 + "b")),
    Case("a letter that is everywhere in a result", reads_on("a", "A")),
    Case("256 results to keep", many_calls(256)),
    Case("256 results that are more than is kept", many_calls(256), share=20),
    Case("16 errors", many_errors(16)),
    Case(
        "a tool's text as the answer",
        brings(lambda size: [text_message(filled(PROSE, size))], answer_tools="search", extra_outputs="state"),
    ),
    Case(
        "a tool's JSON as the answer",
        brings(lambda size: [json_message({"rows": rows(size)})], answer_tools="search", extra_outputs="state"),
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
    Case("a tool's error of cookies", breaks(lambda size: filled("cookie:", size))),
    Case("a tool's error of spaces", breaks(lambda size: "id" + filled(" ", size) + "x")),
    Case("a tool's error of odd paths", breaks(lambda size: filled("=/", size))),
    Case("a tool's error of backslashes", breaks(lambda size: filled("\\", size))),
    Case(
        "secrets, and text that is nearly one",
        lambda size: Scenario(
            [prepared(calls(("search", {"q": "x"}))), ANSWER],
            [prepared(nearly(SECRET, size))],
            {"tools": with_secrets(size // 10)},
        ),
    ),
]
