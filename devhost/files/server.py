"""Serves files of this machine to plugins, as Dify's file service serves uploads.

In: paths. Out: files as Dify puts them into a plugin's parameters; their URLs answer while the server runs. It listens
on this machine only, and each URL has an id that cannot be guessed.
"""

import threading
import uuid
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from devhost.errors import ParameterError
from devhost.files.facts import file_type, mime_type_of
from devhost.protocol.wire import JsonObject

LOOPBACK = "127.0.0.1"
FILES = "/files/"
PREVIEW = "/file-preview"


class FileServer:
    """A context manager."""

    def __init__(self) -> None:
        self._offered: dict[str, Path] = {}
        self._server = ThreadingHTTPServer((LOOPBACK, 0), partial(_Handler, self))
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def offer(self, path: Path) -> JsonObject:
        """The file as Dify describes it to a plugin; ParameterError if there is none."""
        if not path.is_file():
            raise ParameterError(f"there is no file {path}")
        file_id = str(uuid.uuid4())
        self._offered[file_id] = path
        mime_type = mime_type_of(path.name)
        return {
            "dify_model_identity": "__dify__file__",
            "mime_type": mime_type,
            "filename": path.name,
            "extension": path.suffix,
            "size": path.stat().st_size,
            "type": file_type(path.suffix, mime_type),
            "url": f"{self.url}{FILES}{file_id}{PREVIEW}",
        }

    def find(self, path: str) -> Path | None:
        """The file of a URL's path."""
        return self._offered.get(path.partition("?")[0].removeprefix(FILES).removesuffix(PREVIEW))


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, files: FileServer, *connection: object) -> None:
        self._files = files
        super().__init__(*connection)  # type: ignore[arg-type] # as the server gives them

    def do_GET(self) -> None:
        file = self._files.find(self.path)
        if file is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        data = file.read_bytes()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", mime_type_of(file.name))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing: a terminal shows the run."""
