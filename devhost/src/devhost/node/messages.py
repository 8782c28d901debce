"""Processes the messages of a tool or a strategy as Dify's Agent node does.

An error that fails the node is raised as `NodeFailedError`.
"""

import base64
import mimetypes
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from devhost.errors import NodeFailedError
from devhost.golang import marshalled
from devhost.limits import HostLimits
from devhost.protocol.wire import MESSAGE_TYPES, JsonObject
from devhost.text import describe

# The description of a file in Dify: its type, its MIME type and its extension.

IMAGE = "image"
VIDEO = "video"
AUDIO = "audio"
DOCUMENT = "document"
CUSTOM = "custom"
UNKNOWN_MIME_TYPE = "application/octet-stream"
UNKNOWN_EXTENSION = ".bin"
_EXTENSIONS = {
    IMAGE: "jpg jpeg png webp gif svg",
    VIDEO: "mp4 mov mpeg webm",
    AUDIO: "mp3 m4a wav amr mpga",
    DOCUMENT: "txt markdown md mdx pdf html htm xlsx xls vtt properties doc docx csv eml msg ppt pptx xml epub",
}
_BY_EXTENSION = {extension: kind for kind, extensions in _EXTENSIONS.items() for extension in extensions.split()}
_IN_MIME_TYPES = (("image", IMAGE), ("video", VIDEO), ("audio", AUDIO), ("text", DOCUMENT), ("pdf", DOCUMENT))
_OFFICE = "application/vnd.openxmlformats-officedocument."
_LACKING = {
    ".docx": f"{_OFFICE}wordprocessingml.document",
    ".xlsx": f"{_OFFICE}spreadsheetml.sheet",
    ".pptx": f"{_OFFICE}presentationml.presentation",
    ".epub": "application/epub+zip",
    ".md": "text/markdown",
    ".webp": "image/webp",
    ".m4a": "audio/mp4",
    ".amr": "audio/amr",
    ".wav": "audio/wav",
}
"""MIME types that Python's own table lacks or names differently. Browsers and Dify's server know these types."""


def file_type(extension: str, mime_type: str) -> str:
    """Returns Dify's type of a file, by its extension or else by its MIME type."""
    return _BY_EXTENSION.get(extension.removeprefix(".").lower()) or _by_mime_type(mime_type)


def mime_type_of(filename: str) -> str:
    return _table().guess_type(filename)[0] or UNKNOWN_MIME_TYPE


def extension_of(mime_type: str) -> str:
    return _table().guess_extension(mime_type) or UNKNOWN_EXTENSION


def _by_mime_type(mime_type: str) -> str:
    return next((kind for word, kind in _IN_MIME_TYPES if word in mime_type), CUSTOM)


@cache
def _table() -> mimetypes.MimeTypes:
    """Returns Python's own table. The tables of different machines could give the same file different types."""
    table = mimetypes.MimeTypes()
    for extension, mime_type in _LACKING.items():
        table.add_type(mime_type, extension)
    return table


# The messages of a tool or a strategy, read as strictly as Dify reads them from the daemon.

RESERVED_VARIABLES = frozenset({"text", "json", "files"})


@dataclass(frozen=True)
class Message:
    """One message of a tool or a strategy."""

    type: str
    body: JsonObject
    meta: JsonObject = field(default_factory=dict)

    @property
    def text(self) -> str:
        return str(self.body.get("text", ""))

    def on_the_wire(self) -> JsonObject:
        return {"type": self.type, "message": self.body, "meta": self.meta or None}


def _body(**fields: Any) -> type[BaseModel]:  # noqa: ANN401 - types, or pairs of a type and a default
    described: dict[str, Any] = {
        name: kind if isinstance(kind, tuple) else (kind, ...) for name, kind in fields.items()
    }
    return create_model("Body", __config__=ConfigDict(strict=True, defer_build=True), **described)


_TEXT = _body(text=str)
_BODIES: Mapping[str, type[BaseModel]] = {
    "json": _body(json_object=dict[str, Any] | list[Any]),
    "variable": _body(variable_name=str, variable_value=Any),
    "log": _body(
        id=str,
        label=str,
        status=Literal["start", "success", "error"],
        data=dict[str, Any],
        metadata=(dict[str, Any] | None, None),
        parent_id=(str | None, None),
        error=(str | None, None),
    ),
    "blob": _body(blob=str),
    "blob_chunk": _body(id=str, blob=str),
    "file": _body(),
    "retriever_resources": _body(retriever_resources=list[Any]),
}
"""The fields that Dify reads in a message's body, by message type. Messages of all other types have a `text`."""


