"""What is different about the three ways to run a plugin."""

import socket
import sys
import threading
from pathlib import Path

import pytest

from devhost import Host, HostLimits, PluginStartError, Stop
from devhost.errors import WireError
from devhost.process import serverless
from devhost.process.plugin_process import PluginProcess
from devhost.process.program import LOOPBACK, PluginProgram
from devhost.process.transports import TransportName
from devhost.protocol.wire import JsonObject
from support.plugins import PUPPET
from support.puppet_runs import failure, perform, plugin_with_main
from support.waiting import PATIENCE, PausingModel, wait_for

pytestmark = pytest.mark.processes

PRELUDE = """
import json, os, socket, sys

def dial(key):
    host, port = os.environ["REMOTE_INSTALL_URL"].split(":")
    line = socket.create_connection((host, int(port)))
    say(line, "handshake", {"key": key})
    return line

def say(line, kind, data):
    line.sendall(json.dumps({"type": kind, "data": data}).encode() + b"\\n")

def introduce(line):
    say(line, "manifest_declaration", {})
    say(line, "end", {})
"""

SERVER = """
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(200, b"OK")

    def do_POST(self):
        self.answer(%s)

    def answer(self, status, body):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

HTTPServer((os.environ["SERVERLESS_HOST"], int(os.environ["SERVERLESS_PORT"])), Handler).serve_forever()
"""


def test_over_tcp_a_line_has_no_longest_length() -> None:
    with Host.start(PUPPET, transport="tcp", limits=HostLimits(line_bytes=10_000)) as host:
        assert len(perform(host, {"say": "x" * 50_000}).outputs.text) == 50_000


@pytest.mark.parametrize("transport", ["stdio", "tcp", "http"])
def test_the_error_of_a_crash_ends_with_the_stderr(transport: TransportName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serverless, "LAST_MOMENTS", PATIENCE)
    limits = HostLimits(stop_seconds=PATIENCE)
    with Host.start(PUPPET, transport=transport, limits=limits) as host:
        words = failure(perform(host, {"crash": "out of cheese"}))
        assert "exited with code 3" in words
        assert "out of cheese" in words
        assert "exited with code 3" in failure(perform(host, {"say": "too late"}))


@pytest.mark.parametrize(
    ("transport", "words"),
    [
        ("stdio", "no heartbeat came within"),
        ("tcp", "it did not register within"),
        ("http", "its /health did not answer within"),
    ],
)
def test_a_plugin_that_never_serves(tmp_path: Path, transport: TransportName, words: str) -> None:
    plugin = plugin_with_main(tmp_path, PRELUDE + "sys.stdin.read()\n")
    with pytest.raises(PluginStartError, match=rf"{words} 0\.1 seconds"):
        PluginProcess.start(plugin, transport=transport, limits=HostLimits(launch_seconds=0.1))


def test_a_python_that_does_not_exist() -> None:
    with pytest.raises(PluginStartError, match="/no/such/python -m main cannot be started"):
        PluginProcess.start(PUPPET, python="/no/such/python", transport="http")


# Remote debugging


def test_a_wrong_key_is_refused_in_the_daemons_words(tmp_path: Path) -> None:
    main = """
line = dial("wrong")
print(line.makefile().read(), flush=True)
sys.stdin.read()
"""
    limits = HostLimits(stop_seconds=0.1)
    with pytest.raises(PluginStartError, match="refuses to register it: it did not begin with the REMOTE_INSTALL_KEY"):
        PluginProcess.start(plugin_with_main(tmp_path, PRELUDE + main), transport="tcp", limits=limits)


def test_a_connection_that_ends_ends_the_plugin(tmp_path: Path) -> None:
    main = """
line = dial(os.environ["REMOTE_INSTALL_KEY"])
introduce(line)
line.recv(1)
line.close()
sys.stdin.read()
"""
    limits = HostLimits(stop_seconds=0.1)
    with Host.start(plugin_with_main(tmp_path, PRELUDE + main), transport="tcp", limits=limits) as host:
        assert failure(perform(host)) == "PluginLostError: the plugin closed its connection"
        assert failure(perform(host)) == "PluginLostError: the plugin closed its connection"


# Serverless


def test_a_run_that_is_over_ends_what_the_plugin_is_still_asking() -> None:
    over = threading.Event()
    stop = Stop()

    def stop_and_wait() -> None:
        stop.request()
        over.wait(PATIENCE)

    with Host.start(PUPPET, transport="http") as host:
        model = PausingModel.that(stop_and_wait)
        run = host.run("puppet", {"query": '[{"ask": "Hi"}]'}, model=model, stop=stop)
        assert "RunStoppedError" in failure(run)
        wait_for(
            lambda: "incomplete chunked read" in host.plugin._transport.program.last_words(), "the end of the answer"
        )
        over.set()


@pytest.mark.parametrize(
    ("limits", "step", "words"),
    [
        ({"line_bytes": 10_000}, {"say": "x" * 9_990}, "its end message: a line of more than 10,000 bytes"),
        (
            {"serverless_request_bytes": 5_000},
            {"say": "x" * 5_000},
            "a serverless plugin takes requests of 5,000 bytes",
        ),
        ({"transaction_bytes": 5_000}, {"ask": "x" * 6_000}, "the daemon cuts a backwards call of "),
    ],
)
def test_a_message_that_is_too_long_fails_one_run_and_the_plugin_goes_on(
    limits: dict[str, int], step: JsonObject, words: str
) -> None:
    with Host.start(PUPPET, transport="http", limits=HostLimits(**limits)) as host:
        said = failure(perform(host, step))
        assert said.startswith("PluginDaemonInnerError: ")
        assert words in said
        assert perform(host, {"ask": "short"}).outputs.text == "x"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('200, b\'{"event": "session", "session_id": "?", "data": {}}\'', "ended before its end message"),
        ("500, b'no such event'", "status 500: no such event"),
    ],
)
def test_an_answer_without_an_end_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, words: str
) -> None:
    monkeypatch.setattr(serverless, "LAST_MOMENTS", 0.01)
    with Host.start(plugin_with_main(tmp_path, PRELUDE + SERVER % answer), transport="http") as host:
        assert words in failure(perform(host))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not a session message: Expecting property name"),
        (b'{"data": {"type": "end"}}', "not a backwards call"),
        (b'{"data": {"type": "invoke", "data": {"type": "llm", "backwards_request_id": "r", "request": {}}}}', "found"),
    ],
)
def test_calls_that_are_refused(body: bytes, words: str) -> None:
    transport = serverless.HttpTransport(PluginProgram(PUPPET, "main", "python", 1), HostLimits())
    with pytest.raises(WireError, match=words):
        transport.called("s", body)
    transport.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a port that another socket may listen on")
def test_the_port_of_a_serverless_plugin_is_kept_for_it() -> None:
    port = serverless._ReservedPort()
    with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
        other.bind((LOOPBACK, port.number))
    with socket.create_server((LOOPBACK, port.number)) as plugin:
        assert plugin.getsockname()[1] == port.number
    port.close()


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "example.com")
    with Host.start(PUPPET, transport="http") as host:
        assert perform(host, {"ask": "Hi"}, turns=[{"text": "straight"}]).outputs.text == "straight"
