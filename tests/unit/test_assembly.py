"""Tool calls put together from whatever a provider streams."""

import json
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.call import ToolCall, portable_id
from internal.flow import SdkToolCall
from internal.model.reading import CallAssembler
from internal.text.texts import without_escaped_nul
from internal.tooling import MAX_ARGUMENTS_LENGTH
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
    calls = draw(wanted_calls())
    chunks = list[list[SdkToolCall]]()
    for call in calls:
        first, *others = cut(call.function.arguments, draw(pieces_of))
        repeats_id = draw(st.booleans())
        starts_empty = draw(st.booleans())
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
    calls = draw(wanted_calls())
    chunks = list[list[SdkToolCall]]()
    for position, call in enumerate(calls):
        before = calls[:position]
        grown = accumulate(cut(call.function.arguments, draw(pieces_of)))
        chunks += [[*before, sdk_call(call.id, call.function.name, so_far)] for so_far in grown]
    return calls, [*chunks, *[chunks[-1]] * draw(st.integers(0, 3))]


def growing(text: str, step: int) -> Iterator[list[SdkToolCall]]:
    """Chunks with one call, each with a longer beginning of its arguments; made one by one."""
    return ([sdk_call("c1", "search", text[:end])] for end in range(step, len(text) + step, step))


def assemble(chunks: Chunks) -> list[ToolCall]:
    assembler = CallAssembler("made_up")
    for chunk in chunks:
        assembler.add(chunk)
    return list(assembler.calls())


def wanted(calls: Sequence[SdkToolCall]) -> list[tuple[str, str, str]]:
    return [(call.id, call.function.name, without_escaped_nul(call.function.arguments)) for call in calls]


def said(calls: Sequence[ToolCall]) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in calls]


@given(st.one_of(fragmented(), interleaved(), snapshots()))
def test_any_fragmentation_gives_the_calls_back(case: tuple[list[SdkToolCall], Chunks]) -> None:
    calls, chunks = case

    assert said(assemble(chunks)) == wanted(calls)


@given(wanted_calls(), st.integers(1, 3))
def test_equal_ids_in_a_chunk_are_different_calls(calls: list[SdkToolCall], times: int) -> None:
    functions = [call.function for call in calls]
    chunk = [sdk_call(each.name, each.name, each.arguments) for each in functions]
    of_one_id = [sdk_call("same", each.name, each.arguments) for each in functions]

    assert said(assemble([chunk] * times)) == wanted(chunk)
    assert said(assemble([of_one_id])) == wanted(of_one_id)


@given(wanted_calls(), st.booleans(), pieces_of)
def test_calls_of_different_tools_stay_apart_where_all_have_one_id(
    calls: list[SdkToolCall],
    repeats_name: bool,  # noqa: FBT001 - hypothesis gives it
    pieces: list[int],
) -> None:
    """One call after the other, in pieces: those of one call are joined, although the id tells nothing."""
    named = [sdk_call("same", f"tool_{number}", each.function.arguments) for number, each in enumerate(calls)]
    chunks = list[list[SdkToolCall]]()
    for each in named:
        first, *others = cut(each.function.arguments, pieces)
        chunks.append([sdk_call("same", each.function.name, first)])
        chunks += [[sdk_call("same", each.function.name * repeats_name, piece)] for piece in others]

    assert said(assemble(chunks)) == wanted(named)


@given(wanted_calls(), st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_pieces_of_equal_ids_that_come_together_keep_their_order(calls: list[SdkToolCall], pieces: list[int]) -> None:
    """Only the first chunk has names; the calls are of different tools, and their arguments of one length."""
    longest = max(len(each.function.arguments) for each in calls)
    named = [
        sdk_call("same", f"tool_{number}", each.function.arguments.ljust(longest)) for number, each in enumerate(calls)
    ]
    cuts = [cut(each.function.arguments, pieces) for each in named]
    first, *others = zip(*cuts, strict=True)
    chunks = [[sdk_call("same", each.function.name, piece) for each, piece in zip(named, first, strict=True)]]
    chunks += [[sdk_call("same", "", piece) for piece in step] for step in others]

    assert said(assemble(chunks)) == wanted(named)


A = '{"q": "a"}'
SHAPES: dict[str, tuple[list[tuple[str | None, ...]], list[tuple[str, str, str]]]] = {
    "no entries": ([], []),
    "neither id nor name": ([("c1", "search", ""), (None, None, '{"q": '), ("", "", '"a"}')], [("c1", "search", A)]),
    "a fragment before any call": ([("", "", "{}")], [(portable_id("made_up_1"), "", "{}")]),
    "no arguments at all": ([("c1", "clock", ""), ("", "", None)], [("c1", "clock", "{}")]),
    "broken in the last fragment": ([("c1", "search", '{"q": '), ("", "", '"a')], [("c1", "search", '{"q": "a')]),
    "like snapshots": ([("c1", "search", '{"a":'), ("", "", '{"a":1}}')], [("c1", "search", '{"a":{"a":1}}')]),
    "one id, two tools": ([("c1", "search", A), ("c1", "look", A)], [("c1", "search", A), ("c1", "look", A)]),
    "one id, the name comes late": ([("c1", "", '{"q": '), ("c1", "search", '"a"}')], [("c1", "search", A)]),
    "one id, one tool": ([("c1", "search", A), ("c1", "search", "{}")], [("c1", "search", A + "{}")]),
    "snapshots, no object": ([("c1", "search", "{q"), ("c1", "search", "{q: a}")], [("c1", "search", "{q: a}")]),
}


@pytest.mark.parametrize(("entries", "expected"), SHAPES.values(), ids=SHAPES)
def test_odd_shapes(entries: list[tuple[str | None, ...]], expected: list[tuple[str, str, str]]) -> None:
    """One entry in each chunk; those of the providers are in tests/agent/test_odd_scripts.py."""
    assert said(assemble([[], *([sdk_call(*entry)] for entry in entries)])) == expected


def test_of_growing_snapshots_only_the_last_is_kept() -> None:
    whole = json.dumps({"q": "x" * 48_000})
    assembler = CallAssembler("made_up")

    tracemalloc.start()
    try:
        for chunk in growing(whole, 4):
            assembler.add(chunk)
        (call,) = assembler.calls()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert call.arguments == whole
    assert most < 4_000_000  # all snapshots together have 288 million characters


ENDLESS: dict[str, Chunks] = {
    "fragments": [[sdk_call("c1" if number == 0 else "", "", f"{number:01000}")] for number in range(5_000)],
    "snapshots that end as fragments": [*growing("x" * 10_000, 10), [sdk_call("c1", "", "}")]],
    "one snapshot": [[sdk_call("c1", "search", "{" * MAX_ARGUMENTS_LENGTH * 2)], [sdk_call("c1", "", "{}")]],
}


@pytest.mark.parametrize("chunks", ENDLESS.values(), ids=ENDLESS)
def test_endless_arguments_are_kept_up_to_the_limit(chunks: Chunks) -> None:
    (call,) = assemble(chunks)

    assert len(call.arguments) == MAX_ARGUMENTS_LENGTH + 1
    assert "longer than" in str(call.parsed.error)
