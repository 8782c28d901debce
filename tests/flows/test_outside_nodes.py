"""HTTP request and code nodes: only where they are allowed, as in Dify where they are."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from devhost.errors import FlowFileError
from devhost.flow.checks import check_flow
from devhost.flow.document import FlowFile
from devhost.flow.engine.play import play
from devhost.flow.outside import OutsideAccess
from devhost.flow.turn import FlowTurn, TurnContext
from devhost.host.host import Host
from devhost.protocol.wire import JsonObject
from support.flow_documents import chain, end, node, start, workflow
from tests.flows.playing import Played, surroundings


class Greeter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body, kind = (b"\x89PNG", "image/png") if self.path == "/picture" else (b"Hello, Ada", "text/plain")
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: a test says enough."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Greeter) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def fetch(url: str) -> JsonObject:
    return node(
        "http-request",
        "fetch",
        method="get",
        url=url,
        authorization={"type": "no-auth", "config": None},
        headers="",
        params="",
        body={"type": "none", "data": []},
    )


def code(text: str, language: str = "python3") -> JsonObject:
    inputs = [{"variable": "word", "value_selector": ["start", "word"]}]
    outputs = {"result": {"type": "string", "children": None}}
    return node("code", "code", code=text, code_language=language, variables=inputs, outputs=outputs)


def one_node(folder: Path, given: JsonObject, output: str) -> Path:
    return workflow(
        folder, [start("word"), given, end(said=f"{given['id']}.{output}")], chain("start", given["id"], "end")
    )


def test_a_request_fills_its_address_and_gives_text(tmp_path: Path, address: str) -> None:
    played = Played.of(
        one_node(tmp_path, fetch(f"{address}/{{{{#start.word#}}}}"), "body"), FlowTurn(inputs={"word": "a"}), None, {}
    )

    assert played.end.outputs == {"said": "Hello, Ada"}
    assert played.node("fetch").outputs["status_code"] == 200


def test_a_file_in_an_answer_becomes_a_file_of_the_flow(tmp_path: Path, address: str, office: Host) -> None:
    played = Played.of(
        one_node(tmp_path, fetch(f"{address}/picture"), "files"), FlowTurn(inputs={"word": "a"}), office, {}
    )

    (file,) = played.end.outputs["said"]
    assert (file["mime_type"], file["type"], file["transfer_method"]) == ("image/png", "image", "tool_file")
    kept = next(each for each in office.files.all() if each.id == file["related_id"])
    assert kept.path.read_bytes() == b"\x89PNG"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python3", "def main(word: str) -> dict:\n    return {'result': word.upper() + 'é'}"),
        ("javascript", "function main({word}) { return {result: word.toUpperCase() + 'é'} }"),
    ],
)
def test_code_runs_with_its_inputs_and_outputs(tmp_path: Path, language: str, text: str) -> None:
    played = Played.of(one_node(tmp_path, code(text, language), "result"), FlowTurn(inputs={"word": "ada"}), None, {})

    assert played.end.outputs == {"said": "ADAé"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def main(word): raise ValueError('no ' + word)", "ValueError: no ada"),
        ("def main(word): return {'other': 1}", "Output result is missing."),
    ],
)
def test_code_that_fails_fails_its_node(tmp_path: Path, text: str, words: str) -> None:
    played = Played.of(one_node(tmp_path, code(text), "result"), FlowTurn(inputs={"word": "ada"}), None, {})

    assert played.node("code").status == "failed"
    assert words in played.node("code").error


@pytest.mark.parametrize("given", [fetch("http://127.0.0.1:9"), code("def main(word): return {}")])
def test_without_the_option_the_flow_does_not_start(tmp_path: Path, given: JsonObject) -> None:
    file = FlowFile.read(one_node(tmp_path, given, "x"))
    around = surroundings(None, {})
    sentence = {"fetch": "node 'Fetch' \\(fetch\\) sends HTTP requests", "code": "node 'Code' \\(code\\) runs code"}

    with pytest.raises(FlowFileError, match=sentence[given["id"]]):
        check_flow(file, {"word": "a"}, ())
    with pytest.raises(FlowFileError, match=sentence[given["id"]]):
        list(play(file, FlowTurn(), TurnContext(None, around.model, allowed=OutsideAccess())))
