"""What a tool says, turned into what the model reads, what the user gets, and sources.

In: the tool's messages as plain dicts from the wire, since the SDK's enum lacks types that Dify sends and one of them
would end its generator. Out: text, files to hand on, sources. Logs and variables are not the model's business.
"""

import base64
import binascii
import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from internal.local_files import FileRefused, is_local_path, read_local_file, sniff_mime_type
from internal.source_reading import read_source
from internal.tooling import json_type
from internal.user_files import LARGEST_FILE, LONGEST_ADDRESS, ExternalImage, FileBytes, HostedFile, UserFile
from internal.wellformed import plain_json, wellformed
from prompt import template

if TYPE_CHECKING:
    from internal.sources import Source

LONGEST_NAME = 200

# What Dify and its web page read of a tool file's meta; a tool could put anything of any size beside it.
_HOSTED_META = ("tool_file_id", "mime_type", "filename", "extension", "size", "type", "width", "height")
_TOOL_FILE = re.compile(r"/files/tools/[\w-]+(\.\w+)?(\?[^\s]*)?")
_SILENT_TYPES = frozenset({"variable", "log"})
_IMAGE_TYPES = frozenset({"image", "image_link"})
_LINKED_FILE_TYPES = _IMAGE_TYPES | {"binary_link"}


class WireMessage(BaseModel):
    """A tool's message, whatever its type and shape: one that could not be read would end the tool's stream."""

    type: Any = None
    message: Any = None
    meta: Any = None


