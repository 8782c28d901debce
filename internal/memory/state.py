"""The state variable: the record of a conversation as one text, and back."""

import base64
import codecs
import hashlib
import json
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat

from pydantic import TypeAdapter
from pydantic_core import to_json

from internal.clock import in_turns
from internal.errors import InvalidParameters
from internal.memory.records import (
    AnswerRecord,
    CallRecord,
    EntryRecord,
    FileRecord,
    FindingRecord,
    RoundRecord,
    SourceRecord,
    State,
    SubtaskRecord,
    UserRecord,
)
from internal.text.texts import cut_to_size, looks_like_selector, missing_variable, wellformed
from internal.tooling import parse_object
from prompt import template

# JSON that is compressed in pieces, so that a change compresses one of them again and not all.
#
# The blocks of a piece refer to nothing outside of it; that costs a tenth in size beside one piece for all.

MAX_UNPACKED = 8 * 1024 * 1024
"""Bytes of JSON that a state unpacks to."""
MAX_PARTS = 5_000
"""Parts of a state: hundreds of thousands of tiny records would pack well, and keep other sessions waiting."""
_PIECE = 128 * 1024
"""Bytes of JSON in a piece; a longer part is a piece of its own."""
_BLOCK = 16 * 1024
"""Bytes that are compressed at once."""
_END = b"\x03\x00"
"""The block that ends a raw deflate stream."""


@dataclass
class _Piece:
    start: int
    end: int
    """Of its parts."""
    packed: bytes | None = None
    """None until it is packed, and again when a part of it has changed."""


