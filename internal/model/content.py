"""The content of a model's answer: text, parts of text, and images.

In: texts and parts as a provider sends them. Out: the content as it goes back to it, and images for the user.
"""

import base64
import binascii
from collections.abc import Sequence

from dify_plugin.entities.model.message import (
    ImagePromptMessageContent,
    PromptMessageContentUnionTypes,
    TextPromptMessageContent,
)

from internal.conversation.transcript import Content
from internal.report.events import Event, FileForwarded, Noted
from internal.report.files import MAX_FILE_BYTES, ExternalImage, FileBytes
from internal.text.notes import OurWords


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
