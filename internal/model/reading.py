"""Reads a model's stream: shows the text, assembles the tool calls, and returns the turn."""

from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import groupby
from sys import getsizeof
from typing import Any

from dify_plugin.entities.model.llm import LLMResultChunk, LLMUsage
from dify_plugin.entities.model.message import (
    ImagePromptMessageContent,
    PromptMessageContentUnionTypes,
    TextPromptMessageContent,
)

from internal.call import MAX_CALL_ID, MAX_CALL_NAME, MAX_CALLS, ToolCall, portable_id
from internal.clock import Deadline, in_turns
from internal.errors import OurWords, StopReason
from internal.events import (
    MAX_ADDRESS_LENGTH,
    MAX_FILE_BYTES,
    AnswerBreak,
    Event,
    ExternalImage,
    FileForwarded,
    LogNote,
    Shown,
    ShownBatch,
)
from internal.flow import SdkToolCall, extract_stream_tool_calls
from internal.host.files import FileBytes, decoded
from internal.model.display import CallReader, DisplayRule, TurnDisplay
from internal.model.text_calls import TextCalls
from internal.model.unparsed_calls import UnparsedCalls
from internal.text.texts import Pieces, without_escaped_nul
from internal.text.thoughts import MAX_STEP_LENGTH
from internal.tooling import MAX_ARGUMENTS_LENGTH
from internal.transcript.steps import Content
from internal.transcript.transcript import estimate_tokens
from prompt import template

# Finish reasons of providers for a truncated turn, or a turn with calls: docs/model-facts.md, "Finish reasons".
_TOO_LONG = ("length", "max_tokens", "max_output_tokens", "incomplete", "model_context_window_exceeded")
_FILTERED = (
    "content_filter",
    "safety",
    "prohibited_content",
    "blocklist",
    "recitation",
    "refusal",
    "sensitive",
    "spii",
    "content_filtered",
    "guardrail_intervened",
)
_CUT_REASONS = dict.fromkeys(_TOO_LONG, StopReason.LENGTH) | dict.fromkeys(_FILTERED, StopReason.CONTENT_FILTER)
_HAS_CALLS = frozenset(
    {
        "tool_calls",
        "tool_call",
        "tool_use",
        "function_call",
        "function_calls",
        "malformed_function_call",
        "unexpected_tool_call",
    }
)
_MAX_KEPT = MAX_ARGUMENTS_LENGTH + 1
"""Maximum number of kept characters of a call's arguments: the limit plus one, so that a longer text is still
refused."""
MAX_TURN_TEXT = 1_000_000
"""Maximum characters of the text and the thoughts of one turn. Models write at most a few hundred thousand."""
MAX_TURN_ARGUMENTS = 2 * MAX_ARGUMENTS_LENGTH
"""Maximum characters of the arguments of all calls of one turn."""
MAX_TURN_PICTURES = 3 * 1024 * 1024
"""Maximum characters of base64 for the pictures of one turn that go back to the model. A request has little more
room."""
_MAX_TOGETHER = 16 * MAX_STEP_LENGTH
"""Maximum characters of text in one event, so that no event takes long."""
_MIN_SIZE = 200
"""Every piece counts as at least this many characters, because even a short piece takes time."""


_BYTES_OF_ARGUMENT = 10
"""Bytes of memory for one character of arguments, which are kept both as text and in parsed form."""


@dataclass(frozen=True)
class ModelTurn:
    """The model's output in one turn."""

    content: Content
    """The raw content with thoughts, in the form that must be sent back to the model."""
    text: str
    calls: tuple[ToolCall, ...] = ()
    has_left_out_calls: bool = False
    """Whether the turn had more calls than the limit allows."""
    opaque_body: Any = None
    """Opaque data of the provider, which is passed on and never read."""
    cut: StopReason | None = None
    """The reason why the turn is incomplete: length, content_filter or time_limit."""
    has_files: bool = False
    has_shown: bool = False
    """Whether the user has seen any part of the turn."""
    held_back: str = ""
    """The text that the user should see and has not seen yet."""
    model: str = ""
    """The model that took the turn, as "provider/name"."""
    has_unparsed: bool = False
    """Whether the turn has calls written as text, which do not run."""

    @property
    def weight(self) -> int:
        """Approximate bytes of memory of the turn, including three forms of its text and its parsed calls."""
        parts: Sequence[str | PromptMessageContentUnionTypes] = self.content
        if isinstance(self.content, str):
            parts = [self.content]
        written = sum(getsizeof(_written_out(part)) for part in parts)
        return 3 * written + _BYTES_OF_ARGUMENT * sum(len(call.arguments) for call in self.calls)

    @property
    def is_empty(self) -> bool:
        """Whether the turn has neither text nor pictures nor calls."""
        return not (self.text or self.calls or self.has_files or self.has_unparsed)


