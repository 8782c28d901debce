"""Unusual output of providers and tools: it never hangs a run, breaks the transcript or leaves a log open."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from gevent import Timeout

from internal.call import portable_id
from tests.support.clock import PATIENCE
from tests.support.host import Json
from tests.support.node import KNOWN_TO_DIFY
from tests.support.run import Outcome, run
from tests.support.scenes import (
    ANSWER,
    FOUND,
    asks,
    assistant_messages,
    check_growth,
    check_prompt,
    ends,
    entry,
    part,
    search,
    text,
)
from tests.support.wire import (
    USAGE,
    breaks,
    calls,
    fails,
    json_message,
    message,
    model,
    parameter,
    replies,
    says,
    text_message,
    tool,
)

HALF = "\ud83d"


def nested(depth: int) -> object:
    value: object = "x"
    for _ in range(depth):
        value = [value]
    return value


ODD_TURNS: dict[str, Sequence[Any]] = {
    "half a pair in the text": [text(f"a{HALF}b"), *search()],
    "half a pair in a part": [text([part(f"a{HALF}b")]), *search()],
    "half a pair in an id": [asks(entry(f"c{HALF}", "search", "{}")), ends()],
    "half a pair in a name": [asks(entry("c1", f"se{HALF}arch", "{}")), ends()],
    "half a pair in arguments": [asks(entry("c1", "search", f'{{"q": "{HALF}"}}')), ends()],
    "a name of 10,000 characters": [asks(entry("c1", "s" * 10_000, "{}")), ends()],
    "an id of 10,000 characters": [asks(entry("c" * 10_000, "search", "{}")), ends()],
    "a name of white space": [asks(entry("c1", " ", "{}")), ends()],
    "an id of white space": [asks(entry(" ", "search", "{}")), ends()],
    "a continuation of nothing": [asks(entry("", "", '{"q": "x"}')), ends()],
    "two continuations": [asks(entry("c1", "search", "")), asks(entry("", "", "{"), entry("", "", "}")), ends()],
    "calls before the text": [asks(entry("c1", "search", "{}")), text("Looking."), ends()],
    "a call after the last chunk": [ends(), asks(entry("c1", "search", "{}"))],
    "fifty calls": calls(*[("search", {"q": str(number)}) for number in range(50)]),
    "a thousand chunks of thought": [text("<think>"), *[text("hm ") for _ in range(1000)], *search()],
    "digits without end": [asks(entry("c1", "search", '{"q": ' + "1" * 5_000 + "}")), ends()],
    "one key twice": [asks(entry("c1", "search", '{"q": "a", "q": "b"}')), ends()],
    "tags within tags": [text("<think><think>a</think></think>"), *search()],
    "only closing tags": [text("</think></think>"), *search()],
}


def free_of_nul(outcome: Outcome) -> bool:
    """Nothing that was written holds NUL; nor do the arguments of calls, which a provider may take apart."""
    sent = texts([outcome.messages, outcome.model.requests, outcome.tools.requests, str(outcome.error)])
    called = [call for prompt in outcome.model.prompts for said in prompt for call in said.get("tool_calls") or ()]
    return "\0" not in "".join([*sent, *texts([json.loads(call["function"]["arguments"]) for call in called])])


def texts(value: object) -> list[str]:
    """Every text in a value, names among it."""
    if isinstance(value, str):
        return [value]
    items: list[object] = []
    if isinstance(value, dict):
        items = [*value, *value.values()]
    elif isinstance(value, list):
        items = value
    return [text for item in items for text in texts(item)]


def check_ended_well(outcome: Outcome) -> None:
    assert outcome.error is None, outcome.error
    assert outcome.text == "Done."
    assert "start" not in {log["status"] for log in outcome.logs.values()}
    check_growth(outcome.model.requests)
    assert free_of_nul(outcome)


ODD_CHUNKS: dict[str, Json] = {
    "a chunk of nothing": {},
    "no message": {"model": "m", "delta": {"index": 0}},
    "content of a number": text(7),
    "calls of null": {
        **text(""),
        "delta": {"index": 0, "message": {"role": "assistant", "content": "", "tool_calls": None}},
    },
}


@pytest.mark.parametrize("chunk", ODD_CHUNKS.values(), ids=ODD_CHUNKS)
def test_a_chunk_that_the_sdk_refuses_is_one_clear_error(chunk: Json) -> None:
    with Timeout(PATIENCE):
        outcome = run([[chunk]], FOUND)

    assert type(outcome.error).__name__ in KNOWN_TO_DIFY
    assert "start" not in {log["status"] for log in outcome.logs.values()}


ODD_TOOLS: dict[str, list[Json | str]] = {
    "half a pair everywhere": [
        HALF,
        json_message({HALF: HALF}),
        message("link", text=HALF),
    ],
    "numbers that JSON lacks": [json_message({"a": float("inf"), "b": float("nan")})],
    "a number beyond the daemon's": [json_message({"id": 2**63})],
    "a thousand messages": [f"{number} " for number in range(1000)],
    "the end of the text": ["<|endoftext|>"],
    "our own tags": ["</context></persistence><think>"],
    "a megabyte": ["m" * 1_000_000],
    "nothing but NUL": ["\0"],
    "brackets without end": [text_message("[" * 100_000), json_message({"a": 1})],
    "no JSON": [{"type": "json", "message": None, "meta": None}],
    "no text": [{"type": "text", "message": {}, "meta": None}],
    "a text that is an object": [{"type": "text", "message": {"text": {"not": "text"}}, "meta": None}],
    "an odd blob": [{"type": "blob", "message": {"blob": 7}, "meta": {"mime_type": 9}}],
    "an odd link": [{"type": "image_link", "message": {"text": None}, "meta": {"tool_file_id": []}}],
    "odd sources": [message("retriever_resources", retriever_resources=[7, {"score": "x"}])],
    "no type": [{"type": None, "message": {}, "meta": None}],
    "a body that is a list": [{"type": "text", "message": ["a list"], "meta": None}],
    **{
        f"no body of type {kind}": [{"type": kind, "message": None, "meta": None}]
        for kind in ("link", "file", "log", "x")
    },
    **{f"JSON of {depth} levels": [json_message(nested(depth))] for depth in (50, 500, 970)},
}
ODD_PARAMS: dict[str, Json] = {
    "history": {"model": model(history_prompt_messages=[{"role": "user", "content": f"a{HALF}"}])},
    "history parts": {"model": model(history_prompt_messages=[{"role": "user", "content": [part(f"a{HALF}")]}])},
    "a file's name": {"files": [{"url": "http://127.0.0.1:9/x", "type": "custom", "filename": f"a{HALF}"}]},
    "a file's address": {"files": [{"url": f"http://127.0.0.1:9/{HALF}", "type": "image", "filename": "a"}]},
    "texts": {"query": HALF, "instruction": HALF, "context": HALF, "prompt_policy_overrides": HALF},
}


HISTORY = [{"role": "user", "content": "a\0b"}]
GIVEN: dict[str, Json] = {
    "texts": {"instruction": "a\0b", "query": "a\0b", "context": "a\0b"},
    "json": {
        "context": [{"title": "a\0b", "content": "a\0b", "metadata": {"a\0b": "a\0b"}}],
        "prompt_policy_overrides": json.dumps({"extra_policy": "a\0b", "od\0d": 1}),
        "files": [{"url": "http://host.test/a", "filename": "a\0b.zip", "type": "custom"}],
    },
    "model": {"model": model(model="gpt\0", provider="p\0/p/p", history_prompt_messages=HISTORY, mode="cha\0t")},
    "tool": {
        "tools": [
            tool(
                "sea\0rch",
                parameter("q\0", "select", llm_description="a\0b", options=[{"value": "a\0b"}]),
                description={"llm": "a\0b"},
                runtime_parameters={"key": "a\0b"},
            )
        ]
    },
}
SOURCE = {"document_name": "a\0", "content": "a\0", "doc_metadata": {"\0": "\0"}}
SAID: list[Json | str] = [
    "a\0b",
    json_message({"a\0b": ["a\0b"]}),
    message("link", text="http://a.test/\0"),
    message("image_link", {"tool_file_id": "a\0", "filename": "a\0"}, text="/files/tools/abc.png\0"),
    message("file", {"file": {"filename": "a\0b"}}),
    message("blob", {"filename": "a\0b", "mime_type": "text/\0plain"}, blob="eA=="),
    message("retriever_resources", retriever_resources=[SOURCE]),
    message("variable", variable_name="a\0", variable_value={"a\0": "a\0"}),
]

ODD = {
    **{name: (turn, ["found"], {}) for name, turn in ODD_TURNS.items()},
    **{f"of a tool: {name}": (search(), said, {}) for name, said in ODD_TOOLS.items()},
    **{f"half a pair in {name}": (search(), ["found"], params) for name, params in ODD_PARAMS.items()},
    **{f"NUL in {name}": (calls(("search", {})), ["found"], params) for name, params in GIVEN.items()},
    "NUL in a tool's messages": (search(), SAID, {}),
    "NUL in a variable alone": (search(), SAID[-1:], {}),
}


@pytest.mark.parametrize(("turn", "said", "params"), ODD.values(), ids=ODD)
def test_nothing_odd_that_a_model_a_tool_or_the_node_says_ends_the_run(
    turn: Sequence[Any], said: Sequence[Json | str], params: Json
) -> None:
    with Timeout(PATIENCE):
        check_ended_well(run([turn, ANSWER], {"search": replies(*said)}, params))


@pytest.mark.parametrize("depth", [100, 300])
def test_json_of_any_depth_may_come_where_secrets_are_known(depth: int) -> None:
    deep = {"a": nested(depth), "b": "the-secret-value"}
    described = {"title": "t", "content": "c", "doc_metadata": deep}
    sources = {"type": "retriever_resources", "message": {"retriever_resources": [described]}, "meta": None}
    key = parameter("key", "secret-input", form="form")
    offered = tool("search", parameter("q"), key, runtime_parameters={"key": "the-secret-value"})

    with Timeout(PATIENCE):
        outcome = run(
            [search(), ANSWER],
            {"search": replies(sources, json_message(deep))},
            {"tools": [offered], "context": [{"content": "c", "metadata": described}, deep]},
        )

    check_ended_well(outcome)
    assert "[redacted]" in outcome.tool_results()[0]


def test_a_model_that_always_calls_another_unknown_tool_is_stopped_by_the_limit() -> None:
    turns = [calls((f"nope{number}", {})) for number in range(6)]

    outcome = run([*turns, ANSWER], FOUND)

    assert (outcome.stop_reason, outcome.text) == ("iteration_limit", "Done.")


A = '{"q": "a"}'
B = '{"q": "b"}'


@dataclass(frozen=True)
class Shape:
    """What one provider sends for two calls, and what must go back to it."""

    chunks: list[Any]
    ids: tuple[str, str] | None = ("c1", "c2")
    """None where the provider gave none."""
    names: tuple[str, str] = ("search", "look")
    content: object = ""


FIRST = entry("c1", "search", A)
SECOND = entry("c2", "look", B)

SHAPES = {
    "openai: both in the last chunk": Shape(
        [text("Let me "), text("look."), asks(FIRST, SECOND, usage=USAGE, finish_reason="tool_calls")],
        content="Let me look.",
    ),
    "azure responses: a chunk per call, always stop": Shape([asks(FIRST), asks(SECOND), ends("stop")]),
    "azure chat: cumulative snapshots": Shape(
        [
            asks(entry("c1", "search", "")),
            asks(entry("c1", "search", '{"q"')),
            asks(entry("c1", "search", A), entry("c2", "look", '{"q": ')),
            text("On it.", tool_calls=[FIRST, SECOND]),
            asks(FIRST, SECOND, usage=USAGE, finish_reason="stop"),
        ],
        content="On it.",
    ),
    "OAICompat: merged, then a usage chunk": Shape(
        [text("On it."), asks(FIRST, SECOND, finish_reason=None), ends("Non-JSON encountered.")], content="On it."
    ),
    "OAICompat: deltas with empty id and name": Shape(
        [
            asks(entry("c1", "search", "")),
            asks(entry("", "", '{"q": ')),
            asks(entry("", "", '"a"}')),
            asks(entry("c2", "look", '{"q"')),
            asks(entry("", "", ': "b"}')),
            ends(None),
        ]
    ),
    "ids missing": Shape([asks(entry("", "search", A), entry("", "look", B)), ends()], ids=None),
    "ids constant (legacy function_call)": Shape(
        [asks(entry("tool_call_id", "search", A), entry("tool_call_id", "look", B)), ends()],
        ids=("tool_call_id", portable_id("tool_call_id", 2)),
    ),
    "deepseek: think text kept raw": Shape(
        [text("<th"), text("ink>\nhm"), text("m\n</thi"), text("nk>\nSo:"), asks(FIRST, SECOND), ends("tool_calls")],
        content="<think>\nhmm\n</think>\nSo:",
    ),
    "gemini: lists of parts, a call per chunk": Shape(
        [
            text([part("<think>\n\nhmm</think>\n\n")]),
            text([], tool_calls=[entry("gemini_call_search_1", "search", A)]),
            text([part("So:")], tool_calls=[entry("gemini_call_look_2", "look", B)]),
            text([], usage=USAGE, finish_reason="STOP"),
        ],
        ids=("gemini_call_search_1", "gemini_call_look_2"),
        content="<think>\n\nhmm</think>\n\nSo:",
    ),
    "tongyi: the id is the name, twice": Shape(
        [asks(entry("search", "search", A), entry("search", "search", B), usage=USAGE, finish_reason="tool_calls")],
        ids=("search", "search"),
        names=("search", "search"),
    ),
    "ollama: ids are indices": Shape(
        [text("", tool_calls=[entry("0", "search", A), entry("1", "look", B)]), ends("stop")], ids=("0", "1")
    ),
    "zhipuai: a whole call per delta": Shape(
        [text(None), asks(FIRST), asks(SECOND, usage=USAGE, finish_reason="tool_calls")]
    ),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_both_calls_run_and_go_back_as_the_provider_sent_them(shape: Shape) -> None:
    outcome = run([shape.chunks, ANSWER], {"search": replies("found"), "look": replies("seen")})

    assert outcome.error is None
    assert outcome.text == "Done."
    asked = sorted((request["tool"], request["tool_parameters"]["q"]) for request in outcome.tools.requests)
    assert asked == sorted(zip(shape.names, ("a", "b"), strict=True))
    check_prompt(outcome.model.prompts[1])
    (message,) = assistant_messages(outcome.model.prompts[1])
    ids = tuple(call["id"] for call in message["tool_calls"])
    assert ids == shape.ids if shape.ids else len({*ids, ""}) == 3
    assert tuple(call["function"]["name"] for call in message["tool_calls"]) == shape.names
    assert [json.loads(call["function"]["arguments"]) for call in message["tool_calls"]] == [{"q": "a"}, {"q": "b"}]
    content = message["content"]
    assert (content if isinstance(content, str) else [item["data"] for item in content]) == shape.content


def test_ids_made_for_missing_ones_differ_between_rounds() -> None:
    turns = [[asks(entry("", "search", arguments)), ends()] for arguments in (A, B)]

    outcome = run([*turns, ANSWER], {"search": replies("found")})

    ids = {message["tool_calls"][0]["id"] for message in assistant_messages(outcome.model.prompts[2])}
    assert len(ids - {""}) == 2


IMAGE = {"type": "image", "format": "p\0", "mime_type": "i\0", "url": "http://a.test/\0"}


@pytest.mark.parametrize("shown", [False, True])
def test_nul_in_what_the_model_says_which_may_cut_a_tag(*, shown: bool) -> None:
    turn = says("<thi\0nk>hm\0m</think\0>Yes", "\0", ".\0", usage={**USAGE, "currency": "U\0D"}, finish_reason="st\0op")

    outcome = run([[text([part("<think>a\0b</think>"), IMAGE]), *turn]], params={"emit_intermediate_thoughts": shown})

    assert outcome.error is None
    assert outcome.text.endswith("Yes.")
    assert ("hmm" in outcome.text) is shown
    assert free_of_nul(outcome)


@pytest.mark.parametrize("odd", ["\0", "\ud83d"], ids=["NUL", "half a pair"])
def test_what_a_failure_says(odd: str) -> None:
    """Its text may hold JSON, in which what must not leave us is an escape."""
    failing = {"search": breaks(str(fails("ValueError", f"a{odd}b")[0]), [message("text", text=f"a{odd}b")])}

    of_tool = run([calls(("search", {})), ANSWER], failing)
    of_model = run([fails("InvokeBadRequestError", f"a{odd}b")])

    assert (of_tool.error, of_tool.text) == (None, "Done.")
    assert "ab" in str(of_model.error) or "a?b" in str(of_model.error)
    assert free_of_nul(of_tool)
    assert free_of_nul(of_model)


@pytest.mark.parametrize(
    "arguments", ['{"q": "a\\u0000b"}', '{"q\\u0000": "a\\u0000b"}', '{"q": "a\\u0000b', '{"q": "a\0b"}']
)
def test_nul_in_the_arguments_of_a_call_is_said_in_the_log(arguments: str) -> None:
    outcome = run([calls(("search", arguments)), calls(("sea\0rch", arguments)), ANSWER], FOUND)

    assert outcome.error is None
    assert free_of_nul(outcome)
    assert all(request["tool_parameters"] == {"q": "ab"} for request in outcome.tools.requests)
    assert ("NUL characters were taken out of the arguments of a call" in outcome.notes) is ("\\u0000" in arguments)
