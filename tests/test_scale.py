"""The measurement under Dify's plugin daemon: its parts without a daemon; docs/scale.md has what it measured."""

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from gevent.pywsgi import WSGIServer

from benchmarks.scale.__main__ import Round, read_options
from benchmarks.scale.daemon import OURS, Daemon, DaemonError, messages_in
from benchmarks.scale.inner_api import HEADER_SIZE, MAGIC, InnerApi, Pace, framed, question_in, text_of
from benchmarks.scale.load import Ended, asking, at_once, percentile, timed
from benchmarks.scale.processes import Process, Watched, name_of

AT_ONCE = Pace(0, 0, 0, 0, chunks=3)
TOOLS = [{"name": "search"}]


def unframed(stream: bytes) -> list[Any]:
    """The payloads of a stream, read as the daemon reads them."""
    payloads = []
    while stream:
        assert (stream[0], int.from_bytes(stream[2:4], "little")) == (MAGIC, HEADER_SIZE)
        begin = 4 + HEADER_SIZE
        end = begin + int.from_bytes(stream[4:8], "little")
        payloads.append(json.loads(stream[begin:end]))
        stream = stream[end:]
    return payloads


def asked(api: InnerApi, path: str, request: object) -> tuple[str, list[Any]]:
    """The status and the messages of an answer."""
    statuses: list[str] = []
    environ = {"PATH_INFO": path, "wsgi.input": BytesIO(json.dumps(request).encode())}
    stream = b"".join(api(environ, lambda status, _headers: statuses.append(status)))
    return statuses[0], [message["data"] for message in unframed(stream)]


def test_a_message_is_framed_with_its_length() -> None:
    assert unframed(framed(b'"a"') + framed(b"{}")) == ["a", {}]


def test_a_question_is_answered_with_a_call_and_a_result_with_a_text() -> None:
    api = InnerApi(AT_ONCE)
    question = {"role": "user", "content": "Context\n\nwhere is it?\n"}
    llm = "/inner/api/invoke/llm"

    _, [called] = asked(api, llm, {"prompt_messages": [question], "tools": TOOLS})
    _, said = asked(api, llm, {"prompt_messages": [question, {"role": "tool", "content": "x"}], "tools": TOOLS})
    _, without_tools = asked(api, llm, {"prompt_messages": [question], "tools": []})

    [call] = called["delta"]["message"]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == (
        "search",
        {"asked": "where is it?"},
    )
    assert "".join(chunk["delta"]["message"]["content"] for chunk in said) == text_of(AT_ONCE)
    assert without_tools == said
    assert api.model_calls == 3


def test_a_tool_that_ran_twice_is_counted() -> None:
    api = InnerApi(AT_ONCE)
    for question in ("a", "b", "a"):
        status, [result] = asked(api, "/inner/api/invoke/tool", {"tool_parameters": {"asked": question}})
        assert (status, result["type"]) == ("200 OK", "text")
    assert api.ran == {"a": 2, "b": 1}
    assert asked(api, "/inner/api/fetch/app/info", {}) == ("404 Not Found", [])


def test_the_question_is_the_last_line_of_a_message_in_parts() -> None:
    assert question_in([{"type": "text", "data": "a\nb"}, {"type": "image", "url": "x"}]) == "b"


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1), (0.5, 2), (0.75, 3), (0.95, 4), (1.0, 4)])
def test_a_percentile_is_one_of_the_values(share: float, expected: int) -> None:
    assert percentile([4, 2, 1, 3], share) == expected


def test_an_error_of_the_daemon_ends_the_run_with_its_text() -> None:
    stream = messages_in(['data: {"code": 0, "data": {"type": "text"}}', "", 'data: {"code": -500, "message": "gone"}'])
    assert next(stream) == {"type": "text"}
    with pytest.raises(DaemonError, match="gone"):
        next(stream)
    with pytest.raises(DaemonError, match="not an answer of a plugin daemon: '<html>'"):
        next(messages_in(["<html>"]))


@pytest.mark.parametrize(
    ("command", "folder", "name"),
    [
        (["python", "-m", "main"], "/cwd/acme/agent-1.2.0@abc", "agent-1.2.0"),
        (["/app/daemon"], "/app", "daemon"),
    ],
)
def test_a_process_is_named_after_its_plugin(command: list[str], folder: str, name: str) -> None:
    assert name_of(command, folder) == name


def test_the_report_has_times_endings_and_processes() -> None:
    ended = [Ended(0, "all", 0.5, 2.0), Ended(0, "a", 0.6, 1.0), Ended(0, error="gone")]
    watched = Watched({"daemon": Process(1_000_000, 2_000_000, 0.3), "idle": Process()})
    assert list(Round("ours", ended, "all\n", InnerApi(AT_ONCE).ran, watched).lines()) == [
        "ours, 3 at once: 1 whole, 0 ran the tool twice",
        "  first word 0.50 s, at 95 % 0.50 s",
        "  whole run 2.00 s, at 95 % 2.00 s",
        "  daemon: 100.0 ms a run, 1 to 2 MB;",
        "  1 ended with: gone",
    ]


def test_the_command_takes_several_daemons() -> None:
    options = read_options(["--daemon", "http://a", "--daemon", "http://b", "--key", "k", "sessions", "--at-once", "2"])
    assert (options.daemon, options.at_once, options.strategy) == (["http://a", "http://b"], [2], ["ours", "official"])


def daemon_app(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:  # noqa: ANN401 - WSGI
    """A daemon whose runs show a text and put out a state. One is cut, and one fails."""
    assert (environ["HTTP_X_API_KEY"], environ["HTTP_X_PLUGIN_ID"]) == ("key", OURS.plugin_id)
    query = json.load(environ["wsgi.input"])["data"]["agent_strategy_params"]["query"]
    start_response("200 OK", [])
    for message in (
        {"type": "text", "message": {"text": " "}},
        {"type": "text", "message": {"text": query}},
        {"type": "variable", "message": {"variable_name": "state", "variable_value": "s"}},
    ):
        yield b"data: " + json.dumps({"code": 0, "data": message}).encode() + b"\n\n"
    if query == "fail":
        yield b'data: {"code": -500, "message": "no available node"}\n\n'
    if query == "cut":
        raise ConnectionResetError


@pytest.mark.e2e
def test_runs_at_a_daemon_end_with_their_text_or_its_error() -> None:
    server = WSGIServer(("127.0.0.1", 0), daemon_app, log=None, error_log=None)
    server.start()
    daemon = Daemon(f"http://127.0.0.1:{server.server_port}", "key")
    try:
        run = timed(daemon, OURS, asking("hi"))
        failed, cut = sorted(at_once([daemon], OURS, ["cut", "fail"], 0), key=lambda run: run.error)[::-1]
    finally:
        server.stop()

    assert (run.text, run.state, run.error) == (" hi", "s", "")
    assert run.first_word is not None
    assert failed.error == "no available node"
    assert cut.error.startswith("RemoteProtocolError: peer closed connection")
