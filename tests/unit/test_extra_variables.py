"""The optional variables share what a node's outputs may have."""

import json
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from internal.call import CallStatus, EndedCall, RejectedCall, ToolCall
from internal.errors import StopReason
from internal.events import CallsAnswered, RunSummary, Tally, Thought
from internal.memory.records import State, UserRecord
from internal.node.params import ExtraOutput
from internal.render.outputs import MAX_EXTRA_BYTES, MAX_THOUGHTS, Variables
from internal.text.secrets import KnownSecrets, Redactor

KIB = 1024
CHARACTERS = st.sampled_from(["a", "é", "検", "\U0001f600", '"', "\n", "\x01"])
"""Of each width on the wire: one to six bytes."""
TEXTS = st.builds(lambda character, times: character * times, CHARACTERS, st.integers(0, 300_000))


def made(
    texts: list[str] | None = None, thoughts: list[str] | None = None, state: str = "", arguments: str = ""
) -> Variables:
    """The variables of a run with one call for each text, and a thought in each round."""
    written = json.dumps({"q": arguments})
    ended = [
        EndedCall(RejectedCall(ToolCall(f"call_{number}", "search", written), ""), CallStatus.OK, said)
        for number, said in enumerate(texts or ())
    ]
    summary = RunSummary(
        StopReason.ANSWERED,
        1,
        "Done.",
        Tally(
            tool_rounds=[CallsAnswered(number, (call,)) for number, call in enumerate(ended, start=1)],
            thoughts=[Thought(number, said) for number, said in enumerate(thoughts or (), start=1)],
        ),
        extra_outputs=frozenset(ExtraOutput),
        state=State(strategy="s", entries=(UserRecord(text=state),)),
    )
    return Variables.of(summary, KnownSecrets(Redactor()))


def size(value: object) -> int:
    """Bytes as the SDK writes them."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def rounds(entries: list[dict[str, Any]]) -> list[int]:
    return [entry["round"] for entry in entries]


@given(st.lists(TEXTS, max_size=8), st.lists(TEXTS, max_size=4), st.integers(0, 128 * KIB), st.integers(0, 200_000))
def test_together_with_the_state_they_never_exceed_the_limit(
    texts: list[str], thoughts: list[str], state: int, arguments: int
) -> None:
    state_text = Random(state).randbytes(state // 2).hex()  # noqa: S311 - any text that cannot be compressed
    extra = made(texts, thoughts, state_text, "a" * arguments)
    results, thought = extra.values["tool_results"], extra.values["thoughts"]

    assert size(results) + size(thought) + size(extra.values["state"]) <= MAX_EXTRA_BYTES
    assert sum(len(entry["text"]) for entry in thought) <= MAX_THOUGHTS
    assert rounds(results) == list(range(1, len(texts) + 1))[extra.left_out.get("tool_results", 0) :]
    assert rounds(thought) == list(range(1, len(thoughts) + 1))[len(thoughts) - len(thought) :]
    assert all(entry["text"] in {"", texts[entry["round"] - 1]} for entry in results)
    assert all(thoughts[entry["round"] - 1].endswith(entry["text"]) for entry in thought)
    empty = sum(not entry["text"] and bool(texts[entry["round"] - 1]) for entry in results)
    assert empty <= extra.left_out.get("tool_results.text", 0)


@given(st.lists(st.integers(1, 60_000), max_size=20))
def test_all_of_what_fits_is_there(lengths: list[int]) -> None:
    texts = ["x" * length for length in lengths]
    entries = made(texts).values["tool_results"]
    missing = [position for position, entry in enumerate(entries) if not entry["text"]]

    assert missing == list(range(len(missing)))
    if missing:
        whole = [{**entry, "text": said} for entry, said in zip(entries, texts, strict=True)]
        assert size(entries[: missing[-1]] + whole[missing[-1] :]) > MAX_EXTRA_BYTES - 100


def test_a_result_that_does_not_fit_alone_does_not_cost_the_others_theirs() -> None:
    extra = made(["a", "検" * 200_000, "c"])

    assert [entry["text"] for entry in extra.values["tool_results"]] == ["a", "", "c"]
    assert extra.left_out["tool_results.text"] == 1


def test_calls_whose_arguments_alone_do_not_fit_go_with_the_oldest_first() -> None:
    extra = made(["found"] * 10, arguments="a" * 100_000)

    assert [(entry["round"], entry["text"]) for entry in extra.values["tool_results"]] == [
        (number, "") for number in range(6, 11)
    ]
    assert extra.left_out["tool_results"] == 5


def test_results_yield_before_thoughts_and_thoughts_before_the_state() -> None:
    heavy = ["\x01" * 60_000, "\x01" * 40_000]

    extra = made(["found" * 20_000], heavy, "s" * 128 * KIB)

    assert [entry["text"] for entry in extra.values["thoughts"]] == heavy[1:]
    assert [bool(entry["text"]) for entry in extra.values["tool_results"]] == [True]
    assert extra.left_out["thoughts"] == 1


def test_of_a_thought_that_does_not_fit_alone_the_end_is_kept() -> None:
    for letter, longest in (("a", MAX_THOUGHTS), ("\x01", MAX_EXTRA_BYTES // 6)):
        extra = made(thoughts=["old", f"{letter * 150_000}end"])

        (kept,) = extra.values["thoughts"]
        assert (kept["round"], kept["text"][-3:]) == (2, "end")
        assert 0.95 * longest < len(kept["text"]) <= longest
        assert extra.left_out["thoughts"] == 2
