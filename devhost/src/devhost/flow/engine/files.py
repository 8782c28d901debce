"""Implements the engine's file interfaces for the files of users and the files of tools."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, override

from graphon.file.enums import FileTransferMethod, FileType
from graphon.file.models import File
from graphon.file.protocols import WorkflowFileRuntimeProtocol
from graphon.nodes.protocols import FileManagerProtocol, FileReferenceFactoryProtocol, ToolFileManagerProtocol
from graphon.variables.segments import ArrayFileSegment

from devhost.errors import HostError
from devhost.files import FileServer, LocalFile
from devhost.host.host import ToolHost
from devhost.node.messages import ToolFile
from devhost.protocol.wire import JsonObject


class FileService(
    WorkflowFileRuntimeProtocol, ToolFileManagerProtocol, FileManagerProtocol, FileReferenceFactoryProtocol
):
    """Implements all of the engine's interfaces for files.

    A plugin gets a file's address at the host's file service, as from Dify. A person gets the file's path on this
    machine, because the service ends with the flow.
    """

    def __init__(self, host: ToolHost | None) -> None:
        self._host = host

    @property
    def _server(self) -> FileServer:
        if self._host is None:
            raise HostError("the flow has files, and no file service was started")
        return self._host.server

    def uploaded(self, files: Sequence[LocalFile]) -> ArrayFileSegment:
        """Converts a user's files to the value of a variable. An empty list needs a type, too."""
        return ArrayFileSegment(value=[self._uploaded(file) for file in files])

    def field(self, value: Any) -> object:  # noqa: ANN401 - any value of a field
        """Replaces a user's files in the value of a field with the engine's file objects."""
        match value:
            case LocalFile():
                return self._uploaded(value)
            case [LocalFile(), *_]:
                return self.uploaded(value)
            case _:
                return value

    def _uploaded(self, file: LocalFile) -> File:
        described = self._server.offer(file)
        return _file(described, FileTransferMethod.LOCAL_FILE, self._server.id_of(described["url"]))

    def made(self, file_id: str) -> File:
        """Returns a file that a tool made."""
        return _file(self._tool_file(file_id).output(), FileTransferMethod.TOOL_FILE, file_id)

    def _tool_file(self, file_id: str) -> ToolFile:
        found = self._server.store.find("", {"tool_file_id": file_id})
        if found is None:
            raise HostError(f"tool file {file_id} not found")
        return found

    @property
    @override
    def multimodal_send_format(self) -> str:
        """Models get the bytes of a file, because they cannot reach an address on this machine."""
        return "base64"

    @override
    def load_file_bytes(self, *, file: File) -> bytes:
        return self._path(file).read_bytes()

    @override
    def resolve_file_url(self, *, file: File, for_external: bool = True) -> str | None:
        if for_external:
            return self._path(file).as_uri()
        file_id = str(file.related_id)
        if file.transfer_method == FileTransferMethod.TOOL_FILE:
            return f"{self._server.url}{self._tool_file(file_id).url}"
        return self._server.url_of(file_id)

    @override
    def download(self, f: File, /) -> bytes:
        return self.load_file_bytes(file=f)

    @override
    def create_file_by_raw(self, *, file_binary: bytes, mimetype: str, filename: str | None = None) -> ToolFile:
        return self._server.store.save(file_binary, mimetype, filename)

    @override
    def get_file_generator_by_tool_file_id(self, tool_file_id: str) -> tuple[None, File]:
        return None, self.made(tool_file_id)

    @override
    def build_from_mapping(self, *, mapping: Mapping[str, Any]) -> File:
        return self.made(str(mapping["tool_file_id"]))

    def _path(self, file: File) -> Path:
        file_id = str(file.related_id)
        if file.transfer_method == FileTransferMethod.TOOL_FILE:
            return self._tool_file(file_id).path
        path = self._server.file_of(file_id)
        if path is None:
            raise HostError(f"file {file.filename} was not given to this flow")
        return path

    @override
    def http_get(self, url: str, *, follow_redirects: bool = True) -> NoReturn:
        raise HostError(f"devhost fetches no file from another server: {url}")

    def _never(self, *_: object, **__: object) -> NoReturn:
        """Raises HostError. Only Dify's own code calls these methods of the interface; the engine does not."""
        raise HostError("devhost has no such part of Dify's file storage")

    storage_load = _never
    resolve_upload_file_url = _never
    resolve_tool_file_url = _never
    verify_preview_signature = _never


def _file(described: JsonObject, method: FileTransferMethod, file_id: str) -> File:
    facts = {name: described[name] for name in ("filename", "extension", "mime_type", "size")}
    return File(file_type=FileType(described["type"]), transfer_method=method, related_id=file_id, **facts)