def read_message(data: JsonObject) -> Message:
    """Parses and validates a message. Raises NodeFailedError if Dify's node would fail on it."""
    kind = data.get("type")
    body = data.get("message")
    meta = data.get("meta")
    if not isinstance(kind, str) or kind not in MESSAGE_TYPES:
        raise _malformed(data, f"{kind!r} is an unknown message type")
    if meta is not None and not isinstance(meta, dict):
        raise _malformed(data, f"a {kind} message needs meta that is an object")
    message = Message(kind, body if isinstance(body, dict) else {}, meta or {})
    try:
        _BODIES.get(kind, _TEXT).model_validate(message.body)
    except ValidationError as error:
        raise _malformed(data, f"of a {kind} message, {describe(error)}") from None
    match message.body:
        case {"variable_name": name} if kind == "variable" and name in RESERVED_VARIABLES:
            sentence = f"a variable may not be called {name!r}: the node has that output"
            raise NodeFailedError("variable-name-reserved", sentence, shows=_line(data))
        case {"stream": True, "variable_value": value} if kind == "variable" and not isinstance(value, str):
            raise _malformed(data, "a variable that streams needs a value that is a text")
    return message


def _malformed(data: JsonObject, sentence: str) -> NodeFailedError:
    return NodeFailedError("message-malformed", f"{sentence}; Dify fails the node on it", shows=_line(data))


def _line(data: JsonObject) -> str:
    """Serializes a message that Dify cannot read, as the daemon sent it. The node shows nothing else."""
    return marshalled({"code": 0, "message": "success", "data": data})


# Saves bytes from a plugin or a server in a folder on this machine, under a safe name. Existing files are never
# overwritten, and the new file is always directly in the folder.

_REFUSED = frozenset('/\\:*?"<>|')
"""Characters that separate folders or have a special meaning on some systems."""


def save_once(folder: Path, name: str, data: bytes) -> Path:
    """Saves bytes like `save_new`, but reuses an existing file with the same name and the same bytes."""
    there = folder / safe_name(name)
    if there.is_file() and there.read_bytes() == data:
        return there
    return save_new(folder, name, data)


def save_new(folder: Path, name: str, data: bytes) -> Path:
    """Saves bytes in a new file and returns its path. Creates the folder if necessary."""
    folder.mkdir(parents=True, exist_ok=True)
    safe = Path(safe_name(name))
    for number in count(1):
        path = folder / (safe.name if number == 1 else f"{safe.stem}-{number}{safe.suffix}")
        try:
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            continue
        return path
    raise AssertionError  # the loop never runs out of numbers


def safe_name(name: str) -> str:
    """Returns a name that cannot leave the folder, hide the file or mislead a reader. The suffix is kept."""
    kept = "".join(letter if letter.isprintable() and letter not in _REFUSED else "_" for letter in name)
    path = Path(kept.strip(" .").lstrip("-") or "file")
    return f"{path.stem[:40]}{path.suffix[:20]}"  # file systems allow 255 bytes, and a number may be added


# Dify's store of tool files, as a directory. The store saves bytes and returns a `/files/tools/<id>.<ext>` link with
# its meta.

_LINK = re.compile(r"/files/tools/([0-9a-zA-Z-]+)")


@dataclass(frozen=True)
class ToolFile:
    """A file that a tool or a strategy sent as bytes."""

    id: str
    filename: str
    """The name in Dify's table of tool files. Dify makes up a missing name, and adds a missing suffix."""
    mime_type: str
    size: int
    path: Path

    @property
    def extension(self) -> str:
        """The extension for the MIME type, whatever the filename is."""
        return extension_of(self.mime_type)

    @property
    def url(self) -> str:
        return f"/files/tools/{self.id}{self.extension}"

    @property
    def kind(self) -> str:
        """Dify's type of the file. For a tool file, Dify checks the MIME type first and then the extension."""
        kind = _by_mime_type(self.mime_type)
        if kind == CUSTOM:
            return file_type(self.extension, self.mime_type)
        return kind

    def output(self) -> JsonObject:
        """Returns the file as an item of a node's output `files`, with its path on this machine."""
        return {
            "dify_model_identity": "__dify__file__",
            "id": self.id,
            "type": self.kind,
            "transfer_method": "tool_file",
            "related_id": self.id,
            "filename": self.filename,
            "extension": self.extension,
            "mime_type": self.mime_type,
            "size": self.size,
            "url": self.url,
            "path": str(self.path),
        }

    def link(self, meta: JsonObject, *, is_image: bool) -> Message:
        """Returns the message that replaces the file.

        Its meta is the tool's meta plus the id, so it may have no `filename`.
        """
        kind = "binary_link"
        if is_image:
            kind = "image_link"
        return Message(kind, {"text": self.url}, {**meta, "tool_file_id": self.id})


