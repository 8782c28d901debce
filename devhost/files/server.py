"""Dify's file service for plugins: it serves files of this machine, and takes those that plugins upload.

In: paths, and uploads. Out: files as Dify puts them into a plugin's parameters, and tool files. It listens on this
machine only, each URL has an id that cannot be guessed, and all end with the server.
"""

import base64
import contextlib
import json
import threading
import uuid
from email import policy
from email.parser import BytesParser
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from devhost.files.local_file import LocalFile
from devhost.node.messages.file_facts import mime_type_of
from devhost.node.messages.saved_files import save_once
from devhost.node.messages.tool_files import ToolFileStore
from devhost.protocol.wire import JsonObject

LOOPBACK = "127.0.0.1"
FILES = "/files/"
PREVIEW = "/file-preview"
UPLOAD = "/files/upload/for-plugin/"


class FileServer:
    """A context manager."""

    def __init__(self, store: ToolFileStore) -> None:
        """`store` gets the uploads."""
        self.store = store
        self._awaited: dict[str, tuple[str, str]] = {}
        self._offered: dict[str, Path] = {}
        self.copies: Path | None = None
        """The folder where a copy of each offered file stays, if there is one."""

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
        """The file as Dify describes it to a plugin."""
        file_id = str(uuid.uuid4())
        if self.copies is not None:
            with contextlib.suppress(OSError):  # the run goes on without a copy, as it does when the file is gone
                save_once(self.copies, file.path.name, file.path.read_bytes())
        self._offered[file_id] = file.path
        return file.described(self.url_of(file_id))

    def url_of(self, file_id: str) -> str:
        """Of a file that is offered."""
        return f"{self.url}{FILES}{file_id}{PREVIEW}"

    def id_of(self, url: str) -> str:
        return url.removeprefix(self.url).removeprefix(FILES).removesuffix(PREVIEW)

    def file_of(self, file_id: str) -> Path | None:
        return self._offered.get(file_id)

    def with_bytes(self, file: JsonObject) -> JsonObject:
        """As the node's memory sends it to models: with its bytes, and without a URL that only this machine reaches.

        A file of another server, or one that is gone, stays as it is.
        """
        path = self.find(str(file.get("url")).removeprefix(self.url))
        with contextlib.suppress(OSError):
            if path is not None:
                return {**file, "url": "", "base64_data": base64.b64encode(path.read_bytes()).decode()}
        return file

    def find(self, path: str) -> Path | None:
        """The file of a URL's path: one that is offered, or one that a tool made."""
        bare = path.partition("?")[0]
        made = self.store.find(bare, {})
        return self.file_of(self.id_of(bare)) if made is None else made.path

    def upload_url(self, filename: str, mime_type: str) -> str:
        """Where a plugin may send this one file."""
        ticket = str(uuid.uuid4())
        self._awaited[ticket] = (filename, mime_type)
        return f"{self.url}{UPLOAD}{ticket}"

    def uploaded(self, path: str, body: bytes, content_type: str) -> JsonObject | None:
        """What Dify says of the new tool file; None for a file that was not announced."""
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
            "source_url": "",
            "original_url": None,
            "user_id": "devhost",
            "tenant_id": "devhost",
            "conversation_id": None,
            "file_key": f"tools/devhost/{file.id}{file.extension}",
        }


def _file_part(body: bytes, content_type: str) -> tuple[str, str, bytes] | None:
    """The form's field `file`: its name, MIME type and bytes."""
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
        try:
            data = None if file is None else file.read_bytes()
        except OSError:  # it was removed after the run began
            data = None
        if file is None or data is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self._say(HTTPStatus.OK, data, mime_type_of(file.name))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        file = self._files.uploaded(self.path, body, self.headers.get("Content-Type") or "")
        if file is None:
            refusal = {"code": "forbidden", "message": "Invalid request.", "status": 403}
            self._say(HTTPStatus.FORBIDDEN, json.dumps(refusal).encode())
        else:
            self._say(HTTPStatus.CREATED, json.dumps(file).encode())

    def _say(self, status: HTTPStatus, data: bytes, content_type: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing: a terminal shows the run."""
