"""The first step for every message of a tool or a strategy in Dify: bytes become tool files, files become links.

In: a `Message`. Out: the messages that take its place (none for a chunk of a file that goes on). One object per stream,
since the chunks of a file belong together; both limits on chunks are the daemon's.
"""

import base64
import binascii
from collections.abc import Callable, Iterator

import httpx

from devhost.errors import NodeFailedError
from devhost.limits import HostLimits
from devhost.node.messages.file_facts import UNKNOWN_MIME_TYPE, mime_type_of
from devhost.node.messages.message import Message
from devhost.node.messages.tool_files import ToolFile, ToolFileStore

IMAGE_SECONDS = 20.0


type Found = Callable[[str, str], None]
"""A rule's name, and what broke it."""


class FileMessages:
    def __init__(self, files: ToolFileStore, limits: HostLimits, found: Found) -> None:
        """`found` is called for each rule that a message breaks without failing the node."""
        self._files = files
        self._limits = limits
        self._found = found
        self._unfinished: dict[str, bytearray] = {}
        self._names: dict[str, str] = {}

    def transform(self, message: Message) -> Iterator[Message]:
        match message.type:
            case "blob":
                yield self._saved(_decoded(message), message)
            case "blob_chunk":
                yield from self._chunk(message)
            case "image":
                yield self._downloaded(message)
            case "file":
                self._found("file-message-dropped", "Dify silently drops a file message")
            case _:
                yield message

    def unfinished(self) -> list[str]:
        """Files whose last chunk is missing."""
        return list(self._names.values())

    def _saved(self, data: bytes, message: Message) -> Message:
        mime_type, name = message.meta.get("mime_type"), message.meta.get("filename")
        file = self._files.save(data, str(mime_type or UNKNOWN_MIME_TYPE), None if name is None else str(name))
        return _link(file, message, is_image="image" in file.mime_type)

    def _chunk(self, message: Message) -> Iterator[Message]:
        """The last chunk only says that it is the last: the daemon does not look at its bytes."""
        blob_id = message.body["id"]
        if not isinstance(message.body.get("total_length"), int):
            self._found("blob-chunk-skipped", "a chunk of a file has no total_length: the daemon skips it silently")
            return
        if message.body.get("end"):
            if message.body["blob"]:
                self._found("blob-end-has-bytes", "a file's last chunk (end=true) is not empty: its bytes are lost")
            self._names.pop(blob_id, None)
            yield self._saved(bytes(self._unfinished.pop(blob_id, b"")), message)
            return
        data = _decoded(message)
        if len(data) > self._limits.blob_chunk_bytes:
            raise NodeFailedError(
                "blob-chunk-too-large",
                f"a blob chunk of {len(data):,} bytes came; the daemon takes {self._limits.blob_chunk_bytes:,} at most",
            )
        self._names[blob_id] = f"file {message.meta.get('filename') or blob_id!r}"
        blob = self._unfinished.setdefault(blob_id, bytearray())
        if len(blob) + len(data) > self._limits.blob_bytes:
            raise NodeFailedError(
                "blob-too-large",
                f"a file grew beyond {self._limits.blob_bytes:,} bytes, the most that the daemon puts together",
            )
        blob += data

    def _downloaded(self, message: Message) -> Message:
        try:
            response = httpx.get(message.text, timeout=IMAGE_SECONDS, follow_redirects=True)
            response.raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # ValueError: a host that IDNA has no name for
            self._found("image-not-downloaded", f"{message.text} cannot be downloaded: the answer's text says so")
            return Message("text", {"text": f"Failed to download image: {message.text}: {error}"})
        by_name, header = mime_type_of(message.text), response.headers.get("content-type", "").partition(";")[0].strip()
        mime_type = header or UNKNOWN_MIME_TYPE if by_name == UNKNOWN_MIME_TYPE else by_name
        return _link(self._files.save(response.content, mime_type), message, is_image=True)


def _link(file: ToolFile, message: Message, *, is_image: bool) -> Message:
    link = file.link(message.meta, is_image=is_image)
    return Message(link["type"], link["message"], link["meta"])


def _decoded(message: Message) -> bytes:
    try:
        return base64.b64decode(message.body["blob"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise NodeFailedError("message-malformed", f"a {message.type} message is not base64: {error}") from error
