"""The engine's `File`s, made of devhost's files."""

from collections.abc import Mapping, Sequence

from graphon.file.enums import FileTransferMethod, FileType
from graphon.file.models import File
from graphon.variables.segments import ArrayFileSegment

from devhost.errors import HostError
from devhost.files.local_file import LocalFile
from devhost.files.server import FileServer
from devhost.node.messages.tool_files import ToolFile


def uploaded(file: LocalFile, server: FileServer) -> File:
    """A file that a person gives."""
    described = server.offer(file)
    return File(
        file_type=FileType(described["type"]),
        transfer_method=FileTransferMethod.LOCAL_FILE,
        related_id=server.id_of(described["url"]),
        filename=described["filename"],
        extension=described["extension"],
        mime_type=described["mime_type"],
        size=described["size"],
    )


def made_by_tool(file: ToolFile) -> File:
    return File(
        file_type=FileType(file.kind),
        transfer_method=FileTransferMethod.TOOL_FILE,
        related_id=file.id,
        filename=file.filename,
        extension=file.extension,
        mime_type=file.mime_type,
        size=file.size,
    )


def list_of(files: Sequence[File]) -> ArrayFileSegment:
    """A variable: without its type, the engine would not know an empty list as one of files."""
    return ArrayFileSegment(value=list(files))


def with_files(inputs: Mapping[str, object], server: FileServer | None) -> Mapping[str, object]:
    """The fields of a form, with the engine's files in the place of a person's."""
    return {name: _field(value, server) for name, value in inputs.items()}


def all_uploaded(files: Sequence[LocalFile], server: FileServer | None) -> ArrayFileSegment:
    if files and server is None:
        raise HostError("the flow was given files, and no file service was started")
    return list_of([] if server is None else [uploaded(file, server) for file in files])


def _field(value: object, server: FileServer | None) -> object:
    match value:
        case LocalFile():
            return all_uploaded([value], server).value[0]
        case [LocalFile(), *_]:
            return all_uploaded([file for file in value if isinstance(file, LocalFile)], server)
        case _:
            return value