@dataclass(frozen=True)
class TurnSpan:
    """The place of a turn in the log tree and on screen, and its deadlines."""

    key: str
    """The turn's row in the log."""
    round_key: str
    rule: DisplayRule
    deadline: Deadline
    """The deadline as long as nothing was shown."""
    end: Deadline
    """The deadline once something was shown."""
    round: int = 0
    """The number of the round in the log, from 1. A closing answer has the next number. 0 outside of loops."""


class Reading:
    """The part of a stream that has arrived so far."""

    def __init__(
        self, span: TurnSpan, calls: CallReader | None = None, position: int = 0, tags: tuple[str, ...] = ()
    ) -> None:
        """Start to read. ``calls`` finds calls in the text. ``tags`` enclose thoughts in addition to ``<think>``.

        ``position``, the position of the turn in its conversation, makes generated ids of calls unique.
        """
        self.span = span
        self._text_calls = TextCalls()
        self._unparsed = UnparsedCalls()
        if isinstance(calls, TextCalls):
            self._text_calls = calls
        elif calls is not None:
            self._unparsed = calls
        self.display = TurnDisplay(span.rule, calls, tags)
        self.finish_reason: str | None = None
        self.began_at: float | None = None
        self.chunks = 0
        self._fallback_id = f"call_{position}_{span.key}"
        self._calls = CallAssembler(self._fallback_id)
        self._content: list[str | PromptMessageContentUnionTypes] = []
        """The parts before the current text."""
        self._text = Pieces()
        """The current text."""
        self._text_length = 0
        self._pictures_length = 0
        self.is_full = False
        """Whether the turn has reached a limit, so that the rest of the stream is not read."""
        self._opaque_body: Any = None
        self.usage: LLMUsage | None = None
        self._has_forwarded = False

    @property
    def has_shown(self) -> bool:
        """Whether the user has seen any part of this turn, so that it cannot be retried."""
        return (self.display.has_shown and self.span.rule.is_seen) or self._has_forwarded

    @property
    def is_answering(self) -> bool:
        """Whether the answer has begun, on the screen or held back for a judgement. A thought is not an answer."""
        return self.display.is_answering or self._has_forwarded

    @property
    def words(self) -> str:
        """The text so far, which may be the answer; "" once a call has arrived."""
        if self.calls:
            return ""
        return self.display.text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls so far, as if the stream ended here."""
        return self._calls.calls() or self._text_calls.calls(self._fallback_id)

    def estimated_tokens(self) -> int:
        """Return an estimate of the output tokens so far, for a provider that does not report them."""
        calls = (call.name + call.arguments for call in self.calls)
        said = (self.display.text, self.display.thought, self._unparsed.block)
        return sum(map(estimate_tokens, (*said, *calls)))

    @property
    def was_cut_off(self) -> bool:
        """Whether the stream broke off: the last chunk of a whole stream has a finish reason, usage, or both."""
        return self.chunks > 0 and self.finish_reason is None and self.usage is None

    @property
    def lost_calls(self) -> bool:
        """Whether the finish reason announces calls although none arrived."""
        return self._ending in _HAS_CALLS and not self.calls

    @property
    def is_empty(self) -> bool:
        """Whether nothing arrived, not even a thought, and the finish reason does not say why."""
        has_content = any(str(getattr(part, "data", part)).strip() for part in (*self._content, str(self._text)))
        return not (has_content or self.calls or self._ending in _CUT_REASONS)

    @property
    def _ending(self) -> str:
        """The finish reason in a normalized spelling, without the name of an enum; "" if none arrived."""
        return (self.finish_reason or "").rpartition(".")[2].lower().replace("-", "_")

    def seconds_left(self) -> float:
        """Return the seconds until the turn's deadline. An answer that the user is already reading has more time."""
        return (self.span.end if self.is_answering else self.span.deadline).left()

    def finish(self, cut: StopReason | None = None) -> Generator[Event, None, ModelTurn]:
        """Show the text that was held back, and return the turn; ``cut`` is why it was cut, if the caller knows."""
        cut = cut or _CUT_REASONS.get(self._ending)
        is_cut = cut is not None or (self.was_cut_off and not self.calls)
        has_calls = bool(self.calls)
        self._unparsed.is_cut = is_cut
        yield from self._show(self.display.finish(has_tool_calls=has_calls, is_cut=is_cut, is_judged=cut is None))
        calls = self.calls
        has_left_out = self._calls.has_left_out or self._text_calls.has_left_out
        if has_left_out:
            yield LogNote(OurWords(f"the turn has more than {MAX_CALLS} calls: the others are left out"), self.span.key)
        if any(call.had_nul for call in calls):
            yield LogNote(OurWords("NUL characters were taken out of the arguments of a call"), self.span.key)
        if self._unparsed.block:
            yield LogNote(OurWords("the model wrote a call as text, in its own markup: it does not run"), self.span.key)
        return ModelTurn(
            content=self._content_without_calls(),
            text=self.display.text,
            calls=calls,
            has_left_out_calls=has_left_out,
            opaque_body=None if cut or has_left_out else self._opaque_body,
            cut=cut,
            has_files=self._has_forwarded,
            has_shown=self.has_shown,
            has_unparsed=bool(self._unparsed.block),
            held_back=self.display.held_back,
        )

    def _content_without_calls(self) -> Content:
        """Return the content without the calls in its text, which later prompts show as calls."""
        self._end_text()
        content = joined(self._content)
        block = self._text_calls.block
        if not block:
            return content
        if isinstance(content, str) and block in content:
            return content.partition(block)[0]
        return self.display.text

    def read(self, chunks: Iterable[LLMResultChunk]) -> Iterator[Event]:
        """Read the chunks that have arrived. Consecutive texts are shown as one event, which is cheap."""
        text: list[str] = []
        for chunk in in_turns(chunks):
            delta = chunk.delta
            message = chunk.delta.message
            self.chunks += 1
            self.usage = delta.usage or self.usage
            self.finish_reason = delta.finish_reason or self.finish_reason
            if message.opaque_body is not None:
                self._opaque_body = message.opaque_body
            if entries := extract_stream_tool_calls(chunk):
                yield from self._show_texts(text)
                self._calls.add(entries)
                self.display.expect_calls()
            for part in [message.content] if isinstance(message.content, str) else message.content or ():
                text.append(self._taken(part))
                if isinstance(part, ImagePromptMessageContent):
                    yield from self._show_texts(text)
                    event = forward_image(part)
                    if self._content[-1] is not part:  # the bytes of a dropped image are slow to serialize
                        part.url = part.base64_data = ""
                    self._has_forwarded = self._has_forwarded or isinstance(event, FileForwarded)
                    yield event
            self.is_full = self.is_full or self._calls.kept > MAX_TURN_ARGUMENTS
            if self.is_full:
                break
        yield from self._show_texts(text)

    def _taken(self, part: str | PromptMessageContentUnionTypes) -> str:
        """Keep as much of a part of the content as there is room for, and return its new text."""
        text = _written_out(part)
        if isinstance(part, str) or (isinstance(part, TextPromptMessageContent) and part.opaque_body is None):
            kept = text[: MAX_TURN_TEXT - self._text_length]
            self.is_full = self.is_full or len(kept) < len(text)
            self._text_length += len(kept)
            self._text.append(kept)
            return kept
        self._end_text()
        if not isinstance(part, TextPromptMessageContent):
            self._content.append(self._kept_medium(part))
            return ""
        self._content.append(part)
        self._text_length += len(text)
        self.is_full = self.is_full or self._text_length > MAX_TURN_TEXT
        return text

    def _kept_medium(self, part: PromptMessageContentUnionTypes) -> PromptMessageContentUnionTypes:
        """Return a part other than plain text in the form for the next request; a note if no request can hold it."""
        size = sum(len(getattr(part, name, None) or "") for name in ("base64_data", "url"))
        self._pictures_length += size
        if self._pictures_length <= MAX_TURN_PICTURES:
            return part
        self._pictures_length -= size
        return TextPromptMessageContent(data=template.ELIDED_MEDIA.format(kind=part.type.value))

    def _end_text(self) -> None:
        """Add the current text to the content as a part."""
        if self._text:
            self._content.append(self._text.taken())

    def _show_texts(self, texts: list[str]) -> Iterator[Event]:
        """Show these texts as one, and empty the list."""
        text = "".join(texts)
        texts.clear()
        return self._show(self.display.feed(text))

    def _show(self, shown: Iterable[Shown]) -> Iterator[Event]:
        return (event for event in together(shown) if self.span.rule.is_seen)


