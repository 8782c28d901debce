"""Encodes the record of a conversation as the state variable, shortened until it fits, and decodes the variable."""

import base64
import hashlib
import json
import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, count
from typing import Any

from internal.clock import give_way, in_turns
from internal.errors import InvalidParameters
from internal.json_values import rebuilt
from internal.memory.records import CallRecord, EntryRecord, RoundRecord, State, SummaryRecord, UserRecord
from internal.text.texts import cut_to_size, looks_like_selector, missing_variable, wellformed, without_escaped_nul
from prompt import template

VERSION = 1
MAX_LENGTH = 128 * 1024
"""Maximum characters of a state. A conversation in Dify fails permanently if one of its variables exceeds 200 KiB."""
MAX_UNPACKED = 1024 * 1024
"""Maximum bytes of JSON. Pydantic reads this much in 0.1 s, during which no other session runs."""
MAX_ENTRIES = 5_000
"""Maximum number of entries. Later runs iterate over all of them several times."""
MAX_WAITING = 64 * 1024
"""Maximum bytes of JSON of all waiting calls together, so that they fit into a state (docs/state.md)."""
_BEGINNING = "gpt5-agent-state."
_CHECKSUM_LENGTH = 32
_MAX_PACKED = (MAX_LENGTH - len(f"{_BEGINNING}{VERSION}.") - _CHECKSUM_LENGTH - 1) // 4 * 3
"""Maximum bytes whose base64 fits after version and checksum."""
_NONE = frozenset({"", "null", "None", "[]", "{}"})
"""Texts that Dify uses for a missing state."""
_ADVICE = "give it the variable 'state' of an earlier run, unchanged, or leave it blank to begin without one"


def encode(state: State) -> str:
    """Return the state as text, shortened to fit; raises ``ValueError`` if the waiting calls do not fit."""
    content = base64.urlsafe_b64encode(_fitted(state.with_texts(wellformed, wellformed))).decode()
    return f"{_BEGINNING}{VERSION}.{_checksum(content)}.{content}"


def decode(text: str) -> State | None:
    """Return the state in a text; None for a text that means that there is no state.

    The checksum detects damage, such as a text that was cut, but not forgery. Raises ``InvalidParameters``, without
    quotations, unless the text is a complete and unchanged state of this version.
    """
    text = text.strip()
    if text in _NONE:
        return None
    if len(text) > MAX_LENGTH:
        raise _refused(f"it has {len(text):,} characters, and a state has at most {MAX_LENGTH:,}")
    if looks_like_selector(text):
        raise InvalidParameters(f"parameter 'state': {missing_variable(text)}")
    written = _unpacked(_content(text))
    try:
        state = State.model_validate_json(without_escaped_nul(written))
        _check(state)
    except ValueError:
        raise _refused("its content does not have the fields of a state") from None
    return state


def size_of_waiting(call: CallRecord) -> int:
    """Return the maximum bytes of JSON of a waiting call in a state. All of them together may have ``MAX_WAITING``."""
    return len(json.dumps(call.model_dump(), ensure_ascii=False).encode(errors="replace"))


def _content(text: str) -> bytes:
    """Return the decoded base64, after version and checksum were verified."""
    if not text.startswith(_BEGINNING):
        raise _refused("it is not a state: it does not begin as one")
    version = re.match(r"([0-9]{1,9})\.", text.removeprefix(_BEGINNING))
    if version and version[1] != str(VERSION):
        problem = f"it is a state of version {version[1]}, and this version of the plugin reads version {VERSION}"
        raise _refused(problem, "clear the variable to begin without one")
    checksum, _, content = text.removeprefix(f"{_BEGINNING}{VERSION}.").partition(".")
    if checksum != _checksum(content):
        raise _refused("it was cut or changed: its checksum does not fit")
    try:
        return base64.b64decode(content, altchars=b"-_", validate=True)
    except ValueError:
        raise _refused("it is not valid base64") from None


def _checksum(content: str) -> str:
    return hashlib.sha256(f"{VERSION}.{content}".encode(errors="replace")).hexdigest()[:_CHECKSUM_LENGTH]


