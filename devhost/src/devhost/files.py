"""Files that plugins download and upload over HTTP, as with Dify's file service."""

import base64
import contextlib
import json
import os
import tempfile
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from devhost.errors import ParameterError, TraceError
from devhost.limits import HostLimits
from devhost.node.messages import AUDIO, IMAGE, VIDEO, ToolFileStore, file_type, mime_type_of, save_once
from devhost.plugin.casting import FILE_IDENTITY
from devhost.protocol.wire import JsonObject
from devhost.text import open_file

# Local files that a user gives to a question or a tool. They are checked as Dify checks uploads.


@dataclass(frozen=True)
class LocalFile:
    """A local file that a user sends."""

    path: Path
    size: int
    """The size in bytes."""

    @classmethod
    def read(cls, path: Path, limits: HostLimits) -> Self:
        try:
            with open_file(path) as file:
                read = cls(path.absolute(), file.seek(0, os.SEEK_END))
        except (OSError, ValueError) as error:  # ValueError: the path contains NUL
            reason = error.strerror if isinstance(error, OSError) else error
            raise ParameterError(f"the file {str(path)!r} cannot be read: {reason}") from error
        sizes = {IMAGE: limits.image_bytes, AUDIO: limits.audio_bytes, VIDEO: limits.video_bytes}
        most = sizes.get(read.kind, limits.document_bytes)
        if read.size > most:
            name = "document"
            if read.kind in sizes:
                name = read.kind
            sentence = f"{read.path} has {read.size:,} bytes; Dify takes at most {most:,} for this type of file"
            raise ParameterError(f"{sentence} (--limit {name}-bytes=NUMBER changes it)")
        return read

    def __str__(self) -> str:
        return self.path.name

    @property
    def kind(self) -> str:
        """The file type as Dify names it."""
        return file_type(self._extension, mime_type_of(self.path.name))

    def described(self, url: str) -> JsonObject:
        """Describe the file as in a plugin's parameters (dify-api, `File.to_plugin_parameter`)."""
        return {
            "dify_model_identity": FILE_IDENTITY,
            "mime_type": mime_type_of(self.path.name),
            "filename": self.path.name,
            "extension": self._extension,
            "size": self.size,
            "type": self.kind,
            "url": url,
        }

    @property
    def _extension(self) -> str:
        """The extension. Dify stores it in lower case without the dot, and adds a dot even if it is empty."""
        return f".{self.path.suffix.removeprefix('.').lower()}"


def local_files(paths: Sequence[Path], limits: HostLimits) -> tuple[LocalFile, ...]:
    """Read the files of one message. Raises ParameterError for files that Dify would refuse."""
    if len(paths) > limits.message_files:
        sentence = f"{len(paths)} files were given; Dify takes at most {limits.message_files} with a message"
        raise ParameterError(f"{sentence} (--limit message-files=NUMBER changes it)")
    return tuple(LocalFile.read(path, limits) for path in paths)


# The folder for the files of a run, in which a user can open them afterwards.

BESIDE_A_TRACE = ".files"
"""The suffix of the folder, which replaces the trace's own suffix."""
SENT = "sent"
"""The subfolder for copies of the files that were sent with questions."""


@contextmanager
def run_folder(name: str, trace_file: Path | None = None) -> Iterator[Path]:
    """Yield the folder for the files of a run: a folder beside the trace, or a temporary one.

    The folder beside the trace is created with its first file. It may exist from an earlier run with the same trace.
    A temporary folder is used without a trace, or if the trace is a device, and is removed if nothing was saved.
    """
    if trace_file is not None and (trace_file.is_file() or not trace_file.exists()):
        beside = trace_file.absolute().with_suffix(BESIDE_A_TRACE)
        if beside.exists() and not beside.is_dir():
            raise TraceError(f"{beside} is a file, but the files of the run go into a folder of that name: move it")
        yield beside
        return
    folder = Path(tempfile.mkdtemp(prefix=f"devhost-{name}-"))
    try:
        yield folder
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()


# Dify's file service for plugins. It serves local files and accepts uploads from plugins. It listens on this machine
# only. Each URL contains an id that cannot be guessed, and is valid until the server stops.

LOOPBACK = "127.0.0.1"
FILES = "/files/"
PREVIEW = "/file-preview"
UPLOAD = "/files/upload/for-plugin/"


