"""The fake itself: a server on a loopback port of its own, one thread per connection."""

import contextlib
import json
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from fake_openai.rules import Refusal, check_chat, check_responses
from fake_openai.turns import Json, Turn, chat_chunks, response_events

KEY = "sk-proj-theFakeServersOwnKey0123456789"


def rate_limited() -> Refusal:
    said = "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 30000. Please try again in 1s."
    return Refusal(said, status=429, kind="tokens", code="rate_limit_exceeded")


def server_error() -> Refusal:
    said = "The server had an error while processing your request. Sorry about that!"
    return Refusal(said, status=500, kind="server_error")


def context_too_long() -> Refusal:
    said = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return Refusal(said, code="context_length_exceeded")


class FakeOpenAI:
    def __init__(self) -> None:
        self.requests: list[tuple[str, Json]] = []
        self.issued: list[list[Json]] = []
        """The output items of every response, in order."""
        self._steps: list[Turn | Refusal] = []
        self._answering = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def remaining(self) -> int:
        return len(self._steps)

    def will(self, *steps: Turn | Refusal) -> None:
        """What comes next, a step a request; a request that is refused for itself takes none."""
        self._steps += steps

    def forget(self) -> None:
        """As if newly started."""
        self.requests = []
        self.issued = []
        self._steps = []

    def answer(self, path: str, key: str, body: bytes) -> tuple[Turn, Iterator[object]]:
        """The turn and its events; Refusal when there are none."""
        with self._answering:
            request = json.loads(body)
            self.requests.append((path, request))
            if key != KEY:
                said = f"Incorrect API key provided: {key}. You can find your API key in your account."
                raise Refusal(said, status=401, code="invalid_api_key")
            if path == "/v1/chat/completions":
                check_chat(request)
                turn = self._next_turn()
                return turn, chat_chunks(request, turn)
            check_responses(request, self.issued)
            turn = self._next_turn()
            self.issued.append([])
            return turn, response_events(request, turn, self.issued[-1])

    def _next_turn(self) -> Turn:
        if not self._steps:
            raise Refusal("the test has no turn for this request", status=418)
        step = self._steps.pop(0)
        if isinstance(step, Refusal):
            raise step
        return step


def _handler(fake: FakeOpenAI) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            key = self.headers.get("Authorization", "").removeprefix("Bearer ")
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                turn, events = fake.answer(self.path, key, body)
            except Refusal as refusal:
                self._begin(refusal.status, "application/json")
                self._write(json.dumps(refusal.body).encode())
                self._write(b"")
                return
            if turn.body is not None:
                kind, text = turn.body
                self._begin(200, kind)
                self._write(text.encode())
                self._write(b"")
                return
            self._begin(200, "text/event-stream; charset=utf-8")
            self._write(stream_bytes(turn, events, ends_by_itself=self.path == "/v1/responses"))
            if turn.cut_after is None:
                self._write(b"")

        def log_message(self, *_: object) -> None:
            """Not to stderr."""

        def _begin(self, status: int, content: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content)
            self.send_header("Transfer-Encoding", "chunked")
            self.send_header("Connection", "close")
            self.end_headers()

        def _write(self, chunk: bytes) -> None:
            """An empty one ends the body; a client may have hung up before."""
            with contextlib.suppress(ConnectionError):
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")

    return Handler


def stream_bytes(turn: Turn, events: Iterable[object], *, ends_by_itself: bool) -> bytes:
    """As server-sent events; Chat Completions has an event for the end."""
    until = turn.ends_after if turn.cut_after is None else turn.cut_after
    written = [json.dumps(event, ensure_ascii=False) for event in list(turn.events or events)[:until]]
    if until is None and not ends_by_itself:
        written.append("[DONE]")
    return "".join(f"data: {event}\n\n" for event in written).encode()