class Draft:
    """The parts of a JSON value, which can be exchanged until the whole is small enough."""

    def __init__(self, parts: Sequence[bytes], max_packed: int) -> None:
        """Small enough: ``max_packed`` bytes when packed, ``MAX_UNPACKED`` before, and ``MAX_PARTS`` parts."""
        self._parts = list(parts)
        self._max_packed = max_packed
        self._length = sum(map(len, parts))
        self._count = sum(map(bool, parts))
        self._worth_packing = MAX_UNPACKED
        """The length above which the parts cannot be small enough, unless one of them has grown."""
        self._pieces: list[_Piece] = []

    def put(self, parts: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Exchange the parts at these places, an empty one takes its part out; what stood there before.

        To put that back undoes the change.
        """
        before = [(index, self._exchanged(index, part)) for index, part in parts]
        return before[::-1]

    def _exchanged(self, index: int, part: bytes) -> bytes:
        before, self._parts[index] = self._parts[index], part
        more = len(part) - len(before)
        self._length += more
        self._count += bool(part) - bool(before)
        if more > 0:
            self._worth_packing = MAX_UNPACKED
        if self._pieces:
            self._piece_with(index).packed = None
        return before

    def fits(self) -> bool:
        """Whether it is small enough; packs what has changed, unless too little has for that."""
        if self._length > self._worth_packing or self._count > MAX_PARTS:
            return False
        excess = len(self.packed()) - self._max_packed
        # A byte less of JSON makes the packed text shorter by about a byte at most.
        self._worth_packing = self._length - max(excess, 0)
        return excess <= 0

    def packed(self) -> bytes:
        """The raw deflate stream."""
        self._pieces = self._pieces or _pieces(self._parts)
        packed = (piece.packed or self._pack(piece) for piece in in_turns(self._pieces))
        return b"".join([*packed, _END])

    def _pack(self, piece: _Piece) -> bytes:
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        blocks = _blocks(b"".join(self._parts[piece.start : piece.end]))
        packed = [packer.compress(block) for block in in_turns(blocks)]
        piece.packed = b"".join([*packed, packer.flush(zlib.Z_SYNC_FLUSH)])  # ends at a byte, so that others can follow
        return piece.packed

    def _piece_with(self, index: int) -> _Piece:
        return self._pieces[bisect_right(self._pieces, index, key=lambda piece: piece.start) - 1]


def _pieces(parts: Iterable[bytes]) -> list[_Piece]:
    """Neighbouring parts in pieces."""
    pieces, length = [_Piece(0, 0)], 0
    for index, part in enumerate(parts):
        if length and length + len(part) > _PIECE:
            pieces.append(_Piece(index, index))
            length = 0
        pieces[-1].end = index + 1
        length += len(part)
    return pieces


def _blocks(written: bytes) -> Iterator[bytes]:
    return (written[start : start + _BLOCK] for start in range(0, len(written), _BLOCK))


# The JSON of a state in parts, and which of them may yield when it is too large.
#
# Each element of an array ends in its comma, and the last has none: any of the others can be left out.


@dataclass(frozen=True)
class TextPart:
    """A part that is a text and the JSON before it."""

    index: int
    before: bytes
    text: str

    def saying(self, text: str) -> bytes:
        """The part with another text."""
        return self.before + to_json(text)


@dataclass
class EntryParts:
    """Where an entry stands among the parts."""

    entry: EntryRecord
    end: bytes
    """What stands behind its last brace."""
    start: int
    stop: int = 0
    context: TextPart | None = None
    files: list[int] = field(default_factory=list)
    """The parts with their lines."""
    results: list[TextPart] = field(default_factory=list)
    """Findings among them."""
    texts: list[TextPart] = field(default_factory=list)


@dataclass
class SubtaskParts:
    """Where a subtask of a plan stands among the parts."""

    name: TextPart
    texts: Sequence[TextPart]
    """All but its name."""
    entries: Sequence[EntryParts]


@dataclass
class Layout:
    """A state's parts; the oldest entries and sources first."""

    parts: list[bytes] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    entries: Sequence[EntryParts] = ()
    subtasks: list[SubtaskParts] = field(default_factory=list)


def lay_out(state: State) -> Layout:
    """The parts of a state."""
    writer = _Writer()
    writer.write_state(state)
    return writer.layout


def written_entry(entry: EntryRecord) -> bytes:
    """The JSON of one entry."""
    writer = _Writer()
    writer.write_entry(entry, b"")
    return b"".join(writer.layout.parts)


class _Writer:
    def __init__(self) -> None:
        self.layout = Layout()

    def write_state(self, state: State) -> None:
        self._write(_opened({name: getattr(state, name) for name in ("strategy", "last_source", "last_call")}))
        self._write(b',"sources":[')
        for source, end in _with_commas(state.sources):
            self.layout.sources.append(len(self.layout.parts))
            self._write(to_json(source.model_dump(exclude_defaults=True)) + end)
        self._write(b'],"entries":[')
        self.layout.entries = self._write_entries(state.entries)
        self._write(b"]")
        if state.plan:
            self._write(b',"plan":{"subtasks":[')
            for subtask, end in _with_commas(state.plan.subtasks):
                self._write_subtask(subtask, end)
            self._write(b"]}")
        self._write(b"}")

    def _write_entries(self, entries: Sequence[EntryRecord]) -> list[EntryParts]:
        return [self.write_entry(entry, end) for entry, end in _with_commas(entries)]

    def write_entry(self, entry: EntryRecord, end: bytes) -> EntryParts:
        parts = EntryParts(entry, end, start=len(self.layout.parts))
        match entry:
            case UserRecord():
                parts.texts.append(self._write_text(b'{"kind":"user","text":', entry.text))
                if entry.context:
                    parts.context = self._write_text(b',"context":', entry.context)
                for number, (line, comma) in enumerate(_with_commas(entry.files)):
                    parts.files.append(len(self.layout.parts))
                    self._write((b"" if number else b',"files":[') + to_json(line) + (comma or b"]"))
                self._write_findings(entry, parts)
            case RoundRecord():
                parts.texts.append(self._write_text(b'{"kind":"round","said":', entry.said))
                self._write(b',"calls":[')
                for call, comma in _with_commas(entry.calls):
                    self._write_call(call, comma, parts)
                self._write(b"]")
            case AnswerRecord():
                parts.texts.append(self._write_text(b'{"kind":"answer","text":', entry.text))
        self._write(b"}" + end)
        parts.stop = len(self.layout.parts)
        return parts

    def _write_findings(self, entry: UserRecord, parts: EntryParts) -> None:
        if entry.findings:
            self._write(b',"findings":[')
            for finding, comma in _with_commas(entry.findings):
                parts.texts.append(self._write_text(b'{"subtask":', finding.subtask))
                parts.results.append(self._write_text(b',"answer":', finding.answer))
                self._write(b',"completed":' + to_json(finding.completed) + b"}" + comma)
            self._write(b"]")

    def _write_call(self, call: CallRecord, comma: bytes, parts: EntryParts) -> None:
        self._write(_opened(call.model_dump(exclude={"result"}, exclude_defaults=True)))
        if call.result is not None:
            parts.results.append(self._write_text(b',"result":', call.result))
        self._write(b"}" + comma)

    def _write_subtask(self, subtask: SubtaskRecord, end: bytes) -> None:
        name = self._write_text(b'{"name":', subtask.name)
        texts = [self._write_text(b',"answer":', subtask.answer), self._write_text(b',"nearest":', subtask.nearest)]
        self._write(b"," + _opened(subtask.model_dump(include={"completed", "attempts", "rounds"}))[1:])
        self._write(b',"advised":[')
        texts += [self._write_text(b"," if number else b"", text) for number, text in enumerate(subtask.advised)]
        self._write(b'],"entries":[')
        self.layout.subtasks.append(SubtaskParts(name, texts, self._write_entries(subtask.entries)))
        self._write(b"]}" + end)

    def _write_text(self, before: bytes, text: str) -> TextPart:
        part = TextPart(len(self.layout.parts), before, text)
        self._write(part.saying(text))
        return part

    def _write(self, part: bytes) -> None:
        self.layout.parts.append(part)


def _opened(fields: Mapping[str, object]) -> bytes:
    """An object that goes on."""
    return to_json(fields)[:-1]


def _with_commas[T](items: Sequence[T]) -> Iterator[tuple[T, bytes]]:
    """Each item, and what stands behind it."""
    last = len(items) - 1
    return ((item, b"," if index < last else b"") for index, item in enumerate(in_turns(items)))


# The JSON of a state, read record by record.
#
# Python's own parser cannot be interrupted, and takes long for a text that only looks like a state: here other
# sessions run in between, and the first thing that does not fit is the end of it.

_SPACE = re.compile(r"[ \t\n\r]*")
_MAX_NAMES = 16
"""Of one object: more than any record has fields."""
_MAX_VALUES = 4 * MAX_PARTS
"""As many as a state of so many parts can have: the part of a source is an object with three fields."""
_MAX_NUMBER = 2**53
"""Larger integers do not pass Dify unchanged."""
_ITEMS: dict[str, TypeAdapter[object]] = {
    "entries": TypeAdapter(EntryRecord),
    "calls": TypeAdapter(CallRecord),
    "findings": TypeAdapter(FindingRecord),
    "sources": TypeAdapter(SourceRecord),
    "subtasks": TypeAdapter(SubtaskRecord),
    "attached": TypeAdapter(FileRecord),
    "advised": TypeAdapter(str),
    "files": TypeAdapter(str),
}
"""What stands in the arrays, by their names."""


def read_state(written: str, clean: Callable[[str], str]) -> State:
    """The state that the JSON says, with each of its texts cleaned.

    Raises:
        ValueError: it is not JSON, or not that of a state; a name stands twice in an object; a number is too large;
            it has more values than a state; no run could have left its calls like this.
        RecursionError: it is nested too deeply.
    """
    state = State.model_validate(_Reader(written, clean).whole())
    _check_calls(state)
    return state


def _check_calls(state: State) -> None:
    """Refuse calls that no run could have left like this.

    Raises:
        ValueError: calls wait before the end of a conversation or under the same id, a plan has no question or
            waits for nothing, or arguments are not the text of a JSON object.
    """
    waiting = [call.id for call in state.waiting]
    if len(set(waiting)) < len(waiting):
        raise ValueError("two calls wait under one id")
    if state.plan and not (waiting and state.entries and isinstance(state.entries[-1], UserRecord)):
        raise ValueError("a plan without a question, or without a call that waits")
    for entries in state.conversations:
        _check_conversation(entries)


def _check_conversation(entries: tuple[EntryRecord, ...]) -> None:
    rounds = [entry for entry in entries if isinstance(entry, RoundRecord)]
    if any(entry.waiting for entry in rounds if entry is not entries[-1]):
        raise ValueError("a call waits before the end of its conversation")
    for call in in_turns(call for entry in rounds for call in entry.calls):
        parse_object(call.arguments)


def _refuse(_number: str) -> float:
    """No record has a fraction."""
    raise ValueError


_LEAVES = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse)


