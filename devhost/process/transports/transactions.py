"""The backwards calls of a serverless plugin: each is an HTTP request to the host, and its answer a stream of lines.

In: `POST /backwards-invocation/transaction`, handed on as the session message it carries. Out: the answer's events as
they are given to `answer`, and a blank line now and then while there are none. A request that is too long is cut off
by the daemon and never understood: its call hangs.
"""

import json
import queue
import threading
import time
import uuid
from collections.abc import Callable, Generator
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from devhost.errors import PluginLostError, WireError
from devhost.limits import HostLimits
from devhost.process.transports.program import LOOPBACK
from devhost.protocol.wire import Invoked, JsonObject, encoded, read_session_event

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
