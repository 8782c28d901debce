"""The content of a model's answer: text, parts of text, and images.

In: parts as a provider sends them. Out: parts that can be written back to it, and images for the user.
"""

import base64
import binascii
from collections.abc import Generator
from itertools import groupby
from typing import Any

from dify_plugin.entities.model.message import (
    ImagePromptMessageContent,
    PromptMessageContentUnionTypes,
    TextPromptMessageContent,
)
from pydantic_core import to_json

from internal.conversation.transcript import Content
from internal.report.events import Event, FileForwarded, Noted, OurWords
from internal.report.files import MAX_ADDRESS_LENGTH, MAX_FILE_BYTES, MAX_NAME_LENGTH, ExternalImage, FileBytes


def kept(part: PromptMessageContentUnionTypes) -> Generator[Event, None, PromptMessageContentUnionTypes]:
    """A copy of a part that can be written back."""
    opaque_body = yield from writable(part.opaque_body)
    if isinstance(part, TextPromptMessageContent):
        return part.model_copy(update={"opaque_body": opaque_body})
    described = {name: getattr(part, name)[:MAX_NAME_LENGTH] for name in ("format", "mime_type", "filename")}
    return part.model_copy(update={**described, "opaque_body": opaque_body})


def writable(opaque_body: Any) -> Generator[Event, None, Any]:  # noqa: ANN401 - the provider's
    """An opaque body as it came, or None when it could not be written back."""
    try:
        to_json(opaque_body)
    except ValueError:
        yield Noted(OurWords("an opaque body of the provider's cannot be written as JSON and is left out"))
        return None
    return opaque_body


def joined(content: list[str | PromptMessageContentUnionTypes]) -> Content:
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


def forward_image(part: ImagePromptMessageContent) -> Event:
    """An image that the model made, by address or as bytes."""
    if part.url and not part.url.startswith("data:"):
        if len(part.url) > MAX_ADDRESS_LENGTH:
            return Noted(OurWords("an image of the model's has too long an address and is left out"))
        return FileForwarded(ExternalImage(part.url))
    try:
        data = base64.b64decode(part.url.partition(",")[2] or part.base64_data, validate=True)
    except (binascii.Error, ValueError):
        return Noted(OurWords("an image of the model's could not be read"))
    if len(data) > MAX_FILE_BYTES:
        return Noted(OurWords("an image of the model's is larger than 15 MiB and is left out"))
    return FileForwarded(FileBytes(data, part.mime_type, part.filename))