class ToolOutput:
    """Collects the messages of one call in the order in which they come."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._lines: list[str] = []
        self._values: list[object] = []
        self.sources: list[Source] = []
        self.notes: list[str] = []
        self.said_something = False
        """Whether any message came at all: then the tool has begun its work, and may have placed an order."""

    def take(self, wire: WireMessage) -> list[UserFile]:
        """Take one message in; return the files in it that go to the user."""
        self.said_something = True
        kind = str(wire.type or "")
        message, meta = self._mapping(wire.message, kind), self._mapping(wire.meta, kind)
        if kind == "text":
            self._parts.append(wellformed(str(message.get("text") or "")))
        elif kind == "json":
            self._values.append(plain_json(message.get("json_object")))
        elif kind == "link":
            self._lines.append(f"link: {wellformed(str(message.get('text') or ''))}")
        elif kind in _LINKED_FILE_TYPES:
            return self._take_linked_file(kind, str(message.get("text") or ""), meta)
        elif kind == "blob":
            return self._take_blob(message.get("blob"), meta)
        elif kind == "file":
            described = meta.get("file")
            self._lines.append(f"file: {_file_name(described if isinstance(described, Mapping) else meta)}")
        elif kind == "retriever_resources":
            self._take_resources(message.get("retriever_resources"))
        elif kind not in _SILENT_TYPES:
            self._note(f"a message of the unknown type {kind[:LONGEST_NAME]!r} was passed over")
        return []

    def _mapping(self, part: object, kind: str) -> Mapping[str, Any]:
        if isinstance(part, Mapping):
            return part
        if part is not None:
            self._note(f"a part of a message of the type {kind[:LONGEST_NAME]!r} is {json_type(part)}, and not read")
        return {}

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _take_linked_file(self, kind: str, address: str, meta: Mapping[str, Any]) -> list[UserFile]:
        if len(address) > LONGEST_ADDRESS:
            self._lines.append("file: its address is too long, not handed on")
            return []
        if _TOOL_FILE.fullmatch(address) or (meta.get("tool_file_id") and _is_hosted(address)):
            self._lines.append(f"file: {_file_name(meta)}, handed to the user")
            return [HostedFile(address, _hosted_meta(meta))]
        if is_local_path(address):
            return self._take_local_file(address)
        if kind in _IMAGE_TYPES and address.startswith(("http://", "https://")):
            self._lines.append(f"image: {wellformed(address)}, shown to the user")
            return [ExternalImage(address)]
        self._lines.append(f"file: {wellformed(address[:LONGEST_NAME])}")
        return []

    def _take_local_file(self, path: str) -> list[UserFile]:
        try:
            file = read_local_file(path)
        except FileRefused as refused:
            self._lines.append(str(refused))
            return []
        self._lines.append(f"file: {file.filename} ({file.mime_type}), handed to the user")
        return [FileBytes(file.data, file.mime_type, file.filename)]

    def _take_blob(self, blob: object, meta: Mapping[str, Any]) -> list[UserFile]:
        try:
            data = blob if isinstance(blob, bytes) else base64.b64decode(str(blob or ""), validate=True)
        except (binascii.Error, ValueError):
            self._lines.append("file: its bytes could not be read")
            return []
        if len(data) > LARGEST_FILE:
            self._lines.append("file: larger than 15 MiB, not handed on")
            return []
        mime_type = str(meta.get("mime_type") or sniff_mime_type(data))
        self._lines.append(f"file: {_file_name({**meta, 'mime_type': mime_type})}, handed to the user")
        return [FileBytes(data, mime_type[:LONGEST_NAME], _short_name(str(meta.get("filename") or "")))]

    def _take_resources(self, resources: object) -> None:
        for resource in resources if isinstance(resources, list) else ():
            source = read_source(resource) if isinstance(resource, Mapping) else None
            if source:
                self.sources.append(source)

    def rendered(self) -> str:
        """What the model reads, before it is redacted and cut to size; "" when the tool said nothing.

        JSON is left out where a text said it already, as Dify's workflow tools do.
        """
        said = {_canonical(value) for value in self._parsed_texts()}
        values = [json.dumps(value, ensure_ascii=False) for value in self._values if _canonical(value) not in said]
        parts = [part for part in ("".join(self._parts), *values, "\n".join(self._lines)) if part.strip()]
        return "\n\n".join(parts or [source.content for source in self.sources if source.content])

    def _parsed_texts(self) -> Iterator[object]:
        whole = "".join(self._parts)
        for text in {whole: None, **dict.fromkeys(self._parts)}:
            if text.lstrip().startswith(("{", "[")):
                with contextlib.suppress(ValueError, RecursionError):
                    yield plain_json(json.loads(text))


def _is_hosted(address: str) -> bool:
    """Whether an address is one under which Dify keeps tool files, or none of this machine's."""
    under_tools = address.startswith("/files/tools/") and ".." not in address and "\0" not in address
    return not address or under_tools or not is_local_path(address)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _hosted_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What goes on of a file's meta: numbers, and texts that are no longer than a name."""
    kept: dict[str, Any] = {}
    for name in _HOSTED_META:
        value = meta.get(name)
        if isinstance(value, str):
            kept[name] = _short_name(value)
        elif isinstance(value, int | float):
            kept[name] = value
    return kept


def _short_name(name: str) -> str:
    """A file's name or type; one that is too long keeps the suffix that says what the file is."""
    suffix = PurePosixPath(name).suffix[:LONGEST_NAME]
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - len(suffix)] + suffix


def _file_name(meta: Mapping[str, Any]) -> str:
    name = " ".join(wellformed(str(meta.get("filename") or meta.get("name") or "unnamed")).split())
    mime_type = str(meta.get("mime_type") or "unknown type")
    return f"{name[:LONGEST_NAME]} ({mime_type[:LONGEST_NAME]})"


def cut_to_size(text: str, limit: int) -> str:
    """Keep head and tail of a long text within ``limit`` characters, with the number left out in between."""
    if len(text) <= limit:
        return text
    kept = limit - len(template.CHARACTERS_LEFT_OUT.format(count=len(text)))
    head, tail = kept - kept // 3, kept // 3
    return text[:head] + template.CHARACTERS_LEFT_OUT.format(count=len(text) - kept) + text[len(text) - tail :]


def with_sources(text: str, citations: str, limit: int) -> str:
    """A result and the numbers of its sources, together within the limit."""
    if not citations:
        return cut_to_size(text, limit)
    shown = cut_to_size(citations, limit // 2)
    return f"{cut_to_size(text, limit - len(shown) - 2)}\n\n{shown}"
