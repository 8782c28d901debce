"""Listens on 127.0.0.1 until Ctrl-C.

In: a console and a port (0 for any free one). Out: the address with the token, told once the socket is open.
"""

import secrets
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from devhost.console.server.app import application
from devhost.console.server.security import TOKEN
from devhost.console.views.console import Console
from devhost.errors import ConsoleError

LOCAL = "127.0.0.1"


class _Server(uvicorn.Server):
    """Tells the streams of events when it ends."""

    def __init__(self, config: uvicorn.Config, console: Console) -> None:
        super().__init__(config)
        self._console = console

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._console.ending.set()
        super().handle_exit(sig, frame)


def serve(console: Console, port: int, opened: Callable[[str], None]) -> None:
    """Ends at Ctrl-C, with all children; ConsoleError for a port that is taken."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOCAL, port))
            listener.listen()  # a browser that is told of the address may ask at once
        except OSError as error:
            raise ConsoleError(f"--port {port} cannot be opened on {LOCAL}: {error.strerror}") from error
        port = listener.getsockname()[1]
        token = secrets.token_urlsafe(24)
        config = uvicorn.Config(
            application(console, port, token),
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        opened(f"http://{LOCAL}:{port}/?{TOKEN}={token}")
        try:
            _Server(config, console).run(sockets=[listener])
        finally:
            console.children.end()