def _written_out(part: str | PromptMessageContentUnionTypes) -> str:
    """Return the text or the base64 data of a part of a turn's content."""
    if isinstance(part, str):
        return part
    if isinstance(part, TextPromptMessageContent):
        return part.data
    return getattr(part, "base64_data", "") or getattr(part, "url", "")


def together(shown: Iterable[Shown]) -> Iterator[ShownBatch]:
    """Combine events that the user sees together into a few events of limited size."""
    parts = list[Shown]()
    size = 0
    for part in shown:
        parts.append(part)
        size += max(_MIN_SIZE, 0 if isinstance(part, AnswerBreak) else len(part.text))
        if size >= _MAX_TOGETHER:
            yield ShownBatch(tuple(parts))
            parts = []
            size = 0
    if parts:
        yield ShownBatch(tuple(parts))


def joined(content: Sequence[str | PromptMessageContentUnionTypes]) -> Content:
    """Return pure text as one string, and mixed content as a list in which consecutive texts are one part."""
    parts: list[PromptMessageContentUnionTypes] = []
    for is_text, group in groupby(content, lambda item: isinstance(item, str)):
        if is_text:
            parts.append(TextPromptMessageContent(data="".join(map(str, group))))
        else:
            parts += [item for item in group if not isinstance(item, str)]
    if any(not isinstance(item, str) for item in content):
        return parts
    return "".join(map(str, content))


