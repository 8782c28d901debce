"""Files of a turn are read from their addresses; a user's link leads no request into the network of the plugin."""

import gzip
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from internal.host.files import FileUnavailable, fetch_file
from tests.support.local_http import served

PUBLIC = "http://93.184.215.14"
MOST = 1_000_000


class Server(BaseHTTPRequestHandler):
    """A file server, and a proxy for any other; `/to/ADDRESS` leads there."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        _, _, target = self.path.partition("/to/")
        self.send_response(302 if target else 200)
        if target:
            self.send_header("Location", target)
        if self.path.endswith("packed"):
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if not target:
            self.wfile.write(gzip.compress(bytes(50 * MOST)) if self.path.endswith("packed") else b"content")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - as the base class has it
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    Server.asked = []
    with served(Server) as address:
        yield address


@pytest.fixture
def asked(server: str) -> list[str]:
    """What was asked of the server: whole addresses where it was the proxy."""
    assert server
    return Server.asked


@pytest.fixture
def proxy(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """As Dify's docker-compose sets its proxy for all services."""
    monkeypatch.setenv("SSRF_PROXY_HTTP_URL", server)
    monkeypatch.setenv("SSRF_PROXY_HTTPS_URL", server)
    return server


PRIVATE = ["127.0.0.1:9", "localhost:9", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]", "2130706433"]


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("host", PRIVATE)
def test_a_redirect_into_a_private_network_is_not_followed(asked: list[str], host: str) -> None:
    address = f"{PUBLIC}/to/http://{host}/b"
    with pytest.raises(FileUnavailable, match="leads into a private network"):
        fetch_file(address, 0, MOST)

    assert asked == [address]


def test_other_redirects_are_followed(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetch_file(f"{server}/to//b", 0, MOST) == b"content"
    assert fetch_file(f"{server}/to/{server.replace('127.0.0.1', 'localhost')}/b", 0, MOST) == b"content"
    monkeypatch.setenv("SSRF_PROXY_ALL_URL", server)
    assert fetch_file(f"{PUBLIC}/to/http://93.184.215.15/b", 0, MOST) == b"content"


def test_redirects_without_end_are_not_followed(server: str, asked: list[str]) -> None:
    with pytest.raises(FileUnavailable, match="could not be fetched"):
        fetch_file(f"{server}{'/to/' * 50}", 0, MOST)

    assert len(asked) == 6


def test_difys_own_files_need_no_proxy_and_all_others_do(
    proxy: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERNAL_FILES_URL", f"{proxy}/files-prefix")

    fetch_file(f"{proxy}/files/a", 0, MOST)
    fetch_file("http://127.0.0.1:9/b", 0, MOST)

    assert asked == ["/files/a", "http://127.0.0.1:9/b"]


def test_a_packed_file_is_not_unpacked(server: str) -> None:
    with pytest.raises(FileUnavailable, match="its server sends it compressed"):
        fetch_file(f"{server}/packed", 0, MOST)
