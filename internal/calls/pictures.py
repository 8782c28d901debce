"""Pictures that tools make, for a model with vision: those whose bytes the plugin holds; the others are named."""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from dify_plugin.entities.model.message import (
    PromptMessageContentUnionTypes,
    TextPromptMessageContent,
)

from internal.events import ExternalImage, HostedFile, UserFile
from internal.host.files import FileBytes, sniff_mime_type
from internal.node.model import MAX_FILE_BYTES, VISIBLE_TYPES, Medium, content_of
from internal.text.texts import cut_to_size
from internal.transcript.transcript import PicturesMessage
from prompt import template

MAX_PICTURES = 4
"""Of a round (docs/files.md)."""
_MAX_LIST_LENGTH = 2_000
"""Characters of the list of those that stay out."""


class Picture(NamedTuple):
    """A picture of a tool's, as the model sees it, or why it does not."""

    name: str
    part: Medium | None
    why: str = ""

    @classmethod
    def of(cls, file: UserFile, redact: Callable[[str], str]) -> "Picture | None":
        """The picture in a file that goes to the user; None for any other file."""
        match file:
            case ExternalImage(address):
                return cls(redact(address), None, template.PICTURE_ELSEWHERE)
            case HostedFile(address, meta):
                name, kind = str(meta.get("filename") or address.partition("?")[0]), str(meta.get("mime_type") or "")
                return cls(redact(name), None, template.PICTURE_ELSEWHERE) if kind.startswith("image/") else None
            case FileBytes(data, kind, name):
                name, seen = redact(" ".join(name.split())) or "unnamed", sniff_mime_type(data)
                if seen in VISIBLE_TYPES and len(data) <= MAX_FILE_BYTES:
                    return cls(name, content_of("image", data, seen, name))
                kind = seen if seen.startswith("image/") else kind
                why = template.PICTURE_TYPE.format(kind=kind)
                if kind in VISIBLE_TYPES:
                    why = template.PICTURE_TOO_LARGE if seen == kind else template.PICTURE_BROKEN.format(kind=kind)
                return cls(name, None, why) if kind.startswith("image/") else None

    def left_out(self) -> "Picture":
        """The same, which does not come into the message, since others came first."""
        return Picture(self.name, None, template.PICTURE_BEYOND.format(most=MAX_PICTURES) if self.part else self.why)

    @property
    def digest(self) -> str:
        """Equal for equal bytes."""
        return sha256(self.part.base64_data.encode()).hexdigest() if self.part else ""


def pictures_message(made: Iterable[tuple[str, Sequence[Picture]]]) -> tuple[PicturesMessage, str] | None:
    """What the model sees of a round, by the names of the tools, and the same in words; None without pictures."""
    parts, left_out, room = list[PromptMessageContentUnionTypes](), list[str](), MAX_PICTURES
    for tool, pictures in made:
        seen, names = list[PromptMessageContentUnionTypes](), list[str]()
        for picture in pictures:
            if picture.part and len(seen) < room:
                seen.append(picture.part)
                names.append(picture.name)
            else:
                why = picture.left_out().why
                left_out.append(template.PICTURE_LEFT_OUT.format(tool=tool, name=picture.name, why=why))
        if seen:
            words = template.PICTURES_FROM.format(tool=tool, names=", ".join(names))
            parts += [TextPromptMessageContent(data=words), *seen]
            room -= len(seen)
    if left_out:
        parts.append(TextPromptMessageContent(data=cut_to_size("\n".join(left_out), _MAX_LIST_LENGTH)))
    if not parts:
        return None
    words = "\n".join(part.data for part in parts if isinstance(part, TextPromptMessageContent))
    return PicturesMessage(content=[TextPromptMessageContent(data=template.PICTURES_HEADER), *parts]), words
