"""The serverless way to run a plugin: plugin and host are both HTTP servers.

`POST /invoke` with a request answers with the session's messages, one a line, until the session ends; the plugin's
backwards calls arrive at `Transactions`.
"""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Mapping
from typing import IO

from devhost.errors import HostError, WireError
from devhost.limits import HostLimits
from devhost.process.transports.lines import read_lines
from devhost.process.transports.program import LOOPBACK, PluginProgram
from devhost.process.transports.reserved_port import ReservedPort
from devhost.process.transports.transactions import Transactions
from devhost.process.transports.transport import Transport, TransportListener, deliver
from devhost.protocol.wire import JsonObject, encoded

HEALTH_PAUSE = 0.02
LAST_MOMENTS = 1.0
"""Seconds in which a process that has just dropped its connections is seen to be gone."""


class HttpTransport(Transport):
    awaited = "its /health did not answer"

    def __init__(self, program: PluginProgram, limits: HostLimits) -> None:
        super().__init__(program, limits)
        self._port = ReservedPort()
        self._calls: dict[str, http.client.HTTPConnection] = {}
        self._calling = threading.Lock()
        self._stopped = threading.Event()

    def start(self, listener: TransportListener, /) -> None:
        self._listener = listener
        self._transactions = Transactions(self._limits, listener.received, listener.noted)
        try:
            self._program.start(self._environment(), self._note, listener.closed, listener.noted)
        except HostError:
            self._port.release()
            self._transactions.stop()
            raise
        self._transactions.start()
        threading.Thread(target=self._await_health, daemon=True).start()

    def send(self, envelope: JsonObject, /) -> None:
        if envelope["event"] != "request":
            self._transactions.answer(envelope)
            return
        session_id = envelope["session_id"]
        body = encoded(envelope)
        if len(body) > self._limits.serverless_request_bytes:
            limit = self._limits.serverless_request_bytes
            self._fail(session_id, f"a serverless plugin takes requests of {limit:,} bytes, not of {len(body):,}")
            return
        call = http.client.HTTPConnection(LOOPBACK, self._port.number)
        with self._calling:
            self._calls[session_id] = call
        self._transactions.expect(session_id)
        action = envelope["data"]["action"]
        threading.Thread(target=self._invoke, args=(session_id, action, body, call), daemon=True).start()

    def hang_up(self, session_id: str, /) -> None:
        """Ends the stream and the session's open calls; the plugin itself goes on."""
        self._transactions.hang_up(session_id)
        with self._calling:
            call = self._calls.pop(session_id, None)
            if call is not None and call.sock is not None:
                with contextlib.suppress(OSError):  # it may have ended a moment ago
                    call.sock.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        self._stopped.set()
        super().stop()
        self._port.release()
        self._transactions.stop()

    def _note(self, stdout: IO[bytes]) -> None:
        read_lines(stdout, self._listener.noted)
        self._stopped.set()

    def _environment(self) -> Mapping[str, str]:
        return {
            "INSTALL_METHOD": "serverless",
            "SERVERLESS_HOST": LOOPBACK,
            "SERVERLESS_PORT": str(self._port.number),
            "DIFY_PLUGIN_DAEMON_URL": self._transactions.url,
        }

    def _await_health(self) -> None:
        while not self._stopped.wait(HEALTH_PAUSE):
            probe = http.client.HTTPConnection(LOOPBACK, self._port.number, timeout=1)
            with contextlib.closing(probe), contextlib.suppress(OSError, http.client.HTTPException):
                probe.request("GET", "/health")
                if probe.getresponse().read() == b"OK":
                    self._listener.served()
                    return

    def _invoke(self, session_id: str, action: str, body: bytes, call: http.client.HTTPConnection) -> None:
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "Dify-Plugin-Session-ID": session_id,
        }
        cut = "Dify takes what came until then for the whole answer"
        try:
            call.request("POST", f"/invoke?action={action}", body, headers)
            with call.getresponse() as response:
                if response.status == http.HTTPStatus.OK:
                    if self._read(response):
                        return
                else:
                    cut = f"status {response.status}: {response.read(1000).decode(errors='replace')}"
        except WireError as error:
            self._fail(session_id, str(error))
            return
        except (OSError, http.client.HTTPException) as error:
            cut = f"{type(error).__name__}: {error}; {cut}"
        finally:
            with self._calling:
                hung_up = self._calls.pop(session_id, None) is None
            call.close()
        if not hung_up and not self._program.has_exited(LAST_MOMENTS):
            self._fail(session_id, f"the plugin's response stopped before its end message; {cut}")

    def _read(self, response: http.client.HTTPResponse) -> bool:
        """Whether the session ended; WireError for a line that the daemon does not read."""
        limit = self._limits.line_bytes
        while line := response.readline(limit):
            if len(line.rstrip(b"\n")) >= limit:  # of a chunked response, readline may give more than it is asked for
                raise WireError(f"bufio.Scanner: token too long: a line of the response has more than {limit:,} bytes")
            deliver(line, self._listener)
            match json.loads(line or "null") if b'"end"' in line else None:
                case {"event": "session", "data": {"type": "end"}}:
                    return True
        return False

    def _fail(self, session_id: str, message: str) -> None:
        """Replace the plugin's answer by an error, as the daemon does."""
        error = {"error_type": "PluginDaemonInnerError", "message": message, "args": {}}
        session = {"session_id": session_id, "data": {"type": "error", "data": error}}
        self._listener.received({"event": "session", **session})
