"""Dify's store of tool files, as a directory: bytes go in, a `/files/tools/<id>.<ext>` link and its meta come out."""

import re
import shutil
import tempfile
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path

from devhost.node.messages.file_facts import UNKNOWN_MIME_TYPE, extension_of, tool_file_type
from devhost.node.messages.saved_files import save_new
from devhost.protocol.wire import JsonObject

_LINK = re.compile(r"/files/tools/([0-9a-zA-Z-]+)")


@dataclass(frozen=True)
class ToolFile:
    id: str
    filename: str
    """As Dify's table of tool files has it: made up, or with a suffix from the MIME type, where the tool gave none."""
    mime_type: str
    size: int
    path: Path

    @property
    def extension(self) -> str:
        """By the MIME type, whatever the name says."""
        return extension_of(self.mime_type)

    @property
    def url(self) -> str:
        return f"/files/tools/{self.id}{self.extension}"

    @property
    def kind(self) -> str:
        """Dify's file type."""
        return tool_file_type(self.extension, self.mime_type)

    def output(self) -> JsonObject:
        """As it stands in the output `files` of a node, with the path on this machine."""
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

    def link(self, meta: JsonObject, *, is_image: bool) -> JsonObject:
        """The message that replaces the file: its meta is the tool's own and the id, so it may have no `filename`."""
        return {
            "type": "image_link" if is_image else "binary_link",
            "message": {"text": self.url},
            "meta": {**meta, "tool_file_id": self.id},
        }


class ToolFileStore:
    """Files are in `directory`, or else in a temporary one that `remove` deletes. Thread-safe."""

    def __init__(self, directory: Path | None = None) -> None:
        """`directory` is made with the first file."""
        self._temporary = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="devhost-files-"))
        self._files: dict[str, ToolFile] = {}
        self._adding = threading.Lock()

    def save(self, data: bytes, mime_type: str = UNKNOWN_MIME_TYPE, filename: str | None = None) -> ToolFile:
        """Without a `filename` Dify makes one up; one without a dot gets a suffix."""
        extension = extension_of(mime_type)
        name = f"{uuid.uuid4().hex}{extension}" if filename is None else filename
        if "." not in name:
            name += extension
        file = ToolFile(str(uuid.uuid4()), name, mime_type, len(data), save_new(self.directory, name, data))
        with self._adding:
            self._files[file.id] = file
        return file

    def find(self, url: str, meta: JsonObject) -> ToolFile | None:
        """The file of a link message: by the id in its meta, else by the one in its URL."""
        link = _LINK.search(url)
        file_id = meta.get("tool_file_id") or (link and link.group(1))
        return self._files.get(str(file_id))

    def all(self) -> list[ToolFile]:
        """In the order in which they came."""
        with self._adding:
            return list(self._files.values())

    def remove(self) -> None:
        if self._temporary:
            shutil.rmtree(self.directory)
