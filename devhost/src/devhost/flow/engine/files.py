"""Files on the engine: those of a person and those of tools, behind the engine's own file interfaces."""

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
from devhost.node.messages import ToolFile
from devhost.protocol.wire import JsonObject

NO_SERVICE = "the flow has files, and no file service was started"


def uploaded(file: LocalFile, server: FileServer) -> File:
    """A file that a person gives."""
    described = server.offer(file)
    return _file(described, FileTransferMethod.LOCAL_FILE, server.id_of(described["url"]))


def made_by_tool(file: ToolFile) -> File:
    return _file(file.output(), FileTransferMethod.TOOL_FILE, file.id)


def _file(described: JsonObject, method: FileTransferMethod, file_id: str) -> File:
    facts = {name: described[name] for name in ("filename", "extension", "mime_type", "size")}
    return File(file_type=FileType(described["type"]), transfer_method=method, related_id=file_id, **facts)


def list_of(files: Sequence[File]) -> ArrayFileSegment:
    """A variable: without its type, the engine would not know an empty list as one of files."""
    return ArrayFileSegment(value=list(files))


def with_files(inputs: Mapping[str, object], server: FileServer | None) -> Mapping[str, object]:
    """The fields of a form, with the engine's files in the place of a person's."""
    return {name: _field(value, server) for name, value in inputs.items()}


def all_uploaded(files: Sequence[LocalFile], server: FileServer | None) -> ArrayFileSegment:
    if files and server is None:
        raise HostError(NO_SERVICE)
    return list_of([] if server is None else [uploaded(file, server) for file in files])


def _field(value: object, server: FileServer | None) -> object:
    match value:
        case LocalFile():
            return all_uploaded([value], server).value[0]
        case [LocalFile(), *_]:
            return all_uploaded([file for file in value if isinstance(file, LocalFile)], server)
        case _:
            return value


# Where the engine's files are: their bytes, and their addresses for plugins and for people.
#
# A plugin gets an address of the file service, as from Dify. A person gets the place on this machine, because the
# service ends with the flow.


class FileService(
    WorkflowFileRuntimeProtocol, ToolFileManagerProtocol, FileManagerProtocol, FileReferenceFactoryProtocol
):
    """All interfaces that the engine has for files."""

    def __init__(self, server: FileServer | None) -> None:
        self._server = server

    def tool_file(self, file_id: str) -> ToolFile:
        found = self.server.store.find("", {"tool_file_id": file_id})
        if found is None:
            raise HostError(f"tool file {file_id} not found")
        return found

    @property
    def server(self) -> FileServer:
        if self._server is None:
            raise HostError(NO_SERVICE)
        return self._server

    @property
    @override
    def multimodal_send_format(self) -> str:
        """Models get bytes: an address of this machine is of no use to them."""
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
            return f"{self.server.url}{self.tool_file(file_id).url}"
        return self.server.url_of(file_id)

    @override
    def download(self, f: File, /) -> bytes:
        return self.load_file_bytes(file=f)

    @override
    def create_file_by_raw(self, *, file_binary: bytes, mimetype: str, filename: str | None = None) -> ToolFile:
        return self.server.store.save(file_binary, mimetype, filename)

    @override
    def get_file_generator_by_tool_file_id(self, tool_file_id: str) -> tuple[None, File]:
        return None, made_by_tool(self.tool_file(tool_file_id))

    @override
    def build_from_mapping(self, *, mapping: Mapping[str, Any]) -> File:
        return made_by_tool(self.tool_file(str(mapping["tool_file_id"])))

    def _path(self, file: File) -> Path:
        file_id = str(file.related_id)
        if file.transfer_method == FileTransferMethod.TOOL_FILE:
            return self.tool_file(file_id).path
        path = self.server.file_of(file_id)
        if path is None:
            raise HostError(f"file {file.filename} was not given to this flow")
        return path

    @override
    def http_get(self, url: str, *, follow_redirects: bool = True) -> NoReturn:
        raise HostError(f"devhost fetches no file from another server: {url}")

    def _never(self, *_: object, **__: object) -> NoReturn:
        """The engine asks for none of these, which its interface has for Dify's own code."""
        raise HostError("devhost has no such part of Dify's file storage")

    storage_load = _never
    resolve_upload_file_url = _never
    resolve_tool_file_url = _never
    verify_preview_signature = _never
