"""Reads a model's stream, and judges it when it has ended.

In: the chunks of any provider: fragments, snapshots, lists of parts. Out: events for the screen while they come, then
one ModelTurn.
"""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dify_plugin.entities.model.llm import LLMResultChunk, LLMUsage
from dify_plugin.entities.model.message import (
    ImagePromptMessageContent,
    PromptMessageContentUnionTypes,
    TextPromptMessageContent,
)

from internal.conversation.transcript import Content
from internal.conversation.weight import estimate_tokens
from internal.flow import extract_stream_tool_calls
from internal.host.clock import Deadline
from internal.model.assembly import CallAssembler
from internal.model.content import forward_image, joined
from internal.model.display import DisplayRule, TurnDisplay
from internal.model.together import together
from internal.report.events import Event, FileForwarded, Noted, ShownTogether, StopReason
from internal.report.tool_calls import ToolCall
from internal.report.usage import Usage
from internal.text.fairness import in_turns
from internal.text.notes import OurWords

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
