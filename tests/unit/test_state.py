"""A state as text comes back whole, any other text is one clear error, and what is too large yields in an order."""

import base64
import hashlib
import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.errors import InvalidParameters
from internal.memory.records import (
    AnswerRecord,
    CallRecord,
    EntryRecord,
    FileRecord,
    FindingRecord,
    PlanRecord,
    RoundRecord,
    SourceRecord,
    State,
    SubtaskRecord,
    SummaryRecord,
    ToolRecord,
    UserRecord,
)
from internal.memory.state import (
    MAX_ENTRIES,
    MAX_LENGTH,
    MAX_UNPACKED,
    MAX_WAITING,
    VERSION,
    decode,
    encode,
    size_of_waiting,
)
from tests.support.generators import any_text, json_objects, json_values, readable_text

_texts = readable_text.map(lambda text: text.replace("\0", ""))
_arguments = json_objects.map(lambda value: json.dumps(value, ensure_ascii=False))
_numbers = st.integers(0, 2**53)
FileRecord.model_rebuild()  # builds() reads its signature, which is there once the record is used
_attached = st.lists(st.builds(FileRecord, name=_texts, url=_texts, size=_numbers), max_size=2).map(tuple)


def calls(results: st.SearchStrategy[str | None]) -> st.SearchStrategy[CallRecord]:
    named = {"id": _texts, "provider": _texts, "tool": _texts, "setting": _texts}
    return st.builds(CallRecord, **named, arguments=_arguments, attached=_attached, result=results)


def _rounds(results: st.SearchStrategy[str | None]) -> st.SearchStrategy[EntryRecord]:
    return st.builds(RoundRecord, said=_texts, calls=st.lists(calls(results), min_size=1, max_size=3).map(tuple))


_findings = st.lists(st.builds(FindingRecord, subtask=_texts, answer=_texts, completed=st.booleans()), max_size=2)
_lines = st.lists(_texts, max_size=2).map(tuple)
_users = st.builds(UserRecord, text=_texts, files=_lines, context=_texts, findings=_findings.map(tuple))
_finished: st.SearchStrategy[EntryRecord] = _users | _rounds(_texts) | st.builds(AnswerRecord, text=_texts)
_conversations = st.lists(_finished, max_size=6)


def _subtasks(entries: Sequence[EntryRecord]) -> st.SearchStrategy[SubtaskRecord]:
    said = {"name": _texts, "answer": _texts, "nearest": _texts, "advised": _lines, "completed": st.booleans()}
    return st.builds(SubtaskRecord, **said, attempts=_numbers, rounds=_numbers, entries=st.just(tuple(entries)))


@st.composite
def states(draw: st.DrawFn) -> State:
    """Any state that a run could leave: finished, or with calls that wait, in a plan or not."""
    entries = [*draw(st.lists(st.builds(SummaryRecord, text=_texts), max_size=1)), *draw(_conversations)]
    source = st.builds(SourceRecord, number=st.integers(1, 999), title=_texts, document_id=st.none() | _texts)
    sources = tuple(draw(st.lists(source)))
    numbers = (draw(_numbers), draw(_numbers))
    skills = tuple(draw(st.lists(_texts, max_size=3)))
    found = tuple(draw(st.lists(st.builds(ToolRecord, provider=_texts, tool=_texts, setting=_texts), max_size=3)))
    state = State(strategy=draw(_texts), entries=tuple(entries), sources=sources, found=found, skills=skills)
    state = state.model_copy(update=dict(zip(("last_source", "last_call"), numbers, strict=True)))
    match draw(st.sampled_from(["nothing waits", "calls wait", "a plan waits"])):
        case "calls wait":
            return state.model_copy(update={"entries": (*entries, draw(_waiting_rounds("call")))})
        case "a plan waits":
            lasts = [draw(_waiting_rounds(f"subtask {index}")) for index in range(draw(st.integers(1, 3)))]
            conversations = [[*draw(_conversations), last] for last in lasts] + draw(st.sampled_from([[], [[]]]))
            subtasks = tuple(draw(_subtasks(each)) for each in conversations)
            update = {"entries": (*entries, draw(_users)), "plan": PlanRecord(subtasks=subtasks)}
            return state.model_copy(update=update)
    return state


