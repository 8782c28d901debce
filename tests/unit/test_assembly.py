"""Tool calls put together from whatever a provider streams."""

import json
import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.call import ToolCall
from internal.flow import SdkToolCall
from internal.model.reading import CallAssembler
from internal.text.texts import without_escaped_nul
from internal.tooling import MAX_ARGUMENTS_LENGTH
from tests.support.builders import sdk_call
from tests.support.fragments import Chunks, fragmented, growing, interleaved, snapshots, wanted_calls


def assemble(chunks: Chunks) -> list[ToolCall]:
    assembler = CallAssembler("made_up")
    for chunk in chunks:
        assembler.take(chunk)
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


A = '{"q": "a"}'
SHAPES: dict[str, tuple[list[tuple[str | None, ...]], list[tuple[str, str, str]]]] = {
    "no entries": ([], []),
    "neither id nor name": ([("c1", "search", ""), (None, None, '{"q": '), ("", "", '"a"}')], [("c1", "search", A)]),
    "a fragment before any call": ([("", "", "{}")], [("made_up_1", "", "{}")]),
    "no arguments at all": ([("c1", "clock", ""), ("", "", None)], [("c1", "clock", "{}")]),
    "broken in the last fragment": ([("c1", "search", '{"q": '), ("", "", '"a')], [("c1", "search", '{"q": "a')]),
    "like snapshots": ([("c1", "search", '{"a":'), ("", "", '{"a":1}}')], [("c1", "search", '{"a":{"a":1}}')]),
    "snapshots, no object": ([("c1", "search", "{q"), ("c1", "search", "{q: a}")], [("c1", "search", "{q: a}")]),
}


@pytest.mark.parametrize(("entries", "expected"), SHAPES.values(), ids=SHAPES)
def test_odd_shapes(entries: list[tuple[str | None, ...]], expected: list[tuple[str, str, str]]) -> None:
    """One entry in each chunk; those of the providers are in tests/agent/test_odd_scripts.py."""
    assert said(assemble([[], *([sdk_call(*entry)] for entry in entries)])) == expected


def test_of_growing_snapshots_only_the_last_is_kept() -> None:
    whole, assembler = json.dumps({"q": "x" * 48_000}), CallAssembler("made_up")

    tracemalloc.start()
    try:
        for chunk in growing(whole, 4):
            assembler.take(chunk)
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