def forward_image(part: ImagePromptMessageContent) -> Event:
    """Return the event that forwards an image of the model, by address or as bytes."""
    if part.url and not part.url.startswith("data:"):
        if len(part.url) > MAX_ADDRESS_LENGTH:
            return LogNote(
                OurWords(f"an image of the model is left out: its address is longer than {MAX_ADDRESS_LENGTH:,}")
            )
        return FileForwarded(ExternalImage(part.url))
    if not (part.url or part.base64_data):
        return LogNote(OurWords("an image of the model is empty, or it is left out because its turn has too many"))
    try:
        data = decoded(part.url.partition(",")[2] or part.base64_data)
    except ValueError:
        return LogNote(OurWords("an image of the model could not be read"))
    if len(data) > MAX_FILE_BYTES:
        return LogNote(OurWords("an image of the model is larger than 15 MiB and is left out"))
    return FileForwarded(FileBytes(data, part.mime_type, part.filename))


@dataclass
class _Draft:
    """A call that is still being received. The kept length of its arguments is limited, however they are streamed."""

    id: str
    name: str = ""
    _joined: StringIO = field(default_factory=StringIO)
    """The pieces of the arguments, as long as they are within the limit together."""
    _count: int = 0
    _size: int = 0
    """Characters of all pieces."""
    _snapshot: str | None = ""
    """The last piece, as long as every piece was the beginning of the next one."""

    def add(self, piece: str) -> None:
        if self._size < _MAX_KEPT:
            self._joined.write(piece[: _MAX_KEPT - self._size])
        self._count += 1
        self._size += len(piece)
        if self._snapshot is not None and len(self._snapshot) < _MAX_KEPT:
            if piece.startswith(self._snapshot):
                self._snapshot = piece[:_MAX_KEPT]
            else:
                self._snapshot = None
        if self._snapshot and self._size >= _MAX_KEPT:
            self._joined = StringIO()  # from now on only the length is needed

    @property
    def kept(self) -> int:
        """Characters of the arguments that are in memory."""
        return self._joined.tell() + len(self._snapshot or "")

    def call(self, fallback_id: str) -> ToolCall:
        """Return the whole call, with the first reading that is a JSON object, or else with the most likely reading."""
        texts = ((text, without_escaped_nul(text)) for text in self._readings())
        call_id = self.id or fallback_id
        if len(call_id) > MAX_CALL_ID:
            call_id = fallback_id
        readings = (ToolCall(call_id, self.name, kept, had_nul=kept != text) for text, kept in texts)
        likeliest = next(readings)
        return next((call for call in (likeliest, *readings) if call.parsed.ok), likeliest)

    def _readings(self) -> Iterator[str]:
        """Yield the possible readings of the arguments, the most likely first.

        A key such as ``{`` can make the pieces of one object look like snapshots. Therefore the joined pieces are the
        second reading.
        """
        if self._snapshot:
            yield self._snapshot
        if self._snapshot is None or (self._count > 1 and self._size <= MAX_ARGUMENTS_LENGTH):
            yield self._joined.getvalue().ljust(min(self._size, _MAX_KEPT))
        if not self._size:
            yield "{}"


