"""The serverless way to run a plugin: plugin and host are both HTTP servers."""

import contextlib
import http.client
import json
import queue
import socket
import threading
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO

from devhost.errors import HostError, PluginLostError, WireError
from devhost.limits import HostLimits
from devhost.process.transports.transport import (
    LOOPBACK,
    PluginProgram,
    ReservedPort,
    Transport,
    TransportListener,
    deliver,
    read_lines,
)
from devhost.protocol.wire import Invoked, JsonObject, encoded, read_session_event

# The backwards calls of a serverless plugin: each is an HTTP request to the host, and its answer a stream of lines. A
# request that is too long is cut off by the daemon and never understood: its call hangs.

PATH = "/backwards-invocation/transaction"


class _Transaction:
    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.events: queue.SimpleQueue[JsonObject | None] = queue.SimpleQueue()
        """None: nothing more will come."""


class Transactions:
    def __init__(
        self, limits: HostLimits, received: Callable[[JsonObject], None], noted: Callable[[str], None]
    ) -> None:
        """`noted` gets a sentence for each call that hangs."""
        self.limits = limits
        self._noted = noted
        self._received = received
        self._sessions: set[str] = set()
        self._open: dict[str, _Transaction] = {}
        self._changing = threading.Lock()
        self._server = _Server((LOOPBACK, 0), _Handler)
        self._server.transactions = self
        self._serving = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._server.server_port}"

    def start(self) -> None:
        self._serving.start()

    def stop(self) -> None:
        with self._changing:
            sessions = list(self._sessions)
        for session_id in sessions:
            self.hang_up(session_id)
        if self._serving.is_alive():
            self._server.shutdown()
            self._serving.join()
        self._server.server_close()

    def expect(self, session_id: str) -> None:
        """Accept calls of this session from now on; calls of unknown sessions are refused."""
        with self._changing:
            self._sessions.add(session_id)

    def hang_up(self, session_id: str) -> None:
        with self._changing:
            self._sessions.discard(session_id)
            waiting = [each for each in self._open.values() if each.session_id == session_id]
        for transaction in waiting:
            transaction.events.put(None)

    def answer(self, envelope: JsonObject) -> None:
        with self._changing:
            transaction = self._open.get(envelope["data"]["backwards_request_id"])
        if transaction is None:
            raise PluginLostError("the plugin no longer waits for this answer")
        transaction.events.put(envelope)

    def serve(self, message: JsonObject, request_id: str) -> Generator[bytes]:
        """The answer's lines; LookupError when the session is not known (any more)."""
        transaction = self._opened(message["session_id"], request_id)
        return self._lines(partial(self._received, message), request_id, transaction)

    def hang(self, session_id: str, size: int) -> Generator[bytes]:
        """Blank lines only, for a request of too many bytes; LookupError as above."""
        request_id = f"cut off {uuid.uuid4().hex}"
        transaction = self._opened(session_id, request_id)
        most = self.limits.transaction_bytes
        sentence = f"a backwards call of {size:,} bytes hangs: the daemon cuts it off at {most:,} and never answers it"
        return self._lines(partial(self._noted, sentence), request_id, transaction)

    def _opened(self, session_id: str, request_id: str) -> _Transaction:
        transaction = _Transaction(session_id)
        with self._changing:
            if session_id not in self._sessions:
                raise LookupError("session not found")
            self._open[request_id] = transaction
        return transaction

    def _lines(self, begin: Callable[[], None], request_id: str, transaction: _Transaction) -> Generator[bytes]:
        """Ends with the answer; when the time is up, without its end event."""
        deadline = time.monotonic() + self.limits.transaction_seconds
        try:
            begin()
            while (left := deadline - time.monotonic()) > 0:
                try:
                    event = transaction.events.get(timeout=min(left, self.limits.transaction_heartbeat_seconds))
                except queue.Empty:
                    yield b"\n"
                    continue
                if event is None:
                    raise ConnectionAbortedError("the session has ended")
                yield encoded(event) + b"\n\n"
                if event["data"]["event"] == "end":
                    return
        finally:
            with self._changing:
                del self._open[request_id]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    transactions: Transactions


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        transactions = self.server.transactions
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.close_connection = True
        if self.path != PATH:
            self._refuse(HTTPStatus.NOT_FOUND, f"there is only {PATH}")
            return
        session_id = self.headers.get("Dify-Plugin-Session-ID")
        try:
            if len(body) > transactions.limits.transaction_bytes:
                lines = transactions.hang(session_id or "", len(body))
            else:
                lines = transactions.serve(*_read_call(body, session_id))
        except (WireError, LookupError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        self._stream(lines)

    def log_message(self, *_: object) -> None:
        """Requests are not logged: the plugin's calls are shown as calls."""

    def _stream(self, lines: Generator[bytes]) -> None:
        """In chunks, so that the plugin can tell an answer that is cut off from a complete one."""
        try:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.send_header("Connection", "close")
            self.end_headers()
            for line in lines:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:  # one of the two has hung up
            return
        finally:
            lines.close()

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        """JSON without a session_id, on which the SDK's reading breaks: it does not look at the status."""
        text = json.dumps({"error": reason}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)


def _read_call(body: bytes, session_header: str | None) -> tuple[JsonObject, str]:
    """The session message and the id of the call in it."""
    try:
        message = json.loads(body)
    except ValueError as error:
        raise WireError(f"the transaction is not valid JSON: {error}") from error
    match message:
        case {"event": "session", "session_id": str(session_id), "data": data} if session_id == session_header:
            event = read_session_event(data)
            if isinstance(event, Invoked):
                return message, event.request_id
    raise WireError("the transaction is not a backwards call of the session in its header")


# The serverless way to run a plugin: plugin and host are both HTTP servers. `POST /invoke` with a request answers with
# the session's messages, one a line, until the session ends; the plugin's backwards calls arrive at `Transactions`.

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