class FileServer:
    """The server of the file service, as a context manager."""

    def __init__(self, store: ToolFileStore) -> None:
        """Save uploads to `store`."""
        self.store = store
        self._awaited: dict[str, tuple[str, str]] = {}
        self._offered: dict[str, Path] = {}
        self.copies: Path | None = None
        """The folder for a copy of each offered file; None for no copies."""

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer((LOOPBACK, 0), partial(_Handler, self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def offer(self, file: LocalFile) -> JsonObject:
        """Offer a file, and return it as Dify describes it to a plugin."""
        file_id = str(uuid.uuid4())
        if self.copies is not None:
            with contextlib.suppress(OSError):  # the run continues without a copy, as it does when the file is gone
                save_once(self.copies, file.path.name, file.path.read_bytes())
        self._offered[file_id] = file.path
        return file.described(self.url_of(file_id))

    def url_of(self, file_id: str) -> str:
        """Return the URL of an offered file."""
        return f"{self.url}{FILES}{file_id}{PREVIEW}"

    def id_of(self, url: str) -> str:
        return url.removeprefix(self.url).removeprefix(FILES).removesuffix(PREVIEW)

    def file_of(self, file_id: str) -> Path | None:
        return self._offered.get(file_id)

    def with_bytes(self, file: JsonObject) -> JsonObject:
        """Return a file as the node's memory sends it to models: with its bytes, and without its local URL.

        A file from another server, or one that is gone, is returned unchanged.
        """
        path = self.find(str(file.get("url")).removeprefix(self.url))
        with contextlib.suppress(OSError):
            if path is not None:
                return {**file, "url": "", "base64_data": base64.b64encode(path.read_bytes()).decode()}
        return file

    def find(self, path: str) -> Path | None:
        """Find the file for a URL's path: an offered file, or a file that a tool made."""
        bare = path.partition("?")[0]
        made = self.store.find(bare, {})
        if made is None:
            return self.file_of(self.id_of(bare))
        return made.path

    def upload_url(self, filename: str, mime_type: str) -> str:
        """Return the URL to which a plugin may upload this one file."""
        ticket = str(uuid.uuid4())
        self._awaited[ticket] = (filename, mime_type)
        return f"{self.url}{UPLOAD}{ticket}"

    def uploaded(self, path: str, body: bytes, content_type: str) -> JsonObject | None:
        """Save an upload and return Dify's description of the tool file, or None for a file that was not announced."""
        awaited = self._awaited.get(path.partition("?")[0].removeprefix(UPLOAD))
        part = _file_part(body, content_type)
        if awaited is None or part is None or awaited != part[:2]:
            return None
        filename, mime_type, data = part
        file = self.store.save(data, mime_type, filename)
        return {
            "id": file.id,
            "name": file.filename,
            "size": file.size,
            "extension": file.extension,
            "mime_type": file.mime_type,
            "preview_url": f"{self.url}{file.url}",
        }


def _file_part(body: bytes, content_type: str) -> tuple[str, str, bytes] | None:
    """Return the file name, MIME type and bytes of the form's field `file`."""
    from email import policy  # noqa: PLC0415 - slow to import, and few plugins upload
    from email.parser import BytesParser  # noqa: PLC0415 - as above

    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    for part in BytesParser(policy=policy.HTTP).parsebytes(head + body).iter_parts():
        if part.get_param("name", header="content-disposition") == "file":
            data = part.get_payload(decode=True)
            return part.get_filename() or "", part.get_content_type(), data if isinstance(data, bytes) else b""
    return None


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, files: FileServer, *connection: object) -> None:
        self._files = files
        super().__init__(*connection)  # type: ignore[arg-type] # as the server gives them

    def do_GET(self) -> None:
        file = self._files.find(self.path)
        if file is not None and file.is_file():  # it may have been removed after the run began
            self._say(HTTPStatus.OK, file.read_bytes(), mime_type_of(file.name))
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        file = self._files.uploaded(self.path, body, self.headers.get("Content-Type") or "")
        if file is None:
            self.send_error(HTTPStatus.FORBIDDEN)
        else:
            self._say(HTTPStatus.CREATED, json.dumps(file).encode(), "application/json")

    def _say(self, status: HTTPStatus, data: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing, because a terminal shows the run."""
