"""What is different about the three ways to run a plugin."""

import json
import socket
import sys
import threading
from pathlib import Path

import pytest

from devhost import Host, HostLimits, PluginStartError, ScriptedModel, Stop
from devhost.process.plugin_process import PluginProcess
from devhost.process.session import Watcher
from devhost.process.transports import serverless
from devhost.process.transports import streams as tcp
from devhost.process.transports.transport import LOOPBACK, ReservedPort, TransportName
from support.plugins import PUPPET
from support.puppet_runs import failure, perform, plugin_with_main
from support.waiting import PATIENCE, PausingModel, wait_for

pytestmark = pytest.mark.processes

PRELUDE = """
import json, os, socket, sys
from pathlib import Path
import yaml

MANIFEST = yaml.safe_load(Path("manifest.yaml").read_text())
PROVIDER = yaml.safe_load(Path("provider/puppet.yaml").read_text())
PROVIDER["strategies"] = [yaml.safe_load(Path("strategies/puppet.yaml").read_text())]

def dial(key):
    host, port = os.environ["REMOTE_INSTALL_URL"].split(":")
    line = socket.create_connection((host, int(port)))
    say(line, "handshake", {"key": key})
    return line

def say(line, kind, data):
    line.sendall(json.dumps({"type": kind, "data": data}).encode() + b"\\n")

def introduce(line):
    say(line, "manifest_declaration", MANIFEST)
    say(line, "agent_strategy_declaration", [PROVIDER])
    say(line, "asset_chunk", {"filename": "icon.svg", "data": "", "end": True})
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


def test_a_line_that_is_too_long_fails_one_serverless_run_and_the_plugin_goes_on() -> None:
    with Host.start(PUPPET, transport="http", limits=HostLimits(line_bytes=10_000)) as host:
        words = failure(perform(host, {"say": "x" * 50_000}))
        assert words.startswith("PluginDaemonInnerError: bufio.Scanner: token too long")
        assert perform(host, {"say": "still here"}).outputs.text == "still here"


@pytest.mark.parametrize("transport", ["stdio", "tcp", "http"])
def test_the_error_of_a_crash_ends_with_the_stderr(transport: TransportName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "LAST_MOMENTS", PATIENCE)
    monkeypatch.setattr(serverless, "LAST_MOMENTS", PATIENCE)
    with Host.start(PUPPET, transport=transport) as host:
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


@pytest.mark.parametrize("transport", ["stdio", "tcp"])
def test_a_python_that_does_not_exist(transport: TransportName) -> None:
    with pytest.raises(PluginStartError, match="cannot be started"):
        PluginProcess.start(PUPPET, python="/no/such/python", transport=transport)


# Remote debugging


def test_a_wrong_key_is_refused_and_the_right_one_is_accepted_afterwards(tmp_path: Path) -> None:
    main = """
wrong = dial("wrong")
assert wrong.makefile().read() == "handshake failed, invalid key\\n"
line = dial(os.environ["REMOTE_INSTALL_KEY"])
introduce(line)
line.recv(1)
"""
    with PluginProcess.start(plugin_with_main(tmp_path, PRELUDE + main), transport="tcp") as plugin:
        assert plugin.printed.kept[0].startswith("a connection was refused: the key is wrong")


@pytest.mark.parametrize(
    ("main", "words"),
    [
        (
            "line = dial(os.environ['REMOTE_INSTALL_KEY'])\nline.sendall(b'{\\n')\nline.recv(1)",
            "handshake is not valid JSON",
        ),
        ("line = dial(os.environ['REMOTE_INSTALL_KEY'])\nsay(line, 'end', {})\nline.recv(1)", "at this place"),
        ("line = dial(os.environ['REMOTE_INSTALL_KEY'])\nline.close()\nsys.stdin.read()", "within the handshake"),
        (
            "MANIFEST['author'] = 'Me'\nline = dial(os.environ['REMOTE_INSTALL_KEY'])\nintroduce(line)\nline.recv(1)",
            "manifest_declaration: author: String should match pattern",
        ),
    ],
)
def test_the_error_of_a_registration_says_where_it_failed(tmp_path: Path, main: str, words: str) -> None:
    with pytest.raises(PluginStartError, match=rf"the daemon refuses to register it: .*{words}"):
        PluginProcess.start(plugin_with_main(tmp_path, PRELUDE + main), transport="tcp")


def test_a_connection_that_ends_ends_its_runs(tmp_path: Path) -> None:
    main = """
