"""A provider's error is one sentence: what happened, where, and what would help."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from devhost.cli.commands import main
from devhost.models.backend import ModelCallError
from devhost.models.openai_api.backend import Connection, OpenAIModel
from devhost.models.openai_api.provider import Api
from fake_openai import FakeOpenAI
from support.openai_requests import model_request
from support.plugins import FIXTURES, PUPPET

PAGE = f"<!DOCTYPE html>\n<html><head><title>Welcome\n to nginx</title></head><body>{'<p>x</p>\n' * 100}</body></html>"
WHERE = ["--example", "toolbox", "--plugin", str(PUPPET), "--examples", str(FIXTURES), "--no-color"]

pytestmark = pytest.mark.usefixtures("lent_plugins")


@contextmanager
def web_server() -> Iterator[str]:
    """Answers every request with a page and the status that is the first part of the path."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(int(self.path.split("/")[1]))
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def failure(base_url: str, api: Api, key: str = "sk-1234567890") -> str:
    with pytest.raises(ModelCallError) as raised:
        list(OpenAIModel(Connection(key, base_url), api, "gpt-5").invoke(model_request()))
    return raised.value.message


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_an_answer_that_is_not_json_is_quoted_with_the_server(api: Api) -> None:
    with web_server() as place:
        said = failure(f"http://me:secret12@{place}/404/v1?a=b", api)
    assert said.startswith("[models] Bad Request Error, Error code: 404 - <!DOCTYPE html> <html>")
    assert said.endswith(f"… (server: http://{place}/404/v1)")
    assert len(said) < 1_200


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_a_refused_key_and_a_refused_connection_say_where_and_what_would_help(api: Api) -> None:
    with FakeOpenAI() as server:
        refused = failure(server.base_url, api)
    gone = failure(server.base_url, api)
    assert refused.endswith(f"please check and try again. (server: {server.base_url}; check OPENAI_API_KEY)")
    assert gone.endswith(f"refused (server: {server.base_url}; check that a server runs there, or set OPENAI_BASE_URL)")


def test_a_run_that_fails_before_its_first_model_call_says_nothing_of_the_script(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert main(["run", *WHERE, "--scripted", "--query", '[{"fail": "maximum_iterations must be 1 or more"}]']) == 1
    shown = capsys.readouterr().out
    assert "ValueError: maximum_iterations must be 1 or more" in shown
    assert "no model call asked for" not in shown
    assert "Traceback" not in shown