class _Reader:
    def __init__(self, written: str, clean: Callable[[str], str]) -> None:
        self._written = written
        self._clean = clean
        self._at = 0
        self._turns = in_turns(range(_MAX_VALUES))

    def whole(self) -> object:
        """The value, and nothing behind it."""
        value = self._value("")
        if self._next():
            raise ValueError
        return value

    def _value(self, name: str) -> object:
        """The value that begins here, under this name."""
        if next(self._turns, None) is None:
            raise ValueError
        match self._next():
            case "{":
                return self._object()
            case "[":
                return self._array(name)
        return self._leaf()

    def _object(self) -> dict[str, object]:
        fields: dict[str, object] = {}
        is_last = self._opens_empty("}")
        while not is_last:
            self._next()
            name = self._leaf()
            if not isinstance(name, str) or name in fields or len(fields) == _MAX_NAMES or self._next() != ":":
                raise ValueError
            self._at += 1
            fields[name] = self._value(name)
            is_last = self._ends("}")
        return fields

    def _array(self, name: str) -> tuple[object, ...]:
        if name not in _ITEMS:
            raise ValueError
        items, is_last = list[object](), self._opens_empty("]")
        while not is_last:
            items.append(_ITEMS[name].validate_python(self._value(""), strict=True))
            is_last = self._ends("]")
        return tuple(items)

    def _leaf(self) -> object:
        if self._written[self._at : self._at + 1] in {"{", "["}:
            raise ValueError
        value, self._at = _LEAVES.raw_decode(self._written, self._at)
        if isinstance(value, int) and abs(value) > _MAX_NUMBER:
            raise ValueError
        return self._clean(value) if isinstance(value, str) else value

    def _next(self) -> str:
        """The next character that is not white space; "" at the end."""
        space = _SPACE.match(self._written, self._at)
        self._at = space.end() if space else self._at
        return self._written[self._at : self._at + 1]

    def _opens_empty(self, bracket: str) -> bool:
        """Pass the opening bracket; whether the closing one follows, which is passed too."""
        self._at += 1
        is_empty = self._next() == bracket
        self._at += is_empty
        return is_empty

    def _ends(self, bracket: str) -> bool:
        """Pass the comma or the bracket behind an item; whether it was the bracket."""
        separator = self._next()
        if separator not in {",", bracket}:
            raise ValueError
        self._at += 1
        return separator == bracket


