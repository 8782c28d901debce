"""The content of a model's answer: text, parts of text, and images."""

import base64
import binascii
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dify_plugin.entities.model.llm import LLMResultChunk, LLMUsage
from dify_plugin.entities.model.message import (
    ImagePromptMessageContent,
    PromptMessageContentUnionTypes,
    TextPromptMessageContent,
)

from internal.budget import Usage
from internal.call import ToolCall
from internal.clock import Deadline, in_turns
from internal.errors import OurWords, StopReason
from internal.events import (
    MAX_FILE_BYTES,
    AnswerBreak,
    AnswerText,
    Event,
    ExternalImage,
    FileBytes,
    FileForwarded,
    Noted,
    Shown,
    ShownTogether,
    ThoughtText,
)
from internal.flow import SdkToolCall, extract_stream_tool_calls
from internal.model.display import DisplayRule, TurnDisplay
from internal.text.texts import without_escaped_nul
from internal.tooling import MAX_ARGUMENTS_LENGTH
from internal.transcript.transcript import Content, estimate_tokens

# The content of a model's answer: text, parts of text, and images.


def joined(content: Sequence[str | PromptMessageContentUnionTypes]) -> Content:
    """Text alone as one string; with parts among it, a list in which each stretch of text is one part."""
    parts: list[PromptMessageContentUnionTypes] = []
    text: list[str] = []
    for item in content:
        if isinstance(item, str):
            text.append(item)
        else:
            parts += [*_text_part(text), item]
            text = []
    return [*parts, *_text_part(text)] if parts else "".join(text)


def _text_part(texts: list[str]) -> list[PromptMessageContentUnionTypes]:
    return [TextPromptMessageContent(data="".join(texts))] if texts else []


def forward_image(part: ImagePromptMessageContent) -> Event:
    """An image that the model made, by address or as bytes."""
    if part.url and not part.url.startswith("data:"):
        return FileForwarded(ExternalImage(part.url))
    try:
        data = base64.b64decode(part.url.partition(",")[2] or part.base64_data, validate=True)
    except (binascii.Error, ValueError):
        return Noted(OurWords("an image of the model could not be read"))
    if len(data) > MAX_FILE_BYTES:
        return Noted(OurWords("an image of the model is larger than 15 MiB and is left out"))
    return FileForwarded(FileBytes(data, part.mime_type, part.filename))


# Joins what the user sees at once into few events of bounded size.

MAX_BYTES = 200 * 1024
"""In UTF-8, after which an event is complete. With the piece that reaches this it still fits into one message."""
_MAX_PIECE_LENGTH = 12 * 1024
"""Characters of a piece of a longer text."""
_MIN_SIZE = 400
"""Bytes that a part counts for at least, since each costs time however short it is."""


def together(events: Iterable[Event]) -> Iterator[Event]:
    """Nothing is held back beyond the last event."""
    parts, size = list[Shown](), 0
    for event in events:
        if isinstance(event, AnswerText | AnswerBreak | ThoughtText):
            for part in _pieces(event):
                parts.append(part)
                size += _size(part)
                if size >= MAX_BYTES:
                    yield ShownTogether(tuple(parts))
                    parts, size = [], 0
        else:
            if parts:
                yield ShownTogether(tuple(parts))
                parts, size = [], 0
            yield event
    if parts:
        yield ShownTogether(tuple(parts))


def _pieces(shown: Shown) -> Iterator[Shown]:
    if isinstance(shown, AnswerBreak) or len(shown.text) <= _MAX_PIECE_LENGTH:
        yield shown
        return
    for start in range(0, len(shown.text), _MAX_PIECE_LENGTH):
        yield type(shown)(shown.text[start : start + _MAX_PIECE_LENGTH])


def _size(part: Shown) -> int:
    return _MIN_SIZE if isinstance(part, AnswerBreak) else max(_MIN_SIZE, len(part.text.encode()))


# Tool calls put together from what a stream brings: fragments, growing snapshots, duplicates, missing or equal ids.
#
# One rule serves all providers (docs/model-facts.md, "How tool calls stream"), and it is applied once, when the
# stream has ended. What is kept and looked at is bounded by MAX_ARGUMENTS_LENGTH, however the stream cuts it up.

_MAX_KEPT = MAX_ARGUMENTS_LENGTH + 1
"""Characters; one more than are accepted, so that a longer text is still recognised as too long."""


