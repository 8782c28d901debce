"""The order book over HTTP: `POST /orders` with the header `Idempotency-Key`.

It answers with 201 for a new order, 200 for one that the key has placed before, and 4xx with `{"error": …}` for one
that it does not take (status codes after the IETF draft "The Idempotency-Key HTTP Header Field").
"""

import threading
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from ordering.order_system import KEY_HEADER
from ordering.orders.payload import ExternalOrder
from pydantic import BaseModel, ValidationError

from .book import KeyReusedError, OrderBook

LOOPBACK = "127.0.0.1"
LARGEST_BODY = 1_000_000


class _Refusal(BaseModel):
    error: str


class OrderSystemServer:
    """A context manager."""

    def __init__(self, book: OrderBook, port: int = 0) -> None:
        """Port 0: any free one."""
        self.book = book
        self._server = ThreadingHTTPServer((LOOPBACK, port), partial(_Handler, book))
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, book: OrderBook, *arguments: object) -> None:
        self._book = book
        super().__init__(*arguments)  # type: ignore[arg-type] # the server's own, passed on

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        key = (self.headers.get(KEY_HEADER) or "").strip()
        if self.path != "/orders":
            self._refuse(HTTPStatus.NOT_FOUND, "orders are taken at /orders")
        elif not key:
            self._refuse(HTTPStatus.BAD_REQUEST, f"the header {KEY_HEADER} is missing")
        elif length > LARGEST_BODY:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"an order has at most {LARGEST_BODY} bytes")
        else:
            self._place(self.rfile.read(length), key)

    def _place(self, body: bytes, key: str) -> None:
        try:
            placed = self._book.place(ExternalOrder.model_validate_json(body), key)
        except ValidationError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, f"the order cannot be read: {error.errors()[0]['msg']}")
        except KeyReusedError as error:
            self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        else:
            self._answer(HTTPStatus.CREATED if placed.status == "placed" else HTTPStatus.OK, placed)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self._answer(status, _Refusal(error=reason))

    def _answer(self, status: HTTPStatus, value: BaseModel) -> None:
        body = value.model_dump_json().encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Requests are not printed: the caller sees them."""
