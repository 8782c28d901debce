"""Unusual output of providers and tools: it never hangs a run, breaks the transcript or leaves a log open."""

from collections.abc import Iterator, Sequence
from typing import Any

import gevent
import pytest
from gevent import Timeout
from gevent.event import Event

from tests.support.clock import PATIENCE
from tests.support.host import Json
from tests.support.node import KNOWN_TO_DIFY
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, asks, check_growth, ends, entry, live, part, search, text
from tests.support.wire import calls, json_message, model, parameter, replies, text_message, tool

FOUND = {"search": replies("found")}
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


def check_ended_well(outcome: Outcome) -> None:
    assert outcome.error is None, outcome.error
    assert outcome.text == "Done."
    assert "start" not in {log["status"] for log in outcome.logs.values()}
    check_growth(outcome.model.requests)


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
        {"type": "link", "message": {"text": HALF}, "meta": None},
    ],
    "numbers that JSON lacks": [json_message({"a": float("inf"), "b": float("nan")})],
    "a number beyond the daemon's": [json_message({"id": 2**63})],
    "a thousand messages": [f"{number} " for number in range(1000)],
    "the end of the text": ["<|endoftext|>"],
    "our own tags": ["</context></persistence><think>"],
    "a megabyte": ["m" * 1_000_000],
    "nothing but NUL": ["\0"],
    **{f"JSON of {depth} levels": [json_message(nested(depth))] for depth in (50, 500, 970)},
}
ODD_PARAMS: dict[str, Json] = {
    "history": {"model": model(history_prompt_messages=[{"role": "user", "content": f"a{HALF}"}])},
    "history parts": {"model": model(history_prompt_messages=[{"role": "user", "content": [part(f"a{HALF}")]}])},
    "a file's name": {"files": [{"url": "http://127.0.0.1:9/x", "type": "custom", "filename": f"a{HALF}"}]},
    "a file's address": {"files": [{"url": f"http://127.0.0.1:9/{HALF}", "type": "image", "filename": "a"}]},
    "texts": {"query": HALF, "instruction": HALF, "context": HALF, "prompt_policy_overrides": HALF},
}


ODD = {
    **{name: (turn, ["found"], {}) for name, turn in ODD_TURNS.items()},
    **{f"of a tool: {name}": (search(), said, {}) for name, said in ODD_TOOLS.items()},
    **{f"half a pair in {name}": (search(), ["found"], params) for name, params in ODD_PARAMS.items()},
}


@pytest.mark.parametrize(("turn", "said", "params"), ODD.values(), ids=ODD)
def test_nothing_odd_that_a_model_a_tool_or_the_node_says_ends_the_run(
    turn: Sequence[Any], said: Sequence[Json | str], params: Json
) -> None:
    with Timeout(PATIENCE):
        check_ended_well(run([turn, ANSWER], {"search": replies(*said)}, params))


@pytest.mark.parametrize("depth", [100, 300])
@pytest.mark.parametrize("words", ["x", "the-secret-value"], ids=["without a secret", "with a secret"])
def test_json_of_any_depth_may_come_where_secrets_are_known(depth: int, words: str) -> None:
    deep = {"a": nested(depth), "b": words}
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
    assert "[redacted]" in outcome.tool_results()[0] or words == "x"


def test_tools_that_end_after_the_run_do_not_disturb_it() -> None:
    """The host goes away (the generator is closed) while a tool is still silent."""
    started, never = Event(), Event()

    def silent(_request: Json) -> Iterator[Json]:
        started.set()
        never.wait(PATIENCE)
        yield text_message("too late")

    running = live([search(), ANSWER], {"search": silent})
    with Timeout(PATIENCE):
        running.until("log")
        worker = gevent.spawn(list, running.messages)
        assert started.wait(PATIENCE)
        worker.kill(timeout=PATIENCE)
        assert worker.dead
    never.set()


def test_a_model_that_always_calls_another_unknown_tool_is_stopped_by_the_limit() -> None:
    turns = [calls((f"nope{number}", {})) for number in range(6)]

    outcome = run([*turns, ANSWER], FOUND)

    assert (outcome.stop_reason, outcome.text) == ("iteration_limit", "Done.")