# What yields when a state would be too large.
#
# What yields, in this order, and in each the oldest first: context; results in older turns than the last three, down
# to their head and tail; whole older turns; results in the last three turns, as above; whole turns but the last;
# sources; at last the results of the last turn, its rounds and long texts. Calls that wait never yield. What subtasks
# found counts as results.
#
# Turns and sources come back, the newest first, where what yielded after them has made room for them: a long result
# of today costs its own length, and not the whole conversation before it.

MAX_WAITING = 64 * 1024
"""Bytes of JSON that the waiting calls of a state may have together, so that they fit whatever they say."""
_RECENT_TURNS = 3
"""The last turns, whose results stay whole for longer."""
_KEPT = 1_000
"""Characters of a result."""
_LONG, _SHORT = 20_000, 100
"""Characters of each text in the last turn."""


type _Parts = list[tuple[int, bytes]]
"""What stands at which place; an empty part is left out."""


@dataclass(frozen=True)
class _Change:
    parts: _Parts
    can_return: bool = False
    """Whether it is undone if there is room in the end."""


def size_of_waiting(call: CallRecord) -> int:
    """The bytes of JSON that a waiting call takes in a state at most; of all that wait, ``MAX_WAITING`` fit."""
    return len(json.dumps(call.model_dump(exclude_defaults=True), ensure_ascii=False).encode(errors="replace"))


