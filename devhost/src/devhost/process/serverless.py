"""The serverless transport, in which plugin and host are both HTTP servers.

The response to `POST /invoke` contains the messages of a session, one on each line, until the session ends. Each
backwards call of the plugin is a request to the host, which responds with a stream of lines.
"""

import contextlib
import http.client
import json
import queue
import socket
import sys
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from devhost.errors import PluginLostError, WireError
from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.program import LOOPBACK, Listener, Transport
from devhost.protocol.wire import Invoked, JsonObject, encoded, read_session_event

LAST_MOMENTS = 1.0
"""Seconds to wait for the exit of a process that has just dropped its connections."""

type Answer = queue.SimpleQueue[JsonObject | None]


class HttpTransport(Transport):
    awaited = "its /health did not answer"

    def __init__(self, plugin: PluginDeclaration, python: str, limits: HostLimits) -> None:
        super().__init__(plugin, python, limits)
        # The SDK does not report its port, so devhost chooses one. On Linux a bound socket that does not listen
        # reserves the port: the kernel gives it to nobody who asks for a free one, but a server that allows the reuse
        # of addresses, as the SDK's does, can still listen on it. On other systems the port was free a moment ago.
        self._held = socket.socket()
        self._held.bind((LOOPBACK, 0))
        self._port: int = self._held.getsockname()[1]
        if sys.platform == "linux":
            self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        else:
            self._held.close()
        self._sessions: dict[str, http.client.HTTPConnection] = {}
        self._answers: dict[str, tuple[str, Answer]] = {}
        """The session and the answering events of each backwards call, by the id of the call.

        The event `None` marks the end of an answer that was cut off.
        """
        self._changing = threading.Lock()
        self._server = _Server((LOOPBACK, 0), _Handler)
        self._server.transport = self
        self._serving = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._stopped = threading.Event()

    def start(self, listener: Listener, /) -> None:
        self._run(
            listener,
            {
                "INSTALL_METHOD": "serverless",
                "SERVERLESS_HOST": LOOPBACK,
                "SERVERLESS_PORT": str(self._port),
                "DIFY_PLUGIN_DAEMON_URL": f"http://{LOOPBACK}:{self._server.server_port}",
            },
        )
        self._serving.start()
        threading.Thread(target=self._await_health, daemon=True).start()

    def send(self, envelope: JsonObject, /) -> None:
        if envelope["event"] == "request":
            self._invoke(envelope["session_id"], envelope["data"]["action"], encoded(envelope))
            return
        _, answer = self._answers.get(envelope["data"]["backwards_request_id"], (None, None))
        if answer is None:
            raise PluginLostError("the plugin no longer waits for this answer")
        answer.put(envelope)

    def hang_up(self, session_id: str, /) -> None:
        """Ends the stream and the open calls of the session. The plugin itself keeps running."""
        with self._changing:
            invocation = self._sessions.pop(session_id, None)
            for owner, answer in self._answers.values():
                if owner == session_id:
                    answer.put(None)
        if invocation is not None and invocation.sock is not None:
            with contextlib.suppress(OSError):  # it may have ended a moment ago
                invocation.sock.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        self._stopped.set()
        super().stop()
        for session_id in list(self._sessions):
            self.hang_up(session_id)
        if self._serving.is_alive():
            self._server.shutdown()
        self._held.close()
        self._server.server_close()

    @contextlib.contextmanager
    def called(self, session_id: str, body: bytes) -> Iterator[Answer]:
        """Accepts a backwards call and yields the queue for its answer. Raises `WireError` for a refused call."""
        most = self.limits.transaction_bytes
        if len(body) > most:
            self._fail(session_id, f"the daemon cuts a backwards call of {len(body):,} bytes off at {most:,}")
            raise WireError("the backwards call is too long")
        try:
            message = json.loads(body)
            call = read_session_event(message["data"])
        except (ValueError, LookupError, TypeError) as error:
            raise WireError(f"not a session message: {error}") from error
        if not isinstance(call, Invoked):
            raise WireError("not a backwards call")
        answer: Answer = queue.SimpleQueue()
        with self._changing:
            if session_id not in self._sessions:
                raise WireError("session not found")
            self._answers[call.request_id] = (session_id, answer)
        self._listener.received(message)
        try:
            yield answer
        finally:
            with self._changing:
                del self._answers[call.request_id]

    def _await_health(self) -> None:
        while not self._stopped.wait(0.02):
            probe = http.client.HTTPConnection(LOOPBACK, self._port, timeout=1)
            with contextlib.closing(probe), contextlib.suppress(OSError, http.client.HTTPException):
                probe.request("GET", "/health")
                if probe.getresponse().read() == b"OK":
                    self._listener.served()
                    return

    def _invoke(self, session_id: str, action: str, body: bytes) -> None:
        most = self.limits.serverless_request_bytes
        if len(body) > most:
            self._fail(session_id, f"a serverless plugin takes requests of {most:,} bytes, not of {len(body):,}")
            return
        invocation = http.client.HTTPConnection(LOOPBACK, self._port)
        with self._changing:
            self._sessions[session_id] = invocation
        threading.Thread(target=self._read, args=(session_id, action, body, invocation), daemon=True).start()

    def _read(self, session_id: str, action: str, body: bytes, invocation: http.client.HTTPConnection) -> None:
        """Reads the messages of one session until it ends. An interruption becomes the session's error."""
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "Dify-Plugin-Session-ID": session_id,
        }
        cut = "Dify takes what came until then for the whole answer"
        try:
            invocation.request("POST", f"/invoke?action={action}", body, headers)
            with invocation.getresponse() as response:
                if response.status == HTTPStatus.OK:
                    match self._read_messages(response, self.limits.line_bytes):
                        case {"data": {"type": "end"}}:
                            return
                else:
                    cut = f"status {response.status}: {response.read(1000).decode(errors='replace')}"
        except WireError as error:
            cut = str(error)
        except (OSError, http.client.HTTPException) as error:
            cut = f"{type(error).__name__}: {error}; {cut}"
        finally:
            with self._changing:
                is_over = self._sessions.pop(session_id, None) is None
            invocation.close()
        if not is_over and not self.has_exited(LAST_MOMENTS):
            self._fail(session_id, f"the plugin's response ended before its end message: {cut}")

    def _fail(self, session_id: str, message: str) -> None:
        """Replaces the plugin's answer with an error, as the daemon does."""
        error = {"error_type": "PluginDaemonInnerError", "message": message, "args": {}}
        session = {"session_id": session_id, "data": {"type": "error", "data": error}}
        self._listener.received({"event": "session", **session})


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    transport: HttpTransport


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.close_connection = True
        session_id = self.headers.get("Dify-Plugin-Session-ID", "")
        try:
            with self.server.transport.called(session_id, body) as answer, contextlib.suppress(OSError):
                self._stream(answer)  # the plugin may hang up
        except WireError as error:
            self.send_error(HTTPStatus.BAD_REQUEST, str(error))

    def log_message(self, *_: object) -> None:
        """Logs nothing, because the plugin's calls are shown elsewhere."""

    def _stream(self, answer: Answer) -> None:
        """Sends the answer in chunks, so that the plugin can distinguish a truncated answer from a complete one."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in iter(answer.get, None):
            line = encoded(event) + b"\n\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            if event["data"]["event"] == "end":
                self.wfile.write(b"0\r\n\r\n")
                return
