"""Dify's store of tool files, as a directory: bytes go in, a `/files/tools/<id>.<ext>` link and its meta come out."""

import mimetypes
import re
import shutil
import tempfile
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path

from devhost.protocol.wire import JsonObject

_LINK = re.compile(r"/files/tools/([0-9a-zA-Z-]+)")


@dataclass(frozen=True)
class ToolFile:
    id: str
    filename: str
    extension: str
    mime_type: str
    size: int
    path: Path

    @property
    def url(self) -> str:
        return f"/files/tools/{self.id}{self.extension}"

    @property
    def kind(self) -> str:
        """Dify's file type."""
        family = self.mime_type.partition("/")[0]
        return family if family in ("image", "audio", "video") else "document"

    def link(self, meta: JsonObject) -> JsonObject:
        """The message that replaces the file."""
        return {
            "type": "image_link" if "image" in self.mime_type else "binary_link",
            "message": {"text": self.url},
            "meta": {**meta, "tool_file_id": self.id, "mime_type": self.mime_type, "filename": self.filename},
        }


class ToolFileStore:
    """Files are in `directory`, or else in a temporary one that `remove` deletes. Thread-safe."""

    def __init__(self, directory: Path | None = None) -> None:
        self._temporary = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="devhost-files-"))
        self._files: dict[str, ToolFile] = {}
        self._adding = threading.Lock()

    def save(self, data: bytes, meta: JsonObject) -> ToolFile:
        mime_type = str(meta.get("mime_type") or "application/octet-stream")
        extension = mimetypes.guess_extension(mime_type) or ".bin"
        file_id = str(uuid.uuid4())
        path = self.directory / f"{file_id}{extension}"
        path.write_bytes(data)
        name = str(meta.get("filename") or path.name)
        file = ToolFile(file_id, name, extension, mime_type, len(data), path)
        with self._adding:
            self._files[file_id] = file
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
