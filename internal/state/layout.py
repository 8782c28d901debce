"""The JSON of a state in parts, and which of them may yield when it is too large.

In: a state. Out: parts that are its JSON when they are put together, without the fields that have their default. Each
element of an array ends in its comma, and the last has none: any of the others can be left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic_core import to_json

from internal.state.records import (
    AnswerRecord,
    CallRecord,
    EntryRecord,
    RoundRecord,
    State,
    SubtaskRecord,
    UserRecord,
)
from internal.text.fairness import in_turns


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
