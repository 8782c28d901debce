"""The backwards calls of a serverless plugin: each is an HTTP request to the host, and its answer a stream of lines.

In: `POST /backwards-invocation/transaction`, handed on as the session message it carries. Out: the answer's events as
they are given to `answer`, and a blank line now and then while there are none.
"""

import json
import queue
import threading
from collections.abc import Callable, Generator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from devhost.errors import PluginLostError, WireError
from devhost.limits import HostLimits
from devhost.transport import LOOPBACK
from devhost.wire import Invoked, JsonObject, encoded, read_session_event

PATH = "/backwards-invocation/transaction"


class _Transaction:
    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.events: queue.SimpleQueue[JsonObject | None] = queue.SimpleQueue()
        """None: nobody will say more."""


class Transactions:
    def __init__(self, limits: HostLimits, received: Callable[[JsonObject], None]) -> None:
        self.limits = limits
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
        """From now on the session may call; calls of any other are refused."""
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
        """The answer's lines; LookupError when nobody listens to the session (any more)."""
        transaction = _Transaction(message["session_id"])
        with self._changing:
            if transaction.session_id not in self._sessions:
                raise LookupError(f"session {transaction.session_id} not found")
            self._open[request_id] = transaction
        return self._lines(message, request_id, transaction)

    def _lines(self, message: JsonObject, request_id: str, transaction: _Transaction) -> Generator[bytes]:
        try:
            self._received(message)
            while True:
                try:
                    event = transaction.events.get(timeout=self.limits.transaction_heartbeat_seconds)
                except queue.Empty:
                    yield b"\n"
                    continue
                if event is None:
                    raise ConnectionAbortedError("the session has ended")
                yield encoded(event) + b"\n\n"
                if event["data"]["event"] != "response":
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
        if len(body) > transactions.limits.transaction_bytes:
            limit = transactions.limits.transaction_bytes
            self._refuse(HTTPStatus.BAD_REQUEST, f"a transaction may have {limit:,} bytes, not {len(body):,}")
            return
        try:
            message, request_id = _read_call(body, self.headers.get("Dify-Plugin-Session-ID"))
            lines = transactions.serve(message, request_id)
        except (WireError, LookupError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        self._stream(lines)

    def log_message(self, *_: object) -> None:
        """A request is no news: the plugin's calls are shown as what they are."""

    def _stream(self, lines: Generator[bytes]) -> None:
        """In chunks, so that an answer that is cut off is no complete one."""
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
        """As plain text, which the SDK reports as a response that it cannot parse: it does not look at the status."""
        text = reason.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)


def _read_call(body: bytes, session_header: str | None) -> tuple[JsonObject, str]:
    """The session message and the id of the call in it."""
    try:
        message = json.loads(body)
    except ValueError as error:
        raise WireError(f"the transaction is no JSON: {error}") from error
    match message:
        case {"event": "session", "session_id": str(session_id), "data": data} if session_id == session_header:
            event = read_session_event(data)
            if isinstance(event, Invoked):
                return message, event.request_id
    raise WireError("the transaction is no backwards call of the session in its header")