def _unpacked(content: bytes) -> str:
    """Return the unpacked JSON. Unpacking stops at the limit of a state, since a small text can unpack to gigabytes."""
    unpacker = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    try:
        written = unpacker.decompress(content, MAX_UNPACKED + 1)
        if len(written) > MAX_UNPACKED:
            raise _refused(f"it unpacks to more than {MAX_UNPACKED // 2**20} MiB")
        if not unpacker.eof or unpacker.unused_data:
            raise _refused("it cannot be unpacked: it has no end, or something follows its end")
        return written.decode()
    except (zlib.error, UnicodeDecodeError):
        raise _refused("it cannot be unpacked") from None


def _check(state: State) -> None:
    """Refuse too many entries, and calls that no run could have left in this form."""
    if sum(map(len, state.conversations)) > MAX_ENTRIES:
        raise ValueError("too many entries")
    waiting = [call.id for call in state.waiting]
    if len(set(waiting)) < len(waiting):
        raise ValueError("two calls wait under one id")
    if state.plan and not (waiting and state.entries and isinstance(state.entries[-1], UserRecord)):
        raise ValueError("a plan without a question, or without a call that waits")
    before_the_end = chain.from_iterable(entries[:-1] for entries in state.conversations)
    if any(isinstance(entry, RoundRecord) and entry.waiting for entry in before_the_end):
        raise ValueError("a call waits before the end of its conversation")


def _refused(problem: str, advice: str = _ADVICE) -> InvalidParameters:
    return InvalidParameters(f"parameter 'state': {problem}; {advice}")


# A state that is too large loses thoughts, contexts, long results and then turns. The oldest of each kind
# are removed first, and only as many as necessary. Finally most of the last turn is removed. Waiting calls are never
# removed.

_RECENT_TURNS = 3
"""Number of last turns whose results are shortened later than those of other turns."""
_KEPT = 1_000
"""Maximum characters of a shortened result."""
_TEXT_LIMITS = (20_000, 1_000, 100)
"""Maximum characters of each text, in the last steps."""

type _Step = Callable[[State, int], State]


def _fitted(state: State) -> bytes:
    """Return the packed JSON of a state, shortened until it fits."""
    every_entry = sum(map(len, state.conversations))
    turns = _turns(state.entries)
    earlier = max(0, len(turns) - 1)
    older = max(0, len(turns) - _RECENT_TURNS)
    steps: list[tuple[_Step, int, int]] = [  # the change, its maximum number, and the turns that are removed first
        (partial(_changed, _without_thoughts), every_entry, 0),
        (partial(_changed, _without_context), every_entry, 0),
        (partial(_changed, _with_short_results), turns[older] if turns else 0, 0),
        (partial(_changed, _with_short_results), every_entry, older),
        (_with_short_texts, 1, earlier),
        (_without_turns, earlier, 0),
        (lambda state, number: state.model_copy(update={"sources": state.sources[number:]}), len(state.sources), 0),
        (_without_rounds, every_entry, 0),
        (_with_short_texts, len(_TEXT_LIMITS), 0),
    ]
    if packed := _packed(state):
        return packed
    for step, most, turns_before in steps:
        fits = partial(_fits, step, state, turns_before)
        state = step(state, bisect_left(range(most), x=True, key=fits) if fits(most) else most)
        if packed := _packed(state):
            return packed
    raise ValueError("more waits than a state can hold")


def _fits(step: _Step, state: State, turns_before: int, number: int) -> bool:
    return bool(_packed(_without_turns(step(state, number), turns_before)))


def _packed(state: State) -> bytes:
    """Return the JSON of a state as a raw deflate stream; empty if it does not fit."""
    give_way()
    entries = list(chain.from_iterable(state.conversations))
    calls = chain.from_iterable(entry.calls for entry in entries if isinstance(entry, RoundRecord))
    if len(entries) > MAX_ENTRIES or sum(len(call.result or "") for call in calls) > MAX_UNPACKED:
        return b""
    written = state.model_dump_json().encode()
    if len(written) > MAX_UNPACKED:
        return b""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = bytearray()
    for start in in_turns(range(0, len(written), 2**14)):
        packed += packer.compress(written[start : start + 2**14])
        if len(packed) > _MAX_PACKED:
            break
    packed += packer.flush()
    if len(packed) <= _MAX_PACKED:
        return bytes(packed)
    return b""