line = dial(os.environ["REMOTE_INSTALL_KEY"])
introduce(line)
line.recv(1)
line.close()
sys.stdin.read()
"""
    limits = HostLimits(stop_seconds=0.5)
    with Host.start(plugin_with_main(tmp_path, PRELUDE + main), transport="tcp", limits=limits) as host:
        assert failure(perform(host)) == "ConnectionClosedError: the plugin closed its connection"
        assert "PluginLostError: the plugin has closed its connection" in failure(perform(host))


def test_a_plugin_that_connects_again_serves_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = """
line = dial(os.environ["REMOTE_INSTALL_KEY"])
introduce(line)
line.recv(1)
line.close()
line = dial(os.environ["REMOTE_INSTALL_KEY"])
introduce(line)
for request in line.makefile():
    session = json.loads(request)["session_id"]
    say(line, "ignored", {})
    message = {"event": "session", "session_id": session, "data": {"type": "end", "data": {}}}
    line.sendall(json.dumps(message).encode() + b"\\n")
"""
    limits = HostLimits(stop_seconds=0.5)
    with Host.start(plugin_with_main(tmp_path, PRELUDE + main), transport="tcp", limits=limits) as host:
        serves_again = threading.Event()
        monkeypatch.setattr(host.plugin, "served", serves_again.set)
        assert "ConnectionClosedError" in failure(perform(host))
        assert serves_again.wait(PATIENCE)
        assert perform(host).error is None


def test_a_handshake_has_a_deadline_of_its_own(tmp_path: Path) -> None:
    main = """
line = dial(os.environ["REMOTE_INSTALL_KEY"])
line.makefile().read()
"""
    with pytest.raises(PluginStartError, match=r"the handshake was not complete within 0\.3 seconds"):
        PluginProcess.start(
            plugin_with_main(tmp_path, PRELUDE + main), transport="tcp", limits=HostLimits(handshake_seconds=0.3)
        )


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
        wait_for(lambda: "incomplete chunked read" in host.plugin._transport.last_words(), "the end of the answer")
        over.set()


def test_a_request_has_a_largest_size() -> None:
    with Host.start(PUPPET, transport="http", limits=HostLimits(serverless_request_bytes=10_000)) as host:
        words = failure(perform(host, {"say": "x" * 10_000}))
        assert "PluginDaemonInnerError: a serverless plugin takes requests of 10,000 bytes" in words
        assert perform(host, {"say": "short"}).outputs.text == "short"


def test_a_backwards_call_has_a_largest_size() -> None:
    stop = Stop()

    class Heard(Watcher):
        def printed(self, plugin: str, text: str) -> None:
            if plugin and "cuts it off at 5,000" in text:
                stop.request()

    limits = HostLimits(transaction_bytes=5_000)
    with Host.start(PUPPET, transport="http", limits=limits, watcher=Heard()) as host:
        run = host.run("puppet", {"query": json.dumps([{"ask": "x" * 6_000}])}, model=ScriptedModel.of([{}]), stop=stop)
        assert "RunStoppedError" in failure(run)
        assert perform(host, {"ask": "short"}).outputs.text == "x"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('200, b\'{"event": "session", "session_id": "?", "data": {}}\'', "stopped before its end message"),
        ("500, b'no such event'", "status 500: no such event"),
    ],
)
def test_an_answer_without_an_end_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, words: str
) -> None:
    monkeypatch.setattr(serverless, "LAST_MOMENTS", 0.01)
    with Host.start(plugin_with_main(tmp_path, PRELUDE + SERVER % answer), transport="http") as host:
        assert words in failure(perform(host))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a port that another socket may listen on")
def test_the_port_of_a_serverless_plugin_is_kept_for_it() -> None:
    port = ReservedPort()
    with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
        other.bind((LOOPBACK, port.number))
    with socket.create_server((LOOPBACK, port.number)) as plugin:
        assert plugin.getsockname()[1] == port.number
    port.release()
    with socket.socket() as other:
        other.bind((LOOPBACK, port.number))


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "example.com")
    with Host.start(PUPPET, transport="http") as host:
        assert perform(host, {"ask": "Hi"}, turns=[{"text": "straight"}]).outputs.text == "straight"