def fitted(state: State, max_packed: int) -> bytes:
    """The packed JSON of a state in so many bytes.

    Raises:
        ValueError: the calls that wait do not fit; they have more than ``MAX_WAITING`` bytes.
    """
    layout = lay_out(state)
    draft = Draft(layout.parts, max_packed)
    changes, left_out = in_turns(_changes(layout)), list[_Parts]()
    while not draft.fits():
        change = next(changes, None)
        if change is None:
            raise ValueError("more waits than a state can hold")
        before = draft.put(change.parts)
        if change.can_return:
            left_out.append(before)
    _bring_back(left_out[::-1], draft)
    return draft.packed()


def _bring_back(left_out: Sequence[_Parts], draft: Draft) -> None:
    """Put back as many as fit of what was left out; more and more at once, then fewer and fewer."""
    count, step, all_fitted = 0, 1, True
    while step and count < len(left_out):
        batch = left_out[count : count + step]
        before = draft.put([part for parts in batch for part in parts])
        if draft.fits():
            count += len(batch)
        else:
            draft.put(before)
            all_fitted = False
        step = step * 2 if all_fitted else step // 2


def _changes(layout: Layout) -> Iterator[_Change]:
    """What yields, step by step."""
    turns = _turns(layout.entries)
    older, recent = turns[:-_RECENT_TURNS], turns[-_RECENT_TURNS:]
    subtasks = [subtask.entries for subtask in layout.subtasks]
    contexts = (entry.context for turn in [*turns, *subtasks] for entry in turn if entry.context)
    yield from (_Change([(part.index, b"")]) for part in contexts)
    yield from _cut((part for turn in older for part in _results(turn)), _KEPT)
    yield from (_Change(_left_out(turn), can_return=True) for turn in older)
    yield from _cut((part for turn in [*recent, *subtasks] for part in _results(turn)), _KEPT)
    yield from (_Change(_left_out(turn), can_return=True) for turn in recent[:-1])
    yield from (_Change([(index, b"")], can_return=True) for index in layout.sources)
    yield from _changes_of_the_rest(layout, [*recent[-1:], *subtasks])


def _changes_of_the_rest(layout: Layout, conversations: Sequence[Sequence[EntryParts]]) -> Iterator[_Change]:
    """What the last turn, and the subtasks of a plan that waits, can do without."""
    ends = [end for entries in conversations for end in (*entries[:1], *entries[1:][-1:])]
    of_subtasks = [part for subtask in layout.subtasks for part in subtask.texts]
    texts = [part for entries in conversations for entry in entries for part in entry.texts]
    yield from _cut([*texts, *of_subtasks], _LONG)
    for part in (part for entries in conversations for part in _results(entries)):
        if len(part.text) > len(template.ELIDED_TOOL_RESULT):
            yield _Change([(part.index, part.saying(template.ELIDED_TOOL_RESULT))])
    yield from (_Change(_left_out([entry])) for entries in conversations for entry in entries[1:-1])
    texts = [part for entry in ends for part in entry.texts]
    yield from _cut([*texts, *of_subtasks], _KEPT)
    yield from _cut([*texts, *of_subtasks], _SHORT)
    yield from (_with_the_smallest_round(end, end.entry) for end in ends if isinstance(end.entry, RoundRecord))
    yield from (_Change([(index, b"") for index in end.files]) for end in ends if end.files)
    yield from _cut([subtask.name for subtask in layout.subtasks], _SHORT)


def _turns(entries: Sequence[EntryParts]) -> list[list[EntryParts]]:
    """A turn begins with what the user said."""
    turns: list[list[EntryParts]] = []
    for parts in entries:
        if not turns or isinstance(parts.entry, UserRecord):
            turns.append([])
        turns[-1].append(parts)
    return turns


def _results(entries: Iterable[EntryParts]) -> Iterator[TextPart]:
    return (part for entry in entries for part in entry.results)


def _cut(parts: Iterable[TextPart], limit: int) -> Iterator[_Change]:
    """Keep head and tail of long texts."""
    long = (part for part in parts if len(part.text) > limit)
    return (_Change([(part.index, part.saying(_cut_text(part.text, limit)))]) for part in long)


def _left_out(entries: Iterable[EntryParts]) -> _Parts:
    return [(index, b"") for entry in entries for index in range(entry.start, entry.stop)]


