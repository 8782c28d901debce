"""What is different about the three ways to run a plugin."""

from pathlib import Path
from typing import Any

import pytest

from devhost import Host, HostLimits, PluginStartError
from devhost.process import serverless
from devhost.process.plugin_process import PluginProcess
from devhost.process.program import TransportName
from devhost.protocol.wire import JsonObject
from support.plugins import PUPPET
from support.puppet_runs import failure, perform, plugin_with_main
from support.waiting import PATIENCE

pytestmark = pytest.mark.processes


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
    plugin = plugin_with_main(tmp_path, "import sys\nsys.stdin.read()\n")
    with pytest.raises(PluginStartError, match=rf"{words} 0\.1 seconds"):
        PluginProcess.start(plugin, transport=transport, limits=HostLimits(launch_seconds=0.1))


# Remote debugging


def test_a_wrong_key_is_refused_in_the_daemons_words(tmp_path: Path) -> None:
    main = """
import os, socket, sys
host, port = os.environ["REMOTE_INSTALL_URL"].split(":")
line = socket.create_connection((host, int(port)))
line.sendall(b'{"type": "handshake", "data": {"key": "wrong"}}\\n')
print(line.makefile().read(), flush=True)
sys.stdin.read()
"""
    limits = HostLimits(stop_seconds=0.1)
    with pytest.raises(
        PluginStartError, match="refuses to register it: its first line does not have the REMOTE_INSTALL_KEY"
    ):
        PluginProcess.start(plugin_with_main(tmp_path, main), transport="tcp", limits=limits)


# Serverless


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
    limits: dict[str, Any], step: JsonObject, words: str
) -> None:
    with Host.start(PUPPET, transport="http", limits=HostLimits(**limits)) as host:
        said = failure(perform(host, step))
        assert said.startswith("PluginDaemonInnerError: ")
        assert words in said
        assert perform(host, {"ask": "short"}).outputs.text == "x"


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "example.com")
    with Host.start(PUPPET, transport="http") as host:
        assert perform(host, {"ask": "Hi"}, turns=[{"text": "straight"}]).outputs.text == "straight"
