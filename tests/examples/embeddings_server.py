"""An embeddings API on this machine: it checks requests like the real one, and answers wrongly if a test says so."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.support.local_http import served

KEY = "sk-made-up-1234567890"
DIMENSIONS = 8


@dataclass
class EmbeddingsServer:
    """`status` and `body` replace the answer if they are set; `asked` has the texts of each call."""

    base_url: str = ""
    status: int = 200
    body: bytes | None = None
    dimensions: int = DIMENSIONS
    asked: list[list[str]] = field(default_factory=list)


def embedded(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Texts with the same words have the same vector, which is enough for the tests."""
    vector = [0.0] * dimensions
    for sign in text.casefold():
        vector[ord(sign) % dimensions] += 1.0
    return vector


@contextmanager
def embeddings_server() -> Iterator[EmbeddingsServer]:
    state = EmbeddingsServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = self._answer(request)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _answer(self, request: dict[str, object]) -> tuple[int, bytes]:
            texts = request.pop("input")
            assert isinstance(texts, list)
            state.asked.append(texts)
            if self.headers["Authorization"] != f"Bearer {KEY}":
                said = f"Incorrect API key provided: {self.headers['Authorization']}"
                return 401, json.dumps({"error": {"message": said, "code": "invalid_api_key"}}).encode()
            if self.path != "/v1/embeddings" or request != {
                "model": "text-embedding-3-small",
                "encoding_format": "float",
            }:
                return 400, json.dumps({"error": {"message": "what is this?", "code": None}}).encode()
            # Last one first: the field `index` gives the order, not the list.
            vectors = enumerate(embedded(text, state.dimensions) for text in texts)
            data = [{"index": number, "embedding": vector} for number, vector in vectors][::-1]
            return state.status, json.dumps({"data": data}).encode() if state.body is None else state.body

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's own name
            """Log nothing."""

    with served(Handler) as address:
        state.base_url = f"{address}/v1"
        yield state