def _turns(entries: Sequence[EntryRecord]) -> list[int]:
    """Return the positions where turns begin. Each turn begins with the user's message."""
    return [at for at, entry in enumerate(entries) if at == 0 or isinstance(entry, UserRecord)]


def _changed(change: Callable[[EntryRecord], EntryRecord], state: State, number: int) -> State:
    """Return the state with its ``number`` oldest entries changed. Entries of subtasks come last."""
    places = count()
    return state.with_conversations(
        [change(entry) if next(places) < number else entry for entry in in_turns(entries)]
        for entries in state.conversations
    )


def _without_thoughts(entry: EntryRecord) -> EntryRecord:
    """Return the entry without thoughts. A round with waiting calls keeps them, or providers may refuse its results."""
    if not isinstance(entry, RoundRecord) or entry.waiting:
        return entry
    return entry.model_copy(update={"content": ""})


def _without_context(entry: EntryRecord) -> EntryRecord:
    if isinstance(entry, UserRecord):
        return entry.model_copy(update={"context": ""})
    return entry


def _with_short_results(entry: EntryRecord) -> EntryRecord:
    """Return the entry with shortened results. The findings of subtasks count as results."""
    match entry:
        case UserRecord(findings=findings):
            found = (each.model_copy(update={"answer": _cut_text(each.answer, _KEPT)}) for each in findings)
            return entry.model_copy(update={"findings": tuple(found)})
        case RoundRecord(calls=calls):
            ended = (
                each.model_copy(update={"result": each.result and _cut_text(each.result, _KEPT)}) for each in calls
            )
            return entry.model_copy(update={"calls": tuple(ended)})
    return entry


def _without_turns(state: State, number: int) -> State:
    """Return the state without its oldest turns. A summary is kept."""
    begin = 0
    if number:
        begin = _turns(state.entries)[number]
    summary = [entry for entry in state.entries[: min(begin, 1)] if isinstance(entry, SummaryRecord)]
    return state.model_copy(update={"entries": (*summary, *state.entries[begin:])})


def _without_rounds(state: State, number: int) -> State:
    """Return the state with only the first and last entries of the last turn and of each subtask. A summary is kept."""

    def shortened(entries: tuple[EntryRecord, ...]) -> tuple[EntryRecord, ...]:
        begun = 1 + any(isinstance(entry, SummaryRecord) for entry in entries[:1])
        return (*entries[:begun], *entries[begun + number : -1], *entries[begun:][-1:])

    return state.with_conversations(map(shortened, state.conversations))


def _with_short_texts(state: State, number: int) -> State:
    if number:
        return State.model_validate(_cut(state.model_dump(), _TEXT_LIMITS[number - 1]))
    return state


def _cut(record: dict[str, Any], limit: int) -> Any:  # noqa: ANN401 - a record's fields
    """Return a record with each text cut to ``limit`` characters, except for the texts of waiting calls.

    Arguments remain valid JSON. At the lowest limit, files are removed, and only the waiting calls are kept, or the
    last call if none waits.
    """

    def cut(value: Any, name: str) -> object:  # noqa: ANN401 - a record's fields
        match value:
            case {"arguments": _, "result": None}:
                return dict(value)
            case tuple() if name == "files" and limit == _TEXT_LIMITS[-1]:
                return ()
            case str() if len(value) > limit and name == "arguments":
                return "{}"
            case str() if len(value) > limit:
                return _cut_text(value, limit)
        return value

    def with_few_calls(value: Any, name: str) -> object:  # noqa: ANN401 - as above
        if name == "calls" and isinstance(value, tuple):
            return tuple(call for call in value if call["result"] is None) or value[-1:]
        return value

    if limit == _TEXT_LIMITS[-1]:
        record = rebuilt(record, with_few_calls)
    return rebuilt(record, cut)


def _cut_text(text: str, limit: int) -> str:
    return cut_to_size(text, limit, note=template.CHARACTERS_NOT_KEPT.format)
