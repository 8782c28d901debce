"""The three ways to run a plugin: JSON objects go both ways, over stdin and stdout, over TCP, or (serverless.py) HTTP.

A transport knows nothing of sessions but their ids. All that comes out goes to the listener, from threads of its own.
When the plugin's process ends, which a lost connection ends too, the listener hears why.
"""

import contextlib
import secrets
import socket
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import IO, ClassVar, Literal, Protocol

from devhost.errors import PluginLostError, WireError
from devhost.limits import HostLimits
from devhost.process.program import LOOPBACK, PluginProgram, read_lines
from devhost.protocol.wire import JsonObject, encoded
from devhost.text import json_or

type TransportName = Literal["stdio", "tcp", "http"]


class TransportListener(Protocol):
    def served(self) -> None:
        """The plugin takes requests from now on. Over stdio its first heartbeat says so."""

    def received(self, message: JsonObject, /) -> None:
        """One object from the plugin."""

    def noted(self, line: str, /) -> None:
        """A line that is not a message, such as something that the plugin printed."""

    def closed(self, reason: str, /) -> None:
        """The plugin has ended."""


class Transport(ABC):
    awaited: ClassVar[str]
    """For error messages: what was missing when the plugin did not serve in time."""

    def __init__(self, program: PluginProgram, limits: HostLimits) -> None:
        self.program = program
        self._limits = limits

    @abstractmethod
    def start(self, listener: TransportListener, /) -> None:
        """Start the plugin and the transport; PluginStartError if the process cannot be started."""

    @abstractmethod
    def send(self, envelope: JsonObject, /) -> None:
        """A request, or an answer, told apart by their `event`; PluginLostError if the plugin has ended."""

    def hang_up(self, session_id: str, /) -> None:  # noqa: B027 - most transports do nothing
        """The session is over. The plugin is not told, unless it is serverless: what still comes is dropped."""

    def stop(self) -> None:
        """Ask the plugin to end, and return when its process is gone. It may not have started."""
        self.program.stop()

    def _run(self, listener: TransportListener, environment: Mapping[str, str]) -> None:
        """Where stdout has no messages, only what the plugin prints."""

        def print_stdout(stdout: IO[bytes]) -> None:
            for line in read_lines(stdout):
                listener.noted(line)

        self.program.start(environment, print_stdout, listener.closed, listener.noted)


LOST = (
    "devhost: the line above ends in a message of this plugin, which is lost: "
    "what was printed before it has no newline at its end"
)
_MESSAGE = '{"event"'
"""How a message of the SDK begins."""


def read_messages(stream: IO[bytes], longest: int, listener: TransportListener) -> JsonObject | None:
    """Hands on all lines of the stream, and returns its last message; WireError for a line of more bytes."""
    last = None
    while line := stream.readline(longest):
        if len(line.rstrip(b"\n")) >= longest:  # of a chunked response, readline may give more than it is asked for
            raise WireError(f"a line of more than {longest:,} bytes")
        last = deliver(line, listener) or last
    return last


def deliver(line: bytes, listener: TransportListener) -> JsonObject | None:
    """One line from the plugin: a message, which is returned, something printed, or nothing at all."""
    text = line.decode(errors="replace").rstrip()
    message = json_or(text, None)
    said: JsonObject = message if isinstance(message, dict) else {}
    if said.get("event") in ("heartbeat", "session"):
        listener.received(said)
        return said
    if text and (said.get("type"), type(said.get("plugins"))) != ("plugin", dict):  # how the SDK introduces a plugin
        listener.noted(text)
        start = text.rfind(_MESSAGE)
        if start > 0 and json_or(text[start:], None) is not None:
            listener.noted(LOST)
    return None


class StdioTransport(Transport):
    """The local way: JSON lines over its stdin and stdout. A line that is too long kills the plugin."""

    awaited = "no heartbeat came"

    def start(self, listener: TransportListener, /) -> None:
        def read(stdout: IO[bytes]) -> None:
            try:
                read_messages(stdout, self._limits.line_bytes, listener)
            except WireError as error:
                self.program.kill(f"the plugin wrote {error}: the daemon kills it and all its sessions for that")

        self.program.start({"INSTALL_METHOD": "local"}, read, listener.closed, listener.noted)

    def send(self, envelope: JsonObject, /) -> None:
        self.program.write(encoded(envelope) + b"\n")


class TcpTransport(Transport):
    """The remote-debugging way: the plugin connects to our port, and says its key and its declaration.

    Then come lines as over stdio, of any length. The declaration that counts is that of the plugin's files: `devhost
    check` says what the daemon would refuse of it.
    """

    awaited = "it did not register"

    def start(self, listener: TransportListener, /) -> None:
        self._key = secrets.token_urlsafe(24)
        self._line: socket.socket | None = None
        self._writing = threading.Lock()
        self._port = socket.create_server((LOOPBACK, 0))
        address = f"{LOOPBACK}:{self._port.getsockname()[1]}"
        self._run(
            listener, {"INSTALL_METHOD": "remote", "REMOTE_INSTALL_URL": address, "REMOTE_INSTALL_KEY": self._key}
        )
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def send(self, envelope: JsonObject, /) -> None:
        try:
            if self._line is None:
                raise ConnectionError
            with self._writing:
                self._line.sendall(encoded(envelope) + b"\n")
        except OSError as error:
            raise PluginLostError(self.program.killed_because or "the plugin has closed its connection") from error

    def stop(self) -> None:
        super().stop()
        for each in filter(None, [self._port, self._line]):  # closing alone would not wake the thread that waits
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _serve(self, listener: TransportListener) -> None:
        reason = "the plugin closed its connection"
        with contextlib.suppress(OSError):  # stop() closes the port, and a connection that is reset has ended, too
            self._line, _ = self._port.accept()
            self._line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small messages, each waited for
            with self._line.makefile("rb") as lines:
                if self._registers(lines):
                    listener.served()
                    read_messages(lines, sys.maxsize, listener)
                else:
                    reason = (
                        "the daemon refuses to register it: it did not begin with the REMOTE_INSTALL_KEY that it got"
                    )
                    self._line.sendall(b"handshake failed, invalid key\n")
        self.program.kill_unless_it_exits(reason)

    def _registers(self, lines: IO[bytes]) -> bool:
        """Whether its first line has the key, and its declaration an end."""
        said = filter(None, (json_or(line, None) for line in lines))
        match next(said, None):
            case {"type": "handshake", "data": {"key": self._key}}:
                return any(isinstance(each, dict) and each.get("type") == "end" for each in said)
        return False
