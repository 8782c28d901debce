"""The local way to run a plugin: JSON lines over its stdin and stdout. A line that is too long kills the plugin.

Everything that it writes to stdout or stderr is a sign of life.
"""

from functools import partial
from typing import IO

from devhost.process.transports.transport import Transport, TransportListener, deliver
from devhost.protocol.wire import JsonObject, encoded


class StdioTransport(Transport):
    awaited = "no heartbeat came"

    def start(self, listener: TransportListener, /) -> None:
        read = partial(self._read, listener=listener)
        self._program.lived = listener.lived
        self._program.start({"INSTALL_METHOD": "local"}, read, listener.closed, listener.noted)

    def send(self, envelope: JsonObject, /) -> None:
        self._program.write(encoded(envelope) + b"\n")

    def hang_up(self, session_id: str, /) -> None:
        """The plugin is not told: the daemon only drops what still comes."""

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