class ToolFileStore:
    """A thread-safe store of tool files."""

    def __init__(self, directory: Path) -> None:
        """`directory` is created when the first file is saved."""
        self.directory = directory
        self._files: dict[str, ToolFile] = {}

    def save(self, data: bytes, mime_type: str = UNKNOWN_MIME_TYPE, filename: str | None = None) -> ToolFile:
        """Saves a file. As in Dify, a missing `filename` is made up, and a name without a dot gets a suffix."""
        extension = extension_of(mime_type)
        name = f"{uuid.uuid4().hex}{extension}" if filename is None else filename
        if "." not in name:
            name += extension
        file = ToolFile(str(uuid.uuid4()), name, mime_type, len(data), save_new(self.directory, name, data))
        self._files[file.id] = file
        return file

    def find(self, url: str, meta: JsonObject) -> ToolFile | None:
        """Finds the file of a link message by the id in its meta, in the meta's `file`, or in its URL."""
        link = _LINK.search(url)
        match meta:
            case {"tool_file_id": str(file_id)} if file_id:
                return self._files.get(file_id)
            case {"file": {"related_id": str(file_id)}}:
                return self._files.get(file_id)
        if link is None:
            return None
        return self._files.get(link.group(1))

    def all(self) -> list[ToolFile]:
        """Returns all files in the order in which they were saved."""
        return list(self._files.values())


def names_a_file(message: Message) -> bool:
    """Returns whether the node treats a link as a file. This depends only on the link's meta, not on its address."""
    return bool(message.meta.get("tool_file_id")) or isinstance(message.meta.get("file"), dict)


# Dify's first step for every message of a tool or a strategy: bytes become tool files, and files become links. Each
# stream needs its own object, because the chunks of a file belong together.


class FileMessages:
    """Saves the files in a stream of messages and replaces them with links."""

    def __init__(self, files: ToolFileStore, limits: HostLimits, found: Callable[[str, str], None]) -> None:
        """`found` gets the name of each rule that a message breaks without failing the node, and an explanation."""
        self._files = files
        self._limits = limits
        self.found = found
        self._unfinished: dict[str, bytearray] = {}

    def transform(self, message: Message) -> Iterator[Message]:
        match message.type:
            case "blob":
                yield self._saved(_decoded(message), message)
            case "blob_chunk":
                yield from self._chunk(message)
            case "image":
                yield self._downloaded(message)
            case "file":
                self.found("file-message-dropped", "Dify silently drops a file message")
            case _:
                yield message

    def _saved(self, data: bytes, message: Message) -> Message:
        mime_type = message.meta.get("mime_type")
        name = message.meta.get("filename")
        file = self._files.save(data, str(mime_type or UNKNOWN_MIME_TYPE), None if name is None else str(name))
        return file.link(message.meta, is_image="image" in file.mime_type)

    def _chunk(self, message: Message) -> Iterator[Message]:
        """Collects the chunks of a file. The last chunk only marks the end, and the daemon ignores its bytes."""
        if message.body.get("end"):
            yield self._saved(bytes(self._unfinished.pop(message.body["id"], b"")), message)
            return
        blob = self._unfinished.setdefault(message.body["id"], bytearray())
        blob += _decoded(message)
        if len(blob) > self._limits.blob_bytes:
            most = f"{self._limits.blob_bytes:,} bytes, the most that the daemon puts together"
            raise NodeFailedError("blob-too-large", f"a file grew beyond {most}")

    def _downloaded(self, message: Message) -> Message:
        import httpx  # noqa: PLC0415 - it takes as long to import as half of devhost, and few messages need it

        try:
            response = httpx.get(message.text, timeout=20.0, follow_redirects=True)
            response.raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # ValueError: a host that IDNA cannot encode
            self.found("image-not-downloaded", f"{message.text} cannot be downloaded: the answer's text says so")
            return Message("text", {"text": f"Failed to download image: {message.text}: {error}"})
        by_name = mime_type_of(message.text)
        header = response.headers.get("content-type", "").partition(";")[0].strip()
        mime_type = by_name
        if by_name == UNKNOWN_MIME_TYPE:
            mime_type = header or UNKNOWN_MIME_TYPE
        return self._files.save(response.content, mime_type).link(message.meta, is_image=True)


def _decoded(message: Message) -> bytes:
    try:
        return base64.b64decode(message.body["blob"], validate=True)
    except ValueError as error:
        raise NodeFailedError("message-malformed", f"a {message.type} message is not base64: {error}") from error