@dataclass
class _Fragments:
    """The pieces of one call's arguments.

    They are taken for snapshots as long as each is a prefix of the next; then they are fragments.
    """

    _latest: str = ""
    """The longest snapshot; the others are its beginnings."""
    _lengths: list[int] = field(default_factory=list)
    """Of all snapshots, until their join is longer than arguments may be."""
    _pieces: list[str] | None = None
    """Set once the pieces are known to be fragments."""
    _size: int = 0
    """Characters of the join."""

    def take(self, piece: str) -> None:
        if self._pieces is None and len(self._latest) >= _MAX_KEPT:
            return  # too long, whatever comes
        if self._pieces is None and piece.startswith(self._latest):
            self._latest = piece[:_MAX_KEPT]
            if self._size < _MAX_KEPT:
                self._lengths.append(len(piece))
        else:
            self._pieces = self._pieces if self._pieces is not None else list(self._snapshots())
            if self._size < _MAX_KEPT:
                self._pieces.append(piece[:_MAX_KEPT])
        self._size += len(piece)

    def _snapshots(self) -> Iterator[str]:
        return (self._latest[:length] for length in self._lengths)

    def readings(self) -> Iterator[str]:
        """What the arguments may be, the likeliest first.

        The last piece alone if the pieces are snapshots, else their join. A key such as ``{`` can make the pieces of
        one object look like snapshots: the join of those is the second reading.
        """
        if self._size == 0:
            yield "{}"
        elif self._pieces is not None:
            yield "".join(self._pieces)[:_MAX_KEPT]
        else:
            yield self._latest
            if len(self._lengths) > 1 and self._size <= MAX_ARGUMENTS_LENGTH:
                yield "".join(self._snapshots())


@dataclass
class _Draft:
    """A call that is still coming in."""

    id: str
    name: str = ""
    arguments: _Fragments = field(default_factory=_Fragments)

    def call(self, fallback_id: str) -> ToolCall:
        """The whole call: with the first reading that is a JSON object, or the likeliest where none is."""
        call_id = self.id or fallback_id
        texts = ((text, without_escaped_nul(text)) for text in self.arguments.readings())
        readings = (ToolCall(call_id, self.name, kept, had_nul=kept != text) for text, kept in texts)
        likeliest = next(readings)
        return next((call for call in (likeliest, *readings) if call.parsed.ok), likeliest)


class CallAssembler:
    """Collects the tool calls of one turn."""

    def __init__(self, fallback_id: str) -> None:
        """A call without an id gets ``{fallback_id}_{position}``."""
        self._fallback_id = fallback_id
        self._drafts: list[_Draft] = []
        self._by_id: dict[str, list[_Draft]] = {}
        self._calls: tuple[ToolCall, ...] | None = None

    def take(self, entries: Iterable[SdkToolCall]) -> None:
        """Take the entries of one chunk; entries of one chunk with the same id are different calls."""
        self._calls = None
        seen = Counter[str]()
        for entry in entries:
            draft = self._draft_for(entry, seen[entry.id])
            seen[entry.id] += 1
            draft.name = draft.name or entry.function.name
            if entry.function.arguments:
                draft.arguments.take(entry.function.arguments)

    def _draft_for(self, entry: SdkToolCall, before: int) -> _Draft:
        """The draft that an entry continues, or a new one; ``before`` entries of the same chunk have the same id.

        It continues a draft of its id, or, without id and name, the last draft.
        """
        known = self._by_id.setdefault(entry.id, []) if entry.id else []
        if before < len(known):
            return known[before]
        if not entry.id and not entry.function.name and self._drafts:
            return self._drafts[-1]
        draft = _Draft(entry.id)
        self._drafts.append(draft)
        known.append(draft)
        return draft

    @property
    def has_begun(self) -> bool:
        """Whether any entry has come."""
        return bool(self._drafts)

    def calls(self) -> tuple[ToolCall, ...]:
        """The whole calls; they are put together and parsed once."""
        if self._calls is None:
            self._calls = tuple(
                draft.call(f"{self._fallback_id}_{position}") for position, draft in enumerate(self._drafts, start=1)
            )
        return self._calls


# Reads a model's stream, and judges it when it has ended.

# How providers say that a turn was cut: docs/model-facts.md, "Finish reasons".
_CUT_REASONS = {
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "max_output_tokens": StopReason.LENGTH,
    "incomplete": StopReason.LENGTH,
    "content_filter": StopReason.CONTENT_FILTER,
    "safety": StopReason.CONTENT_FILTER,
    "model_context_window_exceeded": StopReason.LENGTH,
    "prohibited_content": StopReason.CONTENT_FILTER,
    "blocklist": StopReason.CONTENT_FILTER,
    "recitation": StopReason.CONTENT_FILTER,
    "refusal": StopReason.CONTENT_FILTER,
    "sensitive": StopReason.CONTENT_FILTER,
    "spii": StopReason.CONTENT_FILTER,
}


@dataclass(frozen=True)
class ModelTurn:
    """What the model said in one turn."""

    content: Content
    """Raw, thoughts included, as it must go back to the model."""
    text: str
    """The visible text."""
    calls: tuple[ToolCall, ...] = ()
    opaque_body: Any = None
    """The provider's; carried, never opened."""
    cut: StopReason | None = None
    """Why the turn is not whole: length, content_filter, or time_limit."""
    has_files: bool = False
    has_shown: bool = False
    """Whether the user has seen anything of it."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it for the user nor for a tool."""
        return not (self.text or self.calls or self.has_files)


