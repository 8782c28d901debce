"""Small HTTP servers on this machine, for as long as a test needs them, and the files that Dify names by address."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.host import Json


class Quiet(BaseHTTPRequestHandler):
    """Writes no line about a request."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - as the base class has it
        """Say nothing."""


class SignedFiles(Quiet):
    """Dify's files: an address answers as long as its signature is valid."""

    def do_GET(self) -> None:
        self.send_response(200 if "sign=valid" in self.path else 403)
        self.end_headers()


@contextmanager
def served(handler: type[BaseHTTPRequestHandler], host: str = "127.0.0.1") -> Iterator[str]:
    """Serve requests; gives the server's address."""
    with ThreadingHTTPServer((host, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


PNG = b"\x89PNG\r\n\x1a\n0000"
SIZES = {"/large.png": 2_400_000}


class FileServer(Quiet, BaseHTTPRequestHandler):
    """Serves a picture, something large, something that is gone, and something that never ends well."""

    def do_GET(self) -> None:
        name = self.path.partition("?")[0]
        self.send_response({"/moved.png": 302}.get(name, 404 if name == "/gone.png" else 200))
        if name == "/moved.png":
            self.send_header("Location", "/a.png")
        if name == "/short.png":
            self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"x" * SIZES.get(name, 0) or PNG)


def file(url: str, kind: str = "image", **more: Any) -> Json:  # noqa: ANN401 - passed on as it is
    """A picture that the user attached, as Dify hands it over."""
    name = url.rsplit("/", 1)[-1].partition("?")[0]
    return {
        "dify_model_identity": "__dify__file__",
        "url": url,
        "type": kind,
        "filename": name,
        "mime_type": "image/png",
        "extension": ".png",
        "size": 12,
        **more,
    }


MOST = 1_000_000


class Server(Quiet, BaseHTTPRequestHandler):
    """A file server, and a proxy for any other; `/to/ADDRESS` leads there."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        _, _, target = self.path.partition("/to/")
        self.send_response(302 if target else 200)
        if target:
            self.send_header("Location", target)
        if self.path.endswith("packed"):
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if not target:
            self.wfile.write(gzip.compress(bytes(50 * MOST)) if self.path.endswith("packed") else b"content")
