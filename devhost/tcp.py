"""The remote-debugging way to run a plugin: it dials a port of ours, introduces itself, and stays on the line.

The key in its environment is the one it has to say first; then the same JSON lines as over stdio, of any length.
"""

import contextlib
import json
import secrets
import socket
import threading
from functools import partial
from typing import IO

from devhost.declaration import PluginDeclaration
from devhost.errors import HostError, PluginLostError, RegistrationError
from devhost.limits import HostLimits
from devhost.program import PluginProgram
from devhost.registration import Registration
from devhost.transport import LOOPBACK, Transport, TransportListener, deliver, note
from devhost.wire import JsonObject, encoded


class TcpTransport(Transport):
    awaited = "it did not register"

    def __init__(self, program: PluginProgram, limits: HostLimits) -> None:
        super().__init__(program, limits)
        self._key = secrets.token_urlsafe(24)
        self._line: socket.socket | None = None
        self._writing = threading.Lock()

    def start(self, listener: TransportListener, /) -> None:
        self._port = socket.create_server((LOOPBACK, 0))
        environment = {
            "INSTALL_METHOD": "remote",
            "REMOTE_INSTALL_URL": f"{LOOPBACK}:{self._port.getsockname()[1]}",
            "REMOTE_INSTALL_KEY": self._key,
        }
        try:
            self._program.start(environment, partial(note, listener=listener), listener.closed)
        except HostError:
            self._port.close()
            raise
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def send(self, envelope: JsonObject, /) -> None:
        assert self._line is not None  # noqa: S101 - nothing is sent before the plugin serves
        try:
            with self._writing:
                self._line.sendall(encoded(envelope) + b"\n")
        except OSError as error:
            raise PluginLostError(self._program.killed_because or "the plugin has closed its connection") from error

    def hang_up(self, session_id: str, /) -> None:
        """The plugin is not told: the daemon only drops what still comes."""

    def stop(self) -> None:
        super().stop()
        _close(self._port)
        if self._line is not None:
            _close(self._line)

    def _accept(self, listener: TransportListener) -> None:
        with contextlib.suppress(OSError):  # stop() closes the port
            while True:
                connection, _ = self._port.accept()
                threading.Thread(target=self._welcome, args=(connection, listener), daemon=True).start()

    def _welcome(self, connection: socket.socket, listener: TransportListener) -> None:
        registration = Registration(self._key, listener.declaration)
        with connection, connection.makefile("rb") as lines, contextlib.suppress(OSError):  # reset is ended, too
            try:
                listener.introduced(_introduction(lines, registration))
            except RegistrationError as error:
                if registration.knows_key:
                    self.kill(f"the daemon refuses to register it: {error}")
                listener.noted(f"a connection was refused: {error}")
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small messages, each waited for
            self._line = connection
            listener.served()
            for line in lines:
                deliver(line, listener)
        listener.closed(self._program.reason_for("the plugin closed its connection"))


def _introduction(lines: IO[bytes], registration: Registration) -> PluginDeclaration:
    for line in lines:
        if not line.strip():
            continue
        try:
            message = json.loads(line)
        except ValueError as error:
            raise RegistrationError(f"a line of the handshake is no JSON: {error}") from error
        declaration = registration.add(message)
        if declaration is not None:
            return declaration
    raise RegistrationError("the connection ended within the handshake")


def _close(line: socket.socket) -> None:
    """Shut down first: closing alone would not wake the thread that waits on it."""
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()
