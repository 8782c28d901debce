"""The transports that exchange lines of JSON with a plugin: over stdin and stdout, and over TCP."""

import contextlib
import secrets
import socket
import sys
import threading
from typing import IO

from devhost.errors import PluginLostError, WireError
from devhost.process.program import LOOPBACK, Listener, Transport
from devhost.protocol.wire import JsonObject, encoded
from devhost.text import json_or


class StdioTransport(Transport):
    """The transport of a local plugin. A plugin that writes too long a line is killed."""

    awaited = "no heartbeat came"

    def start(self, listener: Listener, /) -> None:
        # Writing has its own lock, which no reader needs: a write blocks while the pipe is full, and the plugin empties
        # the pipe only while its output is being read.
        self._writing = threading.Lock()
        self._run(listener, {"INSTALL_METHOD": "local"})

    def send(self, envelope: JsonObject, /) -> None:
        stdin = self.process.stdin
        assert stdin is not None  # noqa: S101 - Popen was given PIPE
        try:
            with self._writing:
                stdin.write(encoded(envelope) + b"\n")
                stdin.flush()
        except (OSError, ValueError) as error:  # the pipe is broken, or stop() has closed it
            raise PluginLostError(self.killed_because or "the plugin no longer reads its stdin") from error

    def _read_stdout(self, stdout: IO[bytes]) -> None:
        try:
            self._read_messages(stdout, self.limits.line_bytes)
        except WireError as error:
            self.kill(f"the plugin wrote {error}: the daemon kills it and all its sessions for that")


class TcpTransport(Transport):
    """The transport of remote debugging. The plugin connects to devhost's port and sends its key and its declaration.

    Lines as over stdio follow, of any length. devhost ignores the sent declaration and uses the plugin's files;
    `devhost check` reports what the daemon would refuse in them.
    """

    awaited = "it did not register"

    def start(self, listener: Listener, /) -> None:
        self._key = secrets.token_urlsafe(24)
        self._line: socket.socket | None = None
        self._writing = threading.Lock()
        self._port = socket.create_server((LOOPBACK, 0))
        address = f"{LOOPBACK}:{self._port.getsockname()[1]}"
        where = {"REMOTE_INSTALL_URL": address, "REMOTE_INSTALL_KEY": self._key}
        self._run(listener, {"INSTALL_METHOD": "remote", **where})
        threading.Thread(target=self._serve, daemon=True).start()

    def send(self, envelope: JsonObject, /) -> None:
        try:
            if self._line is None:
                raise ConnectionError
            with self._writing:
                self._line.sendall(encoded(envelope) + b"\n")
        except OSError as error:
            raise PluginLostError(self.killed_because or "the plugin has closed its connection") from error

    def stop(self) -> None:
        super().stop()
        for each in filter(None, [self._port, self._line]):  # close alone would not wake the waiting thread
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _serve(self) -> None:
        reason = "the plugin closed its connection"
        with contextlib.suppress(OSError):  # stop() closes the port; a reset connection has ended, too
            self._line, _ = self._port.accept()
            self._line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # messages are small and each is awaited
            with self._line.makefile("rb") as lines:
                if self._registers(lines):
                    self._listener.served()
                    self._read_messages(lines, sys.maxsize)
                else:
                    reason = "the daemon refuses to register it: its first line does not have the REMOTE_INSTALL_KEY"
                    self._line.sendall(b"handshake failed, invalid key\n")
        self._kill_unless_it_exits(reason)

    def _registers(self, lines: IO[bytes]) -> bool:
        """Returns whether the plugin's first line has the key and its declaration is complete."""
        said = filter(None, (json_or(line, None) for line in lines))
        match next(said, None):
            case {"type": "handshake", "data": {"key": self._key}}:
                return any(isinstance(each, dict) and each.get("type") == "end" for each in said)
        return False