class CallAssembler:
    """Assembles the tool calls of one turn, however they stream (docs/model-facts.md, "How tool calls stream")."""

    def __init__(self, fallback_id: str) -> None:
        """Start without calls. A call without an id gets an id derived from ``fallback_id`` and its position."""
        self._fallback_id = fallback_id
        self._drafts: list[_Draft] = []
        self._same = defaultdict[tuple[str, str], list[_Draft]](list)
        """The drafts by id and name. Under the name "" are all drafts with the id."""
        self.has_left_out = False
        """Whether the turn had more calls than the limit allows."""
        self.kept = 0
        """Characters of the arguments of all calls that are in memory."""
        self._calls: tuple[ToolCall, ...] | None = None

    def add(self, entries: Sequence[SdkToolCall]) -> None:
        """Add the entries of one chunk. Entries of one chunk with the same id are different calls.

        An entry continues the draft with the same id and name. Without a name it continues the last draft with its id,
        and without both the last draft.
        """
        self._calls = None
        seen = Counter[tuple[str, str]]()
        nameless = Counter(entry.id for entry in entries if not entry.function.name)
        for entry in in_turns(entries):
            name = entry.function.name[:MAX_CALL_NAME]
            key = (entry.id, name)
            found: list[_Draft] = []
            if key == ("", "") and self.has_left_out:
                continue  # a piece of a call that is dropped
            if key == ("", ""):
                found = self._drafts[-1:]
            elif not name and nameless[entry.id] == 1:
                found = self._same.get(key, [])[-1:]
            elif entry.id:
                found = self._same.get(key, [])[seen[key] :] or [
                    each for each in self._same.get((entry.id, ""), []) if name and not each.name
                ]
            seen[key] += 1
            if not found and len(self._drafts) == MAX_CALLS:
                self.has_left_out = True
                continue
            if not found:
                found = [_Draft(entry.id)]
                self._drafts += found
                self._same[entry.id, ""] += found
            draft = found[0]
            if name and not draft.name:
                draft.name = name
                self._same[key].append(draft)
            if entry.function.arguments:
                before = draft.kept
                draft.add(entry.function.arguments)
                self.kept += draft.kept - before

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the complete calls, which are assembled and parsed only once."""
        if self._calls is None:
            self._calls = tuple(
                draft.call(portable_id(f"{self._fallback_id}_{position}"))
                for position, draft in enumerate(in_turns(self._drafts), start=1)
            )
        return self._calls
