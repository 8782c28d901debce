"""The order system of another department, as small as it can be: `POST /orders` with the header `Idempotency-Key`.

It answers with 201 for a new order, 200 for one that the key has placed before, and 4xx with `{"error": …}` for one
that it does not take (status codes after the IETF draft "The Idempotency-Key HTTP Header Field"). Its book lasts as
long as the process.
"""

import json
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from ordering.order_system import KEY_HEADER, ExternalOrder, Placed
from pydantic import ValidationError

LOOPBACK = "127.0.0.1"
FIRST_NUMBER = 901


class OrderSystemServer:
    """A context manager."""

    def __init__(self, port: int = 0) -> None:
        """Port 0: any free one."""
        self._by_key: dict[str, tuple[str, ExternalOrder]] = {}
        self._writing = threading.Lock()
        self._server = ThreadingHTTPServer((LOOPBACK, port), partial(_Handler, self))
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

    @property
    def orders(self) -> dict[str, ExternalOrder]:
        """By their numbers."""
        with self._writing:
            return dict(self._by_key.values())

    def clear(self) -> None:
        with self._writing:
            self._by_key.clear()

    def placed(self, order: ExternalOrder, key: str) -> Placed | None:
        """None if the key belongs to an order with another content."""
        with self._writing:
            is_new = key not in self._by_key
            number, known = self._by_key.setdefault(key, (f"SO-{FIRST_NUMBER + len(self._by_key):06}", order))
        return Placed(order_number=number, status="placed" if is_new else "placed_before") if known == order else None


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, system: OrderSystemServer, *arguments: object) -> None:
        self._system = system
        super().__init__(*arguments)  # type: ignore[arg-type] # the server's own, passed on

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = (self.headers.get(KEY_HEADER) or "").strip()
        try:
            order = ExternalOrder.model_validate_json(body)
        except ValidationError as error:
            return self._refuse(400, f"the order cannot be read: {error.errors()[0]['msg']}")
        if self.path != "/orders" or not key:
            return self._refuse(400, f"orders are taken at /orders, with the header {KEY_HEADER}")
        placed = self._system.placed(order, key)
        if placed is None:
            return self._refuse(422, "the key was used for an order with another content")
        return self._answer(201 if placed.status == "placed" else 200, placed.model_dump_json())

    def _refuse(self, status: int, reason: str) -> None:
        self._answer(status, json.dumps({"error": reason}))

    def _answer(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Requests are not printed: the caller sees them."""
