"""The local and the remote-debugging way to run a plugin: JSON lines over its stdin and stdout, or over TCP."""

import contextlib
import json
import secrets
import socket
import threading
import time
from functools import partial
from typing import IO, TYPE_CHECKING

from devhost.errors import HostError, PluginLostError, RegistrationError
from devhost.limits import HostLimits
from devhost.process.transports.transport import (
    LOOPBACK,
    PluginProgram,
    Transport,
    TransportListener,
    deliver,
    read_lines,
)
from devhost.protocol.wire import JsonObject, encoded

if TYPE_CHECKING:
    from devhost.plugin.registration import Registration

# The local way to run a plugin: JSON lines over its stdin and stdout. A line that is too long kills the plugin.
# Everything that it writes to stdout or stderr is a sign of life.


class StdioTransport(Transport):
    awaited = "no heartbeat came"

    def start(self, listener: TransportListener, /) -> None:
        read = partial(self._read, listener=listener)
        self._program.lived = listener.lived
        self._program.start({"INSTALL_METHOD": "local"}, read, listener.closed, listener.noted)

    def send(self, envelope: JsonObject, /) -> None:
        self._program.write(encoded(envelope) + b"\n")

    def _read(self, stdout: IO[bytes], listener: TransportListener) -> None:
        limit = self._limits.line_bytes
        while line := stdout.readline(limit):
            if len(line) == limit and not line.endswith(b"\n"):
                self.kill(
                    f"the plugin wrote a line of more than {limit:,} bytes to stdout: "
                    "the daemon kills it for that, and every session on it is lost"
                )
                break
            listener.lived()
            deliver(line, listener)


# The remote-debugging way to run a plugin: it connects to our port, sends its declaration, and keeps the connection.
# The key in its environment is the one it has to say first; then the same JSON lines as over stdio, of any length. A
# plugin that is refused reads one line before the connection ends; one that has lost its connection may connect again.

LAST_MOMENTS = 1.0
"""Seconds in which a process that has just dropped its connection is seen to be gone."""


class TcpTransport(Transport):
    awaited = "it did not register"

    def __init__(self, program: PluginProgram, limits: HostLimits) -> None:
        super().__init__(program, limits)
        self._key = secrets.token_urlsafe(24)
        self._line: socket.socket | None = None
        self._given_up: str | None = None
        """Why we ended the connection."""
        self._writing = threading.Lock()

    def start(self, listener: TransportListener, /) -> None:
        self._port = socket.create_server((LOOPBACK, 0))
        environment = {
            "INSTALL_METHOD": "remote",
            "REMOTE_INSTALL_URL": f"{LOOPBACK}:{self._port.getsockname()[1]}",
            "REMOTE_INSTALL_KEY": self._key,
        }
        try:
            read = partial(read_lines, printed=listener.noted)
            self._program.start(environment, read, listener.closed, listener.noted)
        except HostError:
            self._port.close()
            raise
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def send(self, envelope: JsonObject, /) -> None:
        line = self._line
        try:
            if line is None:
                raise ConnectionError
            with self._writing:
                line.sendall(encoded(envelope) + b"\n")
        except OSError as error:
            raise PluginLostError(self._program.killed_because or "the plugin has closed its connection") from error

    def give_up(self, reason: str) -> None:
        self._given_up = f"{reason}: the daemon closes its connection for that"
        if self._line is not None:
            _close(self._line)

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
        from devhost.plugin.registration import Registration  # noqa: PLC0415 - all the daemon's rules, for this way alone

        registration = Registration(self._key)
        with connection, connection.makefile("rb") as lines, contextlib.suppress(OSError):  # reset is ended, too
            try:
                _take_handshake(connection, lines, registration, self._limits.handshake_seconds)
            except RegistrationError as error:
                self._refuse(connection, error, listener, fatal=registration.knows_key)
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small messages, each waited for
            self._line, self._given_up = connection, None
            listener.served()
            for line in lines:
                deliver(line, listener)
        self._line = None
        reason = self._given_up or "the plugin closed its connection"
        if self._program.has_exited(min(LAST_MOMENTS, self._limits.stop_seconds)):
            listener.closed(self._program.reason_for(reason))
        else:
            listener.disconnected(reason)

    def _refuse(
        self, connection: socket.socket, error: RegistrationError, listener: TransportListener, *, fatal: bool
    ) -> None:
        """One line, then the end of the connection; a plugin whose key was right is not awaited again."""
        reason = f"the daemon refuses to register it: {error}"
        listener.noted(f"a connection was refused: {error}")
        if fatal:
            self._program.condemn(reason)
        with contextlib.suppress(OSError):  # it may have ended of itself
            connection.sendall(f"handshake failed, {error.line}\n".encode())
        if fatal:
            self.kill(reason)


def _take_handshake(connection: socket.socket, lines: IO[bytes], registration: "Registration", seconds: float) -> None:
    """RegistrationError for what the daemon does not register, and for a handshake that takes longer."""
    deadline = time.monotonic() + seconds
    late = f"the handshake was not complete within {seconds:g} seconds"
    while (left := deadline - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            line = lines.readline()
        except TimeoutError as error:
            raise RegistrationError(late) from error
        if not line:
            raise RegistrationError("the connection ended within the handshake")
        if not line.strip():
            continue
        try:
            is_over = registration.add(json.loads(line))
        except ValueError as error:
            raise RegistrationError(f"a line of the handshake is not valid JSON: {error}") from error
        if is_over:
            connection.settimeout(None)
            return
    raise RegistrationError(late)


def _close(line: socket.socket) -> None:
    """Shut down first: closing alone would not wake the thread that waits on it."""
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()
