"""How providers may cut tool calls into the chunks of a stream."""

import json
from collections.abc import Iterator, Sequence
from itertools import accumulate

from hypothesis import strategies as st

from internal.flow import SdkToolCall
from tests.support.builders import sdk_call
from tests.support.generators import cut, json_objects

type Chunks = Sequence[Sequence[SdkToolCall]]


@st.composite
def wanted_calls(draw: st.DrawFn) -> list[SdkToolCall]:
    """Calls with ids of their own; names may be equal."""
    arguments = draw(st.lists(json_objects, min_size=1, max_size=4))
    ascii_only = draw(st.booleans())
    names = st.sampled_from(["search", "fetch", "clock"])
    return [
        sdk_call(f"id_{number}", draw(names), json.dumps(value, ensure_ascii=ascii_only))
        for number, value in enumerate(arguments)
    ]


pieces_of = st.lists(st.integers(1, 60), max_size=6)


@st.composite
def fragmented(draw: st.DrawFn) -> tuple[list[SdkToolCall], Chunks]:
    """One call after the other, in pieces that repeat the id, or neither id nor name."""
    calls, chunks = draw(wanted_calls()), list[list[SdkToolCall]]()
    for call in calls:
        first, *others = cut(call.function.arguments, draw(pieces_of))
        repeats_id, starts_empty = draw(st.booleans()), draw(st.booleans())
        chunks.append([sdk_call(call.id, call.function.name, "" if starts_empty else first)])
        rest = [first, *others] if starts_empty else others
        chunks += [[sdk_call(call.id if repeats_id else "", "", piece)] for piece in rest]
    return calls, chunks


@st.composite
def interleaved(draw: st.DrawFn) -> tuple[list[SdkToolCall], Chunks]:
    """All calls at once: every chunk holds the next piece of each call that has one, under its id."""
    calls = draw(wanted_calls())
    pieces = [cut(call.function.arguments, draw(pieces_of)) for call in calls]
    repeats_name = draw(st.booleans())
    return calls, [
        [
            sdk_call(call.id, call.function.name if step == 0 or repeats_name else "", own[step])
            for call, own in zip(calls, pieces, strict=True)
            if step < len(own)
        ]
        for step in range(max(map(len, pieces)))
    ]


@st.composite
def snapshots(draw: st.DrawFn) -> tuple[list[SdkToolCall], Chunks]:
    """A list that grows, and is sent again, whole, with every chunk; the last one once more."""
    calls, chunks = draw(wanted_calls()), list[list[SdkToolCall]]()
    for position, call in enumerate(calls):
        before = calls[:position]
        grown = accumulate(cut(call.function.arguments, draw(pieces_of)))
        chunks += [[*before, sdk_call(call.id, call.function.name, so_far)] for so_far in grown]
    return calls, [*chunks, *[chunks[-1]] * draw(st.integers(0, 3))]


def growing(text: str, step: int) -> Iterator[list[SdkToolCall]]:
    """Chunks with one call, each with a longer beginning of its arguments; made one by one."""
    return ([sdk_call("c1", "search", text[:end])] for end in range(step, len(text) + step, step))
