"""A property of whole runs: whatever models and tools do, prompts only grow and stay valid, and a run ends well."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.clock import FakeTime
from tests.support.host import Handler, Json
from tests.support.node import KNOWN_TO_DIFY
from tests.support.run import run
from tests.support.scenes import asks, check_growth, ends, entry, part, text
from tests.support.wire import breaks, fails, json_message, replies, says

HANDLERS: dict[str, Handler] = {
    "search": replies("found"),
    "look": replies("seen", json_message({"a": [1]})),
    "broken": breaks("kaboom"),
    "flaky": breaks("429 rate limit"),
    "mute": replies(),
    "long": replies("word " * 500),
}
ARGUMENTS = st.one_of(
    st.builds(lambda value: json.dumps({"q": value}), st.sampled_from(["a", "b", "ü", "\ud83d"])),
    st.sampled_from(['{"id": "r1"}', '{"id": "r1", "offset": 9}', '{"id": "r2", "find": "o"}', '{"id": "r1", "x": 1}']),
    st.sampled_from(['{"query": "look"}', '{"query": "broken long"}']),
    st.sampled_from(["", "{}", "  ", "null", "[]", '{"q": ', '{"q": NaN}', '{"w": 1}', '"text"', '{"q":"a"}{"q":"b"}']),
    st.text(max_size=8),
)
CALL = st.builds(
    entry,
    st.sampled_from(["", "", "c1", "c2", "search", "tool_call_id"]),
    st.sampled_from([*HANDLERS, "read_result", "find_tools", "nope", "", "se arch"]),
    ARGUMENTS,
)
CONTENT = st.one_of(
    st.sampled_from(["", "Let me look.", "<think>hm</think>", "<think>hm", "</think>", None, "\n\n"]),
    st.text(max_size=10),
    st.lists(st.builds(part, st.text(alphabet="ab <>\n", max_size=6)), max_size=2),
)
FINISH_REASONS = st.sampled_from(["stop", "tool_calls", None])
OPAQUE = st.sampled_from([None, {"responses_output": [1]}, [{"signature": "s"}]])


@st.composite
def calling_turns(draw: st.DrawFn) -> list[Json]:
    """A turn with text and calls in any chunks."""
    chunks = [text(draw(CONTENT), opaque_body=draw(OPAQUE)) for _ in range(draw(st.integers(0, 2)))]
    groups = draw(st.lists(st.lists(CALL, min_size=1, max_size=3), min_size=1, max_size=2))
    return [*chunks, *(asks(*group) for group in groups), ends(draw(FINISH_REASONS))]


FAILURES = st.sampled_from(
    [
        fails("InvokeRateLimitError", "slow down"),
        fails("InvokeServerUnavailableError", after=[text("<think>hm")]),
        fails("InvokeBadRequestError", "no opaque_body please"),
        [],
    ]
)
TURNS = st.one_of(calling_turns(), calling_turns(), FAILURES)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "maximum_iterations": st.integers(1, 5),
        "parallel_tool_calls": st.integers(1, 3),
        "emit_intermediate_thoughts": st.booleans(),
        "tool_result_limit": st.just(1000),
        "tools_in_prompt": st.integers(1, 3),
    },
)


@given(turns=st.lists(TURNS, max_size=7), params=PARAMS)
def test_prompts_only_grow_and_hold_the_invariants(turns: list[Any], params: dict[str, Any]) -> None:
    closing = [says("The answer.") for _ in range(3)]

    outcome = run([*turns, *closing], HANDLERS, params, clock=FakeTime().clock, expect_all_steps=False)

    requests = [without_opaque_bodies(request) for request in outcome.model.requests]
    check_growth(requests)
    assert outcome.text.count("<think>\n") <= outcome.text.count("</think>")
    assert "start" not in {log["status"] for log in outcome.logs.values()}
    if outcome.error is None:
        assert outcome.text.strip()
        assert outcome.messages[-1]["type"] == "json"
    else:
        assert type(outcome.error).__name__ in KNOWN_TO_DIFY


def without_opaque_bodies(request: Json) -> Json:
    """A host that refuses them shrinks the prompt by them, for good: that is tested on its own."""
    messages = [{**message, "opaque_body": None} for message in request["prompt_messages"]]
    return {**request, "prompt_messages": messages}