@dataclass(frozen=True)
class TurnSpan:
    """Where a turn stands: in the log tree, on screen and in time."""

    key: str
    """The turn's row in the log."""
    round_key: str
    """The row above it."""
    rule: DisplayRule
    deadline: Deadline
    """Until something is shown."""
    end: Deadline
    """From then on."""
    round: int = 0
    """The number of its round in the log, from 1; a closing answer has the next one. 0 outside of loops."""


class Reading:
    """A stream as far as it has come."""

    def __init__(self, span: TurnSpan) -> None:
        self.span = span
        self.display = TurnDisplay(span.rule)
        self.finish_reason: str | None = None
        self.chunks = 0
        self._calls = CallAssembler(f"call_{span.key.replace('.', '_')}")
        self._content: list[str | PromptMessageContentUnionTypes] = []
        self._opaque_body: Any = None
        self._usage: LLMUsage | None = None
        self._has_forwarded = False

    @property
    def has_shown(self) -> bool:
        """Whether the user has seen anything of this turn, so that it cannot be asked for again."""
        return (self.display.has_shown and self.span.rule.is_seen) or self._has_forwarded

    @property
    def usage(self) -> Usage:
        return Usage.of(self._usage)

    @property
    def is_answering(self) -> bool:
        """Whether the answer is under way, on the screen or held back for a judgement; a thought is not one."""
        return self.display.is_answering or self._has_forwarded

    @property
    def words(self) -> str:
        """What has come of a text that may be the answer; "" once a call has come."""
        return "" if self._calls.has_begun else self.display.text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that have come, as they would be if the stream ended here."""
        return self._calls.calls()

    def estimated_tokens(self) -> int:
        """What has come, in tokens, for a provider that does not say."""
        calls = (call.name + call.arguments for call in self.calls)
        return sum(map(estimate_tokens, (self.display.text, self.display.thought, *calls)))

    @property
    def was_cut_off(self) -> bool:
        """Whether the stream broke off: its last chunk brings a finish reason, usage, or both."""
        return self.chunks > 0 and self.finish_reason is None and self._usage is None

    def seconds_left(self) -> float:
        """Seconds until the turn's deadline; an answer that the user reads already has more time."""
        return (self.span.end if self.is_answering else self.span.deadline).left()

    def take(self, chunks: Iterable[LLMResultChunk]) -> Iterator[Event]:
        """Read the chunks that have come; what the user sees of them goes out together."""
        yield from self._seen(self._read(chunks))

    def finish(self, cut: StopReason | None = None) -> Generator[Event, None, ModelTurn]:
        """Show what was held back, now that it is known what the turn was, and return the turn.

        ``cut`` is why the turn was cut, if that is known better than from its finish reason.
        """
        cut = cut or _CUT_REASONS.get((self.finish_reason or "").rpartition(".")[2].lower())
        calls = self.calls
        is_cut = cut is not None or (self.was_cut_off and not calls)
        rest = self.display.finish(has_tool_calls=bool(calls), is_cut=is_cut, is_judged=cut is None)
        yield from self._seen(rest)
        if any(call.had_nul for call in calls):
            yield Noted(OurWords("NUL characters were taken out of the arguments of a call"), self.span.key)
        return ModelTurn(
            content=joined(self._content),
            text=self.display.text,
            calls=calls,
            opaque_body=None if cut else self._opaque_body,
            cut=cut,
            has_files=self._has_forwarded,
            has_shown=self.has_shown,
        )

    def _seen(self, events: Iterable[Event]) -> Iterator[Event]:
        """What goes out together, without texts that the user must not see."""
        for event in together(events):
            if self.span.rule.is_seen or not isinstance(event, ShownTogether):
                yield event

    def _read(self, chunks: Iterable[LLMResultChunk]) -> Iterator[Event]:
        """Texts that follow each other are shown as one: many short ones cost little more than a long one."""
        text: list[str] = []
        for chunk in in_turns(chunks):
            delta, message = chunk.delta, chunk.delta.message
            self.chunks += 1
            self._usage = delta.usage or self._usage
            self.finish_reason = delta.finish_reason or self.finish_reason
            if message.opaque_body is not None:
                self._opaque_body = message.opaque_body
            if entries := extract_stream_tool_calls(chunk):
                yield from self._show(text)
                self._calls.take(entries)
                self.display.expect_calls()
            parts = [message.content] if isinstance(message.content, str) else message.content or ()
            self._content += [part for part in parts if part]
            for part in parts:
                if isinstance(part, str):
                    text.append(part)
                elif isinstance(part, TextPromptMessageContent):
                    text.append(part.data)
                elif isinstance(part, ImagePromptMessageContent):
                    yield from self._show(text)
                    event = forward_image(part)
                    self._has_forwarded = self._has_forwarded or isinstance(event, FileForwarded)
                    yield event
        yield from self._show(text)

    def _show(self, text: list[str]) -> Iterator[Event]:
        """Show these texts as one, and empty the list."""
        if text:
            yield from self.display.feed("".join(text))
            text.clear()
