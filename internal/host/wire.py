"""Makes the host's answers well-formed as they come in.

In: a model's chunks and a tool's messages as the SDK reads them from the wire. Out: the same with well-formed texts.
The arguments of tool calls stay as the model wrote them.
"""

from typing import Any

from dify_plugin.entities.model.llm import LLMResultChunk
from dify_plugin.entities.model.message import PromptMessageContentUnionTypes, TextPromptMessageContent
from pydantic import BaseModel

from internal.text.fairness import in_turns
from internal.text.wellformed import wellformed, wellformed_json

MAX_EXACT_INTEGER = 2**53
"""The host's daemon reads numbers as floats and rounds larger integers (docs/host-facts.md, "Numbers and keys")."""


class WireMessage(BaseModel):
    """A tool's message in the shape that the daemon guarantees (docs/host-facts.md, "Tool messages")."""

    type: str
    message: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


def wellformed_message(message: WireMessage) -> WireMessage:
    return message.model_copy(
        update={"message": wellformed_json(message.message), "meta": wellformed_json(message.meta)}
    )


def wellformed_chunk(chunk: LLMResultChunk) -> LLMResultChunk:
    """A model's chunk, changed in place: it was just read, and nothing else holds it."""
    delta, message = chunk.delta, chunk.delta.message
    if isinstance(message.content, str):
        text = wellformed(message.content)
        if text is not message.content:  # assigning a field of the SDK's models is slow
            message.content = text
    elif message.content:
        for part in in_turns(message.content):
            _make_wellformed(part)
    for call in message.tool_calls or ():
        call.id, call.function.name = wellformed(call.id), wellformed(call.function.name)
    if delta.finish_reason:
        delta.finish_reason = wellformed(delta.finish_reason)
    if delta.usage:
        delta.usage.currency = wellformed(delta.usage.currency)
    return chunk


def _make_wellformed(part: PromptMessageContentUnionTypes) -> None:
    """Every text of a part but its opaque body, which is the provider's."""
    if isinstance(part, TextPromptMessageContent):
        part.data = wellformed(part.data)
        return
    for name in ("format", "mime_type", "filename", "url", "base64_data"):
        setattr(part, name, wellformed(getattr(part, name)))


def exact_integers(value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """A JSON value as the host keeps it: integers that it would round are texts."""
    match value:
        case bool():
            return value
        case int():
            return value if abs(value) <= MAX_EXACT_INTEGER else str(value)
        case dict():
            return {name: exact_integers(item) for name, item in value.items()}
        case list() | tuple():
            return [exact_integers(item) for item in value]
    return value
