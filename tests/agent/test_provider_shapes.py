"""Whole runs over the streaming shape of each provider: docs/model-facts.md, "How tool calls stream"."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.run import run
from tests.support.scenes import ANSWER, asks, assistant_messages, check_prompt, ends, entry, part, text
from tests.support.wire import USAGE, replies

A, B = '{"q": "a"}', '{"q": "b"}'


@dataclass(frozen=True)
class Shape:
    """What one provider sends for two calls, and what must go back to it."""

    chunks: list[Any]
    ids: tuple[str, str] | None = ("c1", "c2")
    """None where the provider gave none."""
    names: tuple[str, str] = ("search", "look")
    content: object = ""


FIRST, SECOND = entry("c1", "search", A), entry("c2", "look", B)

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
        ids=("tool_call_id", "tool_call_id"),
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
        content=["<think>\n\nhmm</think>\n\n", "So:"],
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
    "every chunk sent twice": Shape([asks(FIRST), asks(FIRST), asks(SECOND), asks(SECOND), ends()]),
    "fragments that look like snapshots": Shape(
        [asks(entry("c1", "search", "{")), asks(entry("c1", "search", '"q": "a"}')), asks(SECOND), ends()]
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
