"""Hypothesis strategies for the state of a conversation."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise

from hypothesis import strategies as st

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
    MAX_WAITING,
    size_of_waiting,
)
from tests.support.generators import json_objects, readable_text

_texts = readable_text.map(lambda text: text.replace("\0", ""))
_arguments = json_objects.map(lambda value: json.dumps(value, ensure_ascii=False))
_numbers = st.integers(0, 2**53)


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
    sources, numbers = tuple(draw(st.lists(source))), (draw(_numbers), draw(_numbers))
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
        text, most = write(MAX_WAITING // count, number), MAX_WAITING // count
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