def _with_the_smallest_round(parts: EntryParts, entry: RoundRecord) -> _Change:
    """Keep of a round only the calls that wait; where none does, one call without its arguments."""
    calls = entry.waiting or tuple(map(_smallest, entry.calls[-1:]))
    written = written_entry(RoundRecord(said=_cut_text(entry.said, _SHORT), calls=calls))
    return _Change([*_left_out([parts]), (parts.start, written + parts.end)])


def _smallest(call: CallRecord) -> CallRecord:
    names = {name: _cut_text(getattr(call, name), _SHORT) for name in ("id", "provider", "tool")}
    return call.model_copy(update={**names, "arguments": "{}", "result": template.ELIDED_TOOL_RESULT})


def _cut_text(text: str, limit: int) -> str:
    return cut_to_size(text, limit, note=template.CHARACTERS_NOT_KEPT.format)


# A state as text, and back.
#
# The text comes back as input and is read strictly. The checksum finds damage, such as a text that was cut; it does
# not show who wrote the text, and protects nothing against a person who writes one.
#
# This is a door: texts are made well-formed in both directions.

MAX_LENGTH = 128 * 1024
"""Characters of a state; Dify fails a conversation for good when one of its variables is above 200 KiB."""
MAX_READ_LENGTH = 200_000
"""Characters; a longer text is refused before it is decoded."""
VERSION = 1
_BEGINNING = "gpt5-agent-state."
_CHECKSUM_LENGTH = 32
_MAX_PACKED = (MAX_LENGTH - len(f"{_BEGINNING}{VERSION}.") - _CHECKSUM_LENGTH - 1) // 4 * 3
"""Bytes whose base64 has room beside the rest."""
_NONE = frozenset({"", "null", "None", "[]", "{}"})
"""What Dify or a developer puts in place of a state before there is one."""
_ADVICE = "give it the variable 'state' of an earlier run, unchanged, or leave it blank to begin without one"
_FORM_BLOCK = 64 * 1024
"""Bytes that are unpacked at once."""


def encode(state: State) -> str:
    """The state as text, with as much of it as has room; long work gives way to other sessions.

    Raises:
        ValueError: the calls that wait do not fit (``size_of_waiting``).
    """
    content = base64.urlsafe_b64encode(fitted(state.with_texts(wellformed, wellformed), _MAX_PACKED)).decode()
    return f"{_BEGINNING}{VERSION}.{_checksum(content)}.{content}"


def decode(text: str) -> State | None:
    """The state that a text holds; None for a text that stands for none.

    Raises:
        InvalidParameters: the text is not a state of this version, whole and unchanged; never quotes its content.
    """
    if len(text) > MAX_READ_LENGTH:
        raise _refused(f"it has {len(text):,} characters, and a state has at most {MAX_LENGTH:,}")
    text = text.strip()
    if text in _NONE:
        return None
    if looks_like_selector(text):
        raise InvalidParameters(f"parameter 'state': {missing_variable(text)}")
    written = _unpacked(_content(text))
    try:
        return read_state(written, wellformed)
    except (ValueError, RecursionError):
        raise _refused("its content does not have the fields of a state") from None


def _content(text: str) -> bytes:
    """What is in the base64, after version and checksum were compared."""
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
    """The JSON; it is measured while it is unpacked, since a small text can unpack to gigabytes."""
    unpacker, decoder = zlib.decompressobj(wbits=-zlib.MAX_WBITS), codecs.getincrementaldecoder("utf-8")()
    pieces, length = list[str](), 0
    try:
        for _ in in_turns(repeat(None)):
            piece = unpacker.decompress(content, _FORM_BLOCK)
            content = unpacker.unconsumed_tail
            length += len(piece)
            if length > MAX_UNPACKED:
                raise _refused(f"it unpacks to more than {MAX_UNPACKED // 2**20} MiB")
            pieces.append(decoder.decode(piece))
            if unpacker.eof or not (piece or content):
                break
        pieces.append(decoder.decode(b"", final=True))
    except (zlib.error, UnicodeDecodeError):
        raise _refused("it cannot be unpacked") from None
    if not unpacker.eof or unpacker.unused_data:
        raise _refused("it cannot be unpacked: it has no end, or something stands behind it")
    return "".join(pieces)


def _refused(problem: str, advice: str = _ADVICE) -> InvalidParameters:
    return InvalidParameters(f"parameter 'state': {problem}; {advice}")
