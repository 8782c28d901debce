"""A model's stream, read to its end and judged then.

In: the chunks of any provider: fragments, snapshots, lists of parts, blocking results wrapped as one chunk. Out: events
for the eye while they come, then one ModelTurn.
"""

import base64
import binascii
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from dify_plugin.entities.model.llm import LLMResultChunk, LLMUsage
from dify_plugin.entities.model.message import (
    ImagePromptMessageContent,
    PromptMessageContentUnionTypes,
    TextPromptMessageContent,
)
from pydantic_core import to_json

from internal.assembly import CallAssembler
from internal.deadline import Deadline
from internal.display import DisplayRule, TurnDisplay
from internal.events import Event, FileForwarded, Noted, StopReason
from internal.flow import extract_stream_tool_calls
from internal.tool_output import LONGEST_NAME
from internal.transcript import Content, ToolCall
from internal.usage import Usage
from internal.user_files import LARGEST_FILE, LONGEST_ADDRESS, ExternalImage, FileBytes
from internal.wellformed import wellformed

# Finish reasons of a turn that was cut, by provider's word (model-behaviour §2.4 and §2.5, August 2026).
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

    def seconds_left(self) -> float:
        """Only an answer that streams is worth more time than the turn was given."""
        return (self._span.end if self.is_answering else self._span.deadline).left()

    def take(self, chunk: LLMResultChunk) -> Iterator[Event]:
        delta = chunk.delta
        self.chunks += 1
        if entries := extract_stream_tool_calls(chunk):
            self._calls.take(entries)
            self.display.expect_calls()
        self._usage = delta.usage or self._usage
        self.finish_reason = delta.finish_reason or self.finish_reason
        if delta.message.opaque_body is not None:
            self._opaque_body = yield from _writable(delta.message.opaque_body)
        content = delta.message.content
        if isinstance(content, str):
            yield from self._take_text(content)
        for part in content if isinstance(content, list) else ():
            yield from self._take_part(part)

    def _take_text(self, text: str) -> Iterator[Event]:
        if text:
            self._content.append(text)
            yield from self.display.feed(text)

    def _take_part(self, part: PromptMessageContentUnionTypes) -> Iterator[Event]:
        opaque_body = yield from _writable(part.opaque_body)
        if isinstance(part, TextPromptMessageContent):
            self._content.append(part.model_copy(update={"data": wellformed(part.data), "opaque_body": opaque_body}))
            yield from self.display.feed(part.data)
            return
        described = {
            "format": wellformed(part.format[:LONGEST_NAME]),
            "mime_type": wellformed(part.mime_type[:LONGEST_NAME]),
            "filename": wellformed(part.filename[:LONGEST_NAME]),
        }
        sent = {"url": wellformed(part.url), "base64_data": wellformed(part.base64_data), "opaque_body": opaque_body}
        medium = part.model_copy(update={**described, **sent})
        self._content.append(medium)
        if isinstance(medium, ImagePromptMessageContent):
            event = _forward_image(medium)
            self._has_forwarded = self._has_forwarded or isinstance(event, FileForwarded)
            yield event

    def turn(self, cut: StopReason | None = None) -> ModelTurn:
        cut = cut or _CUT_REASONS.get((self.finish_reason or "").rpartition(".")[2].lower())
        return ModelTurn(
            content=_joined(self._content),
            text=self.display.text,
            calls=self.calls(),
            opaque_body=None if cut else self._opaque_body,
            cut=cut,
            has_files=self._has_forwarded,
        )

    def calls(self) -> tuple[ToolCall, ...]:
        return self._calls.calls(f"call_{self._span.key.replace('.', '_')}")


def _writable(opaque_body: Any) -> Generator[Event, None, Any]:  # noqa: ANN401 - the provider's
    """An opaque body as it came, or None when it could not be written back."""
    try:
        to_json(opaque_body)
    except ValueError:
        yield Noted("an opaque body of the provider's cannot be written as JSON and is left out")
        return None
    return opaque_body


def _joined(content: list[str | PromptMessageContentUnionTypes]) -> Content:
    """Text alone as one string; with parts among it, a list in which each stretch of text is one part."""
    parts: list[PromptMessageContentUnionTypes] = []
    for is_text, stretch in groupby(content, key=lambda item: isinstance(item, str)):
        items = list(stretch)
        if is_text:
            parts.append(TextPromptMessageContent(data="".join(item for item in items if isinstance(item, str))))
        else:
            parts += [item for item in items if not isinstance(item, str)]
    if all(isinstance(item, str) for item in content):
        return "".join(item for item in content if isinstance(item, str))
    return parts


def _forward_image(part: ImagePromptMessageContent) -> Event:
    """An image that the model made, by address or as bytes."""
    if part.url and not part.url.startswith("data:"):
        if len(part.url) > LONGEST_ADDRESS:
            return Noted("an image of the model's has too long an address and is left out")
        return FileForwarded(ExternalImage(part.url))
    try:
        data = base64.b64decode(part.url.partition(",")[2] or part.base64_data, validate=True)
    except (binascii.Error, ValueError):
        return Noted("an image of the model's could not be read")
    if len(data) > LARGEST_FILE:
        return Noted("an image of the model's is larger than 15 MiB and is left out")
    return FileForwarded(FileBytes(data, part.mime_type, part.filename))
