"""Turns of a model that calls anything in any chunks."""

import json

from hypothesis import strategies as st

from tests.support.host import Handler, Json
from tests.support.scenes import asks, ends, entry, part, text
from tests.support.wire import breaks, fails, json_message, replies

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
