"""A model's stream, read to its end and judged then.

In: the chunks of any provider: fragments, snapshots, lists of parts, blocking results wrapped as one chunk. Out: events
for the eye while they come, then one ModelTurn.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dify_plugin.entities.model.llm import LLMResultChunk, LLMUsage
from dify_plugin.entities.model.message import (
    ImagePromptMessageContent,
    PromptMessageContentUnionTypes,
    TextPromptMessageContent,
)

from internal.conversation.transcript import Content
from internal.flow import extract_stream_tool_calls
from internal.host.clock import Deadline
from internal.model.assembly import CallAssembler
from internal.model.content import forward_image, joined, kept, writable
from internal.model.display import DisplayRule, TurnDisplay
from internal.model.together import together
from internal.report.events import Event, FileForwarded, StopReason
from internal.report.tool_calls import ToolCall
from internal.report.usage import Usage
from internal.text.fairness import in_turns

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
    parent: str
    rule: DisplayRule
    deadline: Deadline
    """Until something is shown."""
    end: Deadline
    """From then on."""


class Reading:
    """A stream as far as it has come."""

    def __init__(self, span: TurnSpan) -> None:
        self._span = span
        self._calls = CallAssembler()
        self._content: list[str | PromptMessageContentUnionTypes] = []
        self._opaque_body: Any = None
        self._usage: LLMUsage | None = None
        self._has_forwarded = False
        self.display = TurnDisplay(span.rule)
        self.finish_reason: str | None = None
        self.chunks = 0

    @property
    def has_shown(self) -> bool:
        """Whether the user has seen anything of this turn, so that it cannot be asked for anew."""
        return (self.display.has_shown and self._span.rule.is_seen) or self._has_forwarded

    @property
    def usage(self) -> Usage:
        return Usage.of(self._usage)

    @property
    def is_answering(self) -> bool:
        """Whether the user reads the answer already; a thought is none."""
        return self.display.is_answering or self._has_forwarded

    @property
    def words(self) -> str:
        """What has come of a text that may be the answer; "" once a call has come."""
        return "" if self.calls() else self.display.text

    @property
    def was_cut_off(self) -> bool:
        """Whether the stream broke off: its last chunk brings a finish reason, usage, or both."""
        return self.chunks > 0 and self.finish_reason is None and self._usage is None

    @property
    def key(self) -> str:
        """The log node that the turn has."""
        return self._span.key

    def seconds_left(self) -> float:
        """Only an answer that streams is worth more time than the turn was given."""
        return (self._span.end if self.is_answering else self._span.deadline).left()

    def take(self, chunks: Iterable[LLMResultChunk]) -> Iterator[Event]:
        """Read the chunks that have come; what the user sees of them goes out together."""
        yield from together(self._read(chunks))

    def _read(self, chunks: Iterable[LLMResultChunk]) -> Iterator[Event]:
        """Texts that follow each other are read as one: many chunks of a few characters cost little more than one."""
        texts: list[str] = []
        for chunk in chunks:
            delta = chunk.delta
            self.chunks += 1
            self._usage = delta.usage or self._usage
            self.finish_reason = delta.finish_reason or self.finish_reason
            if delta.message.opaque_body is not None:
                self._opaque_body = yield from writable(delta.message.opaque_body)
            entries, content = extract_stream_tool_calls(chunk), delta.message.content
            if entries or not isinstance(content, str):
                yield from self._take_text("".join(texts))
                texts = []
            if entries:
                self._calls.take(entries)
                self.display.expect_calls()
            if isinstance(content, str):
                texts.append(content)
            else:
                yield from self._take_parts(content or ())
        yield from self._take_text("".join(texts))

    def finish(self, *, has_tool_calls: bool, is_cut: bool) -> Iterator[Event]:
        """Show what was held back, now that it is known what the turn was."""
        yield from together(self.display.finish(has_tool_calls=has_tool_calls, is_cut=is_cut))

    def _take_text(self, text: str) -> Iterator[Event]:
        if text:
            self._content.append(text)
            yield from self.display.feed(text)

    def _take_parts(self, parts: Iterable[PromptMessageContentUnionTypes]) -> Iterator[Event]:
        for came in in_turns(parts):
            part = yield from kept(came)
            self._content.append(part)
            if isinstance(part, TextPromptMessageContent):
                yield from self.display.feed(part.data)
            elif isinstance(part, ImagePromptMessageContent):
                event = forward_image(part)
                self._has_forwarded = self._has_forwarded or isinstance(event, FileForwarded)
                yield event

    def turn(self, cut: StopReason | None = None) -> ModelTurn:
        cut = cut or _CUT_REASONS.get((self.finish_reason or "").rpartition(".")[2].lower())
        return ModelTurn(
            content=joined(self._content),
            text=self.display.text,
            calls=self.calls(),
            opaque_body=None if cut else self._opaque_body,
            cut=cut,
            has_files=self._has_forwarded,
            has_shown=self.has_shown,
        )

    def calls(self) -> tuple[ToolCall, ...]:
        return self._calls.calls(f"call_{self._span.key.replace('.', '_')}")