@st.composite
def _waiting_rounds(draw: st.DrawFn, prefix: str) -> RoundRecord:
    """A round in which at least one call waits, under an id of its own."""
    drawn = [*draw(st.lists(calls(st.none() | _texts), max_size=3)), draw(calls(st.none()))]
    named = (
        call if call.result is not None else call.model_copy(update={"id": f"{prefix} {index}"})
        for index, call in enumerate(drawn)
    )
    return RoundRecord(said=draw(_texts), calls=tuple(named))


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


WRITERS = [noise, emoji, anything, escapes]


def _canonical(arguments: object) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def waiting_calls(write: Callable[[int, int], str], count: int, prefix: str = "call") -> list[CallRecord]:
    """Calls that are as large as all that wait may be."""
    calls = list[CallRecord]()
    for number in range(count):
        text = write(MAX_WAITING // count, number)
        most = MAX_WAITING // count
        name = f"{prefix}_{number}_{hashlib.sha256(b'%d' % number).hexdigest()[:8]}"
        while (size := size_of_waiting(waiting := call(None, name, _canonical({"a": text})))) > most:
            assert text, f"{count} calls without arguments are too large"
            text = text[: min(len(text) - 1, len(text) * most // size)]
        calls.append(waiting)
    return calls


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


HEAD = "gpt5-agent-state.1."
CALL = {"id": "a", "provider": "shop", "tool": "order", "arguments": "{}"}
USER = {"kind": "user", "text": "Why?"}
WAITING = {"kind": "round", "calls": [CALL]}
LATER = {"kind": "answer", "text": "So."}
PLAN = {"subtasks": [{"name": "a", "entries": [WAITING]}]}
SECRET = "top-secret-content"
A_STATE = encode(State(strategy="gpt5_react", entries=(UserRecord(text=SECRET * 20), AnswerRecord(text=SECRET))))


def text_of(content: bytes) -> str:
    """A text with a right checksum, whatever its content."""
    written = base64.urlsafe_b64encode(content).decode()
    return f"{HEAD}{hashlib.sha256(f'1.{written}'.encode()).hexdigest()[:32]}.{written}"


def packed(written: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(written) + packer.flush()


def of_json(value: object) -> str:
    return text_of(packed(json.dumps(value).encode()))


def problem_of(text: str) -> str:
    """What is wrong with a text; the error names the parameter and never quotes the content."""
    with pytest.raises(InvalidParameters) as caught:
        decode(text)
    problem = str(caught.value)
    assert problem.startswith("parameter 'state': ")
    assert SECRET not in problem
    assert len(problem) < 300
    return problem


@given(states(), st.sampled_from(["", " ", "\n", "\r\n\t"]))
def test_a_state_comes_back_as_it_was(state: State, space: str) -> None:
    text = encode(state)

    assert decode(space + text + space) == state
    assert text.isascii()
    assert json.dumps(text) == f'"{text}"'
    assert not set(text) & set("{}#$<>&'\"\\ \n")
    assert len(text) <= MAX_LENGTH


@pytest.mark.parametrize("text", ["", " \n", "null", "None", "[]", "{}", " null\n"])
def test_a_text_that_stands_for_no_state(text: str) -> None:
    assert decode(text) is None


@given(st.integers(0, len(A_STATE) - 1), st.integers(0, 9), st.text(max_size=3))
def test_a_state_that_was_cut_or_changed_is_refused(position: int, count: int, inside: str) -> None:
    for changed in (
        A_STATE[:position] + inside + A_STATE[position + count :],
        A_STATE[: position or 1],
        A_STATE[position or 1 :],
        A_STATE + A_STATE[: position or 1],
    ):
        if changed.strip() != A_STATE:
            problem_of(changed)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (" conversation.state ", "'conversation.state' looks like a variable that does not exist"),
        ('{"strategy": "gpt5_react"}', "not a state"),
        (A_STATE[:60] + "\n" + A_STATE[60:], "was cut or changed"),
        (A_STATE.replace("state.1.", "state.12."), "version 12, and this version of the plugin reads version 1"),
        ("x" * (MAX_LENGTH + 1), "131,073 characters, and a state has at most 131,072"),
        (text_of(packed(b'{"strategy": "\xff"}')), "cannot be unpacked"),
        (text_of(packed(b"{}") + b"{}"), "something follows its end"),
        (text_of(packed(b'{"strategy": "gpt5_react"}')[:-1]), "has no end"),
        (text_of(packed(b" " * (MAX_UNPACKED + 1))), "unpacks to more than 1 MiB"),
        (f"{HEAD}{hashlib.sha256(b'1.abcde').hexdigest()[:32]}.abcde", "not valid base64"),
    ],
    ids=lambda value: value if len(value) < 70 else "a text",
)
def test_what_is_wrong_is_named(text: str, problem: str) -> None:
    assert problem in problem_of(text)


def test_a_small_text_that_unpacks_to_much_more_is_not_unpacked() -> None:
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    bomb = text_of(b"".join([*(packer.compress(bytes(2**20)) for _ in range(90)), packer.flush()]))
    tracemalloc.start()

    assert "more than 1 MiB" in problem_of(bomb)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * MAX_UNPACKED


@given(
    st.binary(max_size=200)
    | any_text.map(lambda text: packed(text.encode(errors="ignore")))
    | json_values.map(lambda value: packed(json.dumps(value).encode()))
)
def test_other_content_with_a_right_checksum_is_an_error(content: bytes) -> None:
    problem_of(text_of(content))


@pytest.mark.parametrize(
    "fields",
    [
        {"more": 1},
        *({"last_source": number} for number in (-1, "1", True, 1.0, 2**53 + 1, float("nan"), float("inf"))),
        {"entries": [{"kind": "round", "calls": []}]},
        {"entries": [{**USER, "findings": [{"subtask": "a", "answer": "b", "completed": True}] * 9}]},
        {"entries": [USER], "plan": {"subtasks": PLAN["subtasks"] * 9}},
        {"entries": [USER], "plan": {"subtasks": [{"name": "a", "advised": ["b"] * 9, "entries": [WAITING]}]}},
        {"entries": [{"kind": "answer", "text": ""}] * (MAX_ENTRIES + 1)},
        {"entries": [WAITING, LATER]},
        {"entries": [{"kind": "round", "calls": [CALL, CALL]}]},
        {"entries": [USER], "plan": {"subtasks": [{"name": "a"}]}},
        {"entries": [USER, LATER], "plan": PLAN},
        {"plan": PLAN},
        {"entries": [USER], "plan": {"subtasks": [{"name": "a", "entries": [WAITING, LATER]}]}},
        {"entries": [USER], "plan": {"subtasks": [{"name": name, "entries": [WAITING]} for name in "ab"]}},
    ],
)
def test_records_that_do_not_fit_are_refused(fields: dict[str, object]) -> None:
    assert "fields of a state" in problem_of(of_json({"strategy": "gpt5_react", **fields}))


def test_odd_json_is_refused() -> None:
    long = b'{"strategy": "a", "last_source": ' + b"9" * 5_000
    deep = b'{"strategy": "a", "entries": ' + b"[" * 100_000
    half_a_pair = b'{"strategy": "\\ud83d"}'
    byte_order_mark = b'\xef\xbb\xbf{"strategy": "a"}'

    for written in (long + b"}", deep + b"]" * 100_000 + b"}", half_a_pair, byte_order_mark):
        assert "fields of a state" in problem_of(text_of(packed(written)))


def test_texts_are_written_and_read_without_what_cannot_be_stored() -> None:
    odd = "a\ud83d\0b"
    call = CallRecord(id=odd, provider="p", tool=odd, arguments='{"a": "é"}', result=odd)
    clean = decode(encode(State(strategy="gpt5_react", entries=(RoundRecord(said=odd, calls=(call,)),))))
    read = decode(of_json({"strategy": "a\0b \\u0000"}))

    assert clean is not None
    assert isinstance(last := clean.entries[-1], RoundRecord)
    assert (last.said, last.calls[0].result, last.calls[0].tool) == ("a?b", "a?b", "a?b")
    assert read == State(strategy="ab \\u0000")


STORED = Path(__file__).parent.parent / "fixtures" / "state"
"""States of each version that was ever in use, one a line, and what they say."""


@pytest.mark.parametrize("path", sorted(STORED.glob("v*.txt")), ids=lambda path: path.stem)
def test_a_state_of_each_version_goes_on_in_later_ones(path: Path) -> None:
    stored = [decode(line) for line in path.read_text().splitlines()]
    expected = [
        State.model_validate_json(json.dumps(each)) for each in json.loads(path.with_suffix(".json").read_text())
    ]

    assert stored == expected
    assert [bool(state.waiting) for state in expected] == [False, False, True, True]
    assert [decode(encode(state)) for state in expected] == expected


def test_a_state_of_this_version_is_stored() -> None:
    assert {path.stem for path in STORED.glob("v*.txt")} == {f"v{number}" for number in range(1, VERSION + 1)}


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
    first = results(fitted(state).entries)[0]
    whole = noise(20_000, 0)

    assert len(first) == KEPT
    assert (first[:600], first[-300:]) == (whole[:600], whole[-300:])
    assert "characters were not kept" in first


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


def test_a_summary_stays_while_turns_go() -> None:
    summary = SummaryRecord(text="S" * 4_000)
    left = fitted(state_of([[summary], *(turn(number, answer=noise(30_000, number)) for number in range(9))]))

    assert left.entries[0] == summary
    assert users(left) == ["Q5", "Q6", "Q7", "Q8"]


def test_a_state_that_would_unpack_to_too_much_yields_too() -> None:
    state = state_of([turn(number, ["a" * 200_000] * 8) for number in range(25)])
    left = fitted(state)

    assert [len(result) for result in results(left.entries)[-6:]] == [KEPT] + [200_000] * 5


@pytest.mark.parametrize(("write", "count"), [(anything, 1), (emoji, 300), (escapes, 1)])
def test_calls_that_wait_never_yield(write: Callable[[int, int], str], count: int) -> None:
    done = [call(write(300_000, 7), "done", json.dumps({"a": write(300_000, 7)}))] * 3
    last = RoundRecord(said=write(200_000, 7), calls=(*done, *waiting_calls(write, count), *done))
    sources = tuple(SourceRecord(number=number, title=write(1_000, number)) for number in range(1, 301))
    asked = UserRecord(text=write(200_000, 8), files=(write(300, 9),) * 99)
    state = state_of([turn(1), [asked, AnswerRecord(text="A"), last]], sources=sources)

    left = fitted(state)

    assert isinstance(end := left.entries[-1], RoundRecord)
    assert {call.id for call in end.calls if call.result is not None} <= {"done"}


def test_very_many_records_yield_too_though_they_pack_well() -> None:
    rounds = (RoundRecord(calls=(call(""),)),) * 6_000

    left = fitted(State(strategy="gpt5_react", entries=(UserRecord(text="Q"), *rounds)))
    assert 0 < len(left.entries) <= MAX_ENTRIES


def test_more_calls_than_may_wait_are_an_error() -> None:
    with pytest.raises(ValueError, match="more waits than a state can hold"):
        encode(state_of([[RoundRecord(calls=(call(None, arguments=f'{{"a": "{noise(200_000)}"}}'),))]]))


@settings(max_examples=settings().max_examples // 6)  # each is packed some twenty times
@given(states(), st.integers(1, 300), st.sampled_from(WRITERS))
def test_a_state_of_any_shape_fits(state: State, times: int, write: Callable[[int, int], str]) -> None:
    grown = state.with_texts(lambda text: text + write(300, len(text)), str)
    entries = (*grown.entries[:-1] * times, *grown.entries[-1:])

    left = fitted(grown.model_copy(update={"entries": entries}))

    assert [type(entry) for entry in left.entries[-1:]] == [type(entry) for entry in entries[-1:]]
    assert left.sources == grown.sources[len(grown.sources) - len(left.sources) :]
    named = [[subtask.name for subtask in each.plan.subtasks] if each.plan else [] for each in (left, grown)]
    assert named[0] == named[1]


type TurnSizes = tuple[list[int], int, int, int]
"""Characters of its results, its context, its question and its answer."""
_sizes = st.sampled_from([1, 300, 3_000, 30_000])
_turns: st.SearchStrategy[list[TurnSizes]] = st.lists(
    st.tuples(st.lists(_sizes, max_size=3), st.sampled_from([0, 9_000]), _sizes, _sizes), min_size=1, max_size=12
)


@settings(max_examples=settings().max_examples // 6)
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
