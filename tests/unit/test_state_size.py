"""A state that would be too large: what yields, in which order, and what never does."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.memory.records import (
    AnswerRecord,
    CallRecord,
    EntryRecord,
    FindingRecord,
    PlanRecord,
    RoundRecord,
    SourceRecord,
    State,
    SubtaskRecord,
    SummaryRecord,
    UserRecord,
)
from internal.memory.state import MAX_ENTRIES, MAX_LENGTH, MAX_WAITING, decode, encode, size_of_waiting
from tests.support.states import states

KEPT = 1_000


@cache
def noise(length: int, seed: int = 0) -> str:
    """Text that compresses badly: six bits a character."""
    return base64.b64encode(hashlib.shake_256(repr(seed).encode()).digest(length)).decode()[:length]


@cache
def emoji(length: int, seed: int = 0) -> str:
    """Text of four bytes a character."""
    return "".join(chr(0x1F300 + ord(character)) for character in noise(length, seed))


@cache
def anything(length: int, seed: int = 0) -> str:
    """Text of any characters but surrogates and NUL, as many in UTF-8 as Unicode has."""
    digest = hashlib.shake_256(repr(seed).encode()).digest(3 * length)
    points = (int.from_bytes(digest[start : start + 3]) % 0x10F000 + 1 for start in range(0, 3 * length, 3))
    return "".join(chr(point + 0x800 if point >= 0xD800 else point) for point in points)


@cache
def escapes(length: int, seed: int = 0) -> str:
    """Text that is longer in JSON, and longer again in the JSON of a state."""
    return noise(length, seed).translate({ord(letter): "\"\\\n\x01'/"[number % 6] for number, letter in ALPHABET})


ALPHABET = list(enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))


def call(result: str | None, name: str = "a", arguments: str = "{}") -> CallRecord:
    return CallRecord(id=name, provider="shop", tool="order", arguments=arguments, result=result)


def turn(
    number: int, results: Iterable[str] = (), context: str = "", question: str = "", answer: str = ""
) -> list[EntryRecord]:
    rounds = [RoundRecord(calls=(call(result),)) for result in results]
    return [UserRecord(text=question or f"Q{number}", context=context), *rounds, AnswerRecord(text=answer or "A")]


def state_of(turns: Iterable[Sequence[EntryRecord]], **more: object) -> State:
    entries = tuple(entry for turn in turns for entry in turn)
    return State.model_validate({"strategy": "gpt5_react", "entries": entries, **more})


def fitted(state: State) -> State:
    """The state as the next run reads it."""
    text = encode(state)
    assert len(text) <= MAX_LENGTH
    left = decode(text)
    assert left is not None
    assert left.waiting == state.waiting
    return left


def users(state: State) -> list[str]:
    return [entry.text[:9].split()[0] for entry in state.entries if isinstance(entry, UserRecord)]


def test_a_result_that_yields_keeps_head_and_tail() -> None:
    state = state_of([turn(number, [noise(20_000, number)] * 2, "C") for number in range(7)])
    first, whole = results(fitted(state).entries)[0], noise(20_000, 0)

    assert len(first) == KEPT
    assert (first[:600], first[-300:]) == (whole[:600], whole[-300:])
    assert "characters were not kept" in first


def test_a_long_result_of_today_costs_its_own_length_and_not_the_turns_before_it() -> None:
    talk = [turn(number, [noise(3_000, number)], "C", answer=noise(900, number)) for number in range(12)]
    today = turn(12, [noise(100_000, 98), noise(100_000, 99)])
    left = fitted(state_of([*talk, today]))

    assert users(left) == [f"Q{number}" for number in range(13)]
    assert contexts(left.entries) == [""] * 13
    assert [len(result) > KEPT for result in results(left.entries)] == [False] * 13 + [True]


def test_of_the_last_turn_texts_keep_head_and_tail_then_the_oldest_sources_go_and_the_oldest_rounds() -> None:
    rounds = [RoundRecord(said=noise(500, number), calls=(call("R"),)) for number in range(500)]
    sources = tuple(SourceRecord(number=number, title=noise(400, number)) for number in range(1, 301))
    said = state_of([turn(0), turn(1), turn(2, question=noise(1_000_000), answer=emoji(500_000))])
    listed = fitted(state_of([turn(0), turn(1, question=noise(100_000))], sources=sources))
    called = fitted(state_of([turn(0), [UserRecord(text="Q"), *rounds, AnswerRecord(text="A")]]))

    *before, question, answer = texts(fitted(said).entries)
    assert before == texts([*turn(0), *turn(1)])
    for text, own in ((question, noise(1_000_000)), (answer, emoji(500_000))):
        assert (text[:10_000], text[-5_000:]) == (own[:10_000], own[-5_000:])
        assert 19_900 < len(text) <= 20_000
    assert [len(text) for text in texts(listed.entries)] == [19_999, 1]
    assert listed.sources == sources[-len(listed.sources) :]
    assert 0 < len(listed.sources) < 300
    left = len(called.entries) - 2
    assert 100 < left < 400
    assert called.entries == (UserRecord(text="Q"), *rounds[-left:], AnswerRecord(text="A"))


def test_findings_and_the_results_in_a_plan_that_waits_count_as_results() -> None:
    found = tuple(
        FindingRecord(subtask=f"S{number}", answer=noise(18_000, number), completed=True) for number in (1, 2)
    )
    turns = [[UserRecord(text=f"Q{number}", context=noise(30_000), findings=found)] for number in range(4)]
    rounds = [RoundRecord(calls=(call(noise(30_000, number)),)) for number in range(8)]
    entries: tuple[EntryRecord, ...] = (UserRecord(text="Request"), *rounds, RoundRecord(calls=(call(None),)))
    plan = PlanRecord(subtasks=(SubtaskRecord(name="S", nearest=noise(3_000), entries=entries),))
    finished, waiting = fitted(state_of(turns)), fitted(state_of([[UserRecord(text="Q")]], plan=plan))

    left = [entry for entry in finished.entries if isinstance(entry, UserRecord)]
    assert [entry.context for entry in left] == [""] * 4
    assert [[len(each.answer) for each in entry.findings] for entry in left] == [[KEPT] * 2] + [[18_000] * 2] * 3
    assert waiting.plan is not None
    (subtask,) = waiting.plan.subtasks
    lengths = [len(result) for result in results(subtask.entries)]
    assert sorted(lengths[:-1]) == lengths[:-1]
    assert set(lengths) == {KEPT, 30_000, 0}
    assert subtask.nearest == noise(3_000)


def test_a_summary_stays_while_turns_go() -> None:
    summary = SummaryRecord(text="S" * 4_000)
    left = fitted(state_of([[summary], *(turn(number, answer=noise(30_000, number)) for number in range(9))]))

    assert left.entries[0] == summary
    assert users(left) == ["Q5", "Q6", "Q7", "Q8"]


def test_a_state_that_would_unpack_to_too_much_yields_too() -> None:
    state = state_of([turn(number, ["a" * 200_000] * 8) for number in range(25)])
    left = fitted(state)

    assert [len(result) for result in results(left.entries)[-6:]] == [KEPT] + [200_000] * 5


WRITERS = [noise, emoji, anything, escapes]


def _canonical(arguments: object) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def waiting_calls(write: Callable[[int, int], str], count: int, prefix: str = "call") -> list[CallRecord]:
    """Calls that are as large as all that wait may be."""
    calls = list[CallRecord]()
    for number in range(count):
        text, most = write(MAX_WAITING // count, number), MAX_WAITING // count
        name = f"{prefix}_{number}_{hashlib.sha256(b'%d' % number).hexdigest()[:8]}"
        while (size := size_of_waiting(waiting := call(None, name, _canonical({"a": text})))) > most:
            assert text, f"{count} calls without arguments are too large"
            text = text[: min(len(text) - 1, len(text) * most // size)]
        calls.append(waiting)
    return calls


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
@pytest.mark.parametrize("count", [1, 300])
def test_calls_that_wait_never_yield(write: Callable[[int, int], str], count: int) -> None:
    done = [call(write(300_000, 7), "done", json.dumps({"a": write(300_000, 7)}))] * 3
    last = RoundRecord(said=write(200_000, 7), calls=(*done, *waiting_calls(write, count), *done))
    sources = tuple(SourceRecord(number=number, title=write(1_000, number)) for number in range(1, 301))
    asked = UserRecord(text=write(200_000, 8), files=(write(300, 9),) * 99)
    state = state_of([turn(1), [asked, AnswerRecord(text="A"), last]], sources=sources)

    left = fitted(state)

    assert isinstance(end := left.entries[-1], RoundRecord)
    assert {call.id for call in end.calls if call.result is not None} <= {"done"}


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_a_plan_keeps_the_names_of_its_subtasks_and_what_waits(write: Callable[[int, int], str]) -> None:
    subtasks = tuple(
        SubtaskRecord(
            name=write(100, number),
            answer=write(50_000, 8),
            advised=(write(50_000, 1), write(50_000, 2)),
            nearest=write(50_000, 3),
            entries=(
                UserRecord(text=write(10_000, 7)),
                *(RoundRecord(calls=(call(write(5_000, each)),)) for each in range(5)),
                RoundRecord(said=write(9_000, 7), calls=(call("R"), waiting)),
            ),
        )
        for number, waiting in enumerate(waiting_calls(write, 8))
    )
    state = state_of([turn(1), [UserRecord(text=write(200_000, 8))]], plan=PlanRecord(subtasks=subtasks))

    left = fitted(state)

    assert left.plan is not None
    assert [subtask.name for subtask in left.plan.subtasks] == [subtask.name for subtask in subtasks]


@pytest.mark.parametrize(
    "entries",
    [(AnswerRecord(text=""),) * 6_000, (UserRecord(text="Q"), *(RoundRecord(calls=(call(""),)),) * 6_000)],
    ids=["turns", "rounds"],
)
def test_very_many_records_yield_too_though_they_pack_well(entries: tuple[EntryRecord, ...]) -> None:
    assert 0 < len(fitted(State(strategy="gpt5_react", entries=entries)).entries) <= MAX_ENTRIES


def test_more_calls_than_may_wait_are_an_error() -> None:
    with pytest.raises(ValueError, match="more waits than a state can hold"):
        encode(state_of([[RoundRecord(calls=(call(None, arguments=f'{{"a": "{noise(200_000)}"}}'),))]]))


@given(states(), st.integers(1, 300), st.sampled_from(WRITERS))
def test_a_state_of_any_shape_fits(state: State, times: int, write: Callable[[int, int], str]) -> None:
    grown = state.with_texts(lambda text: text + write(300, len(text)), str)
    entries = (*grown.entries[:-1] * times, *grown.entries[-1:])

    left = fitted(grown.model_copy(update={"entries": entries}))

    assert [type(entry) for entry in left.entries[-1:]] == [type(entry) for entry in entries[-1:]]
    assert left.sources == grown.sources[len(grown.sources) - len(left.sources) :]


type TurnSizes = tuple[list[int], int, int, int]
"""Characters of its results, its context, its question and its answer."""
_sizes = st.sampled_from([1, 300, 3_000, 30_000])
_turns: st.SearchStrategy[list[TurnSizes]] = st.lists(
    st.tuples(st.lists(_sizes, max_size=3), st.sampled_from([0, 9_000]), _sizes, _sizes), min_size=1, max_size=12
)


@settings(max_examples=40)
@given(_turns, st.sampled_from([noise, emoji]))
def test_whatever_yields_does_so_in_this_order(sizes: list[TurnSizes], write: Callable[[int, int], str]) -> None:
    turns = [
        turn(
            number,
            [write(size, 20 * number + each) for each, size in enumerate(of_results)],
            write(context, -1 - number),
            f"Q{number} {write(question, 300 + number)}",
            write(answer, 400 + number),
        )
        for number, (of_results, context, question, answer) in enumerate(sizes)
    ]
    left = turns_of(fitted(state_of(turns)))
    gone = len(turns) - len(left)
    recent = max(len(left) - 3, 0)
    """Where the last three turns begin among those that are left."""
    pairs = list(zip(left, turns[gone:], strict=True))
    kept_contexts = [contexts(now) == contexts(was) for now, was in pairs if contexts(was) != [""]]
    older, last = (
        [now == was for pair in part for now, was in zip(*map(results, pair), strict=False) if len(was) > KEPT]
        for part in (pairs[:recent], pairs[recent:])
    )

    assert kept_contexts == sorted(kept_contexts)
    assert older == sorted(older)
    assert last == sorted(last)
    if gone or not all(older + last):
        assert not any(kept_contexts)
    if gone or not all(last):
        assert not any(older)
    if gone > max(len(turns) - 3, 0):
        assert not any(last)
    assert [texts(now) for now, _ in pairs[:-1]] == [texts(was) for _, was in pairs[:-1]]


def turns_of(state: State) -> list[list[EntryRecord]]:
    starts = [number for number, entry in enumerate(state.entries) if isinstance(entry, UserRecord)]
    return [list(state.entries[start:end]) for start, end in pairwise([*starts, len(state.entries)])]


def texts(entries: Iterable[EntryRecord]) -> list[str]:
    return [entry.text for entry in entries if isinstance(entry, UserRecord | AnswerRecord)]


def contexts(entries: Iterable[EntryRecord]) -> list[str]:
    return [entry.context for entry in entries if isinstance(entry, UserRecord)]


def results(entries: Iterable[EntryRecord]) -> list[str]:
    rounds = (entry for entry in entries if isinstance(entry, RoundRecord))
    return [call.result or "" for entry in rounds for call in entry.calls]
