"""The fake itself: a server on a loopback port of its own, one thread per connection."""

import json
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from pydantic import ValidationError

from fake_openai import chat, refusals, responses
from fake_openai.chat import ChatRequest, chat_chunks
from fake_openai.refusals import Refusal
from fake_openai.responses import ResponseInTheMaking, ResponsesRequest
from fake_openai.turns import Turn

KEY = "sk-proj-theFakeServersOwnKey0123456789"
type Json = dict[str, Any]


class FakeOpenAI:
    def __init__(self) -> None:
        self.requests: list[tuple[str, Json]] = []
        self.issued: responses.Issued = []
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
        self.requests, self.issued, self._steps = [], [], []

    def answer(self, path: str, key: str, body: bytes) -> tuple[Turn, Iterator[object]]:
        """The turn and its events; Refusal when there are none."""
        with self._answering:
            request = _parsed(body)
            self.requests.append((path, request))
            if key != KEY:
                raise refusals.unknown_key(key)
            match path:
                case "/v1/responses":
                    return self._respond(request)
                case "/v1/chat/completions":
                    return self._complete(request)
            raise Refusal(f"Unknown request URL: POST {path}.", status=404, code="unknown_url")

    def _respond(self, body: Json) -> tuple[Turn, Iterator[object]]:
        request = _of_shape(ResponsesRequest, body)
        responses.check_request(request, self.issued)
        turn = self._next_turn()
        response = ResponseInTheMaking(request, turn)
        self.issued.append(response.output)
        return turn, response.events()

    def _complete(self, body: Json) -> tuple[Turn, Iterator[object]]:
        request = _of_shape(ChatRequest, body)
        chat.check_request(request)
        turn = self._next_turn()
        return turn, chat_chunks(request, turn)

    def _next_turn(self) -> Turn:
        if not self._steps:
            raise Refusal("the test has no turn for this request", status=418)
        step = self._steps.pop(0)
        if isinstance(step, Refusal):
            raise step
        return step


def _parsed(body: bytes) -> Json:
    try:
        parsed = json.loads(body)
    except ValueError as error:
        raise Refusal("We could not parse the JSON body of your request.") from error
    if not isinstance(parsed, dict):
        raise Refusal("Invalid body: expected an object.")
    return parsed


def _of_shape[Shape: (ResponsesRequest, ChatRequest)](shape: type[Shape], body: Json) -> Shape:
    try:
        return shape.model_validate(body)
    except ValidationError as error:
        raise refusals.of_schema(error, body) from error


def _handler(fake: FakeOpenAI) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            key = self.headers.get("Authorization", "").removeprefix("Bearer ")
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                turn, events = fake.answer(self.path, key, body)
            except Refusal as refusal:
                self._refuse(refusal)
            else:
                self._stream(turn, events, named=self.path == "/v1/responses")

        def log_message(self, *_: object) -> None:
            """Not to stderr."""

        def _refuse(self, refusal: Refusal) -> None:
            data = json.dumps(refusal.body).encode()
            self.send_response(refusal.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, turn: Turn, events: Iterable[object], *, named: bool) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Transfer-Encoding", "chunked")
            self.send_header("Connection", "close")
            self.end_headers()
            for piece in torn(stream_bytes(turn, events, named=named), turn.splits):
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.flush()
            if turn.cut_after is None:
                self.wfile.write(b"0\r\n\r\n")

    return Handler


def stream_bytes(turn: Turn, events: Iterable[object], *, named: bool) -> bytes:
    """As server-sent events: those of the Responses API have names, those of Chat Completions an end of their own."""
    until = turn.ends_after if turn.cut_after is None else turn.cut_after
    written = list(turn.events or events)[:until]
    lines = [
        (f"event: {event.get('type')}\n" if named and isinstance(event, dict) else "")
        + f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
        for event in written
    ]
    if until is None and not named:
        lines.append("data: [DONE]\n\n")
    return "".join(lines).encode()


def torn(data: bytes, splits: Iterable[int]) -> Iterator[bytes]:
    """In pieces, none of them empty; whole without splits."""
    places = sorted({place % len(data) for place in splits} - {0}) if data else []
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        if start < end:
            yield data[start:end]
