"""The order system of another department, as small as it can be: `POST /orders` with the header `Idempotency-Key`.

It answers with 201 for a new order, 200 for one that the key has placed before, and 4xx with `{"error": …}` for one
that it does not take (status codes after the IETF draft "The Idempotency-Key HTTP Header Field"). Its book lasts as
long as the process.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from ordering.order_system import KEY_HEADER, ExternalOrder
from pydantic import ValidationError

LOOPBACK = "127.0.0.1"
FIRST_NUMBER = 901


class OrderSystemServer(ThreadingHTTPServer):
    """A context manager."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        """Port 0: any free one."""
        super().__init__((LOOPBACK, port), _Handler)
        self._by_key: dict[str, tuple[str, ExternalOrder]] = {}
        self._writing = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_address[1]}"

    @property
    def orders(self) -> dict[str, ExternalOrder]:
        """By their numbers."""
        return dict(self._by_key.values())

    def clear(self) -> None:
        self._by_key.clear()

    def answered(self, path: str, key: str, body: bytes) -> tuple[int, dict[str, str]]:
        try:
            order = ExternalOrder.model_validate_json(body)
        except ValidationError as error:
            return 400, {"error": f"the order cannot be read: {error.errors()[0]['msg']}"}
        if path != "/orders" or not key:
            return 400, {"error": f"orders are taken at /orders, with the header {KEY_HEADER}"}
        with self._writing:
            is_new = key not in self._by_key
            number, known = self._by_key.setdefault(key, (f"SO-{FIRST_NUMBER + len(self._by_key):06}", order))
        if known != order:
            return 422, {"error": "the key was used for an order with another content"}
        return 201 if is_new else 200, {"order_number": number, "status": "placed" if is_new else "placed_before"}


class _Handler(BaseHTTPRequestHandler):
    server: OrderSystemServer

    def do_POST(self) -> None:
        key = (self.headers.get(KEY_HEADER) or "").strip()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, answer = self.server.answered(self.path, key, body)
        written = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(written)))
        self.end_headers()
        self.wfile.write(written)

    def log_message(self, *_: object) -> None:
        """Requests are not printed: the caller sees them."""
