"""A process that can serve Dify no longer says so in one sentence, and ends."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.clock import PATIENCE

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
WITHOUT_PAUSES = """
import os, runpy, sys
from dify_plugin.core.server.tcp.request_reader import TCPReaderWriter
attempts, _, connected = TCPReaderWriter.__init__.__defaults__
TCPReaderWriter.__init__.__defaults__ = attempts, 0, connected
sys.path.insert(0, os.getcwd())
runpy.run_module("main", run_name="__main__")
"""
"""Starts the plugin with the SDK's attempts to connect again, but not with the 5 seconds between them."""


def started(*arguments: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: "subprocess.Popen[str]") -> str:
    """What it printed, once it has ended with exit code 1."""
    try:
        printed, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 1, printed
    return printed


def test_remote_debugging_ends_when_dify_does_not_come_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        process = started(
            "-c", WITHOUT_PAUSES, INSTALL_METHOD="remote", REMOTE_INSTALL_URL=address, REMOTE_INSTALL_KEY="key"
        )
        connection, _ = server.accept()
    with connection, connection.makefile() as lines:  # Dify ends in the midst of a connection that works
        assert any(line.startswith('{"type":"end"') for line in lines)

    printed = ended(process)

    assert printed.count("Dify's plugin daemon has gone, and cannot be reached again: [Errno") == 1


def test_a_serverless_process_ends_when_its_port_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = started("-m", "main", INSTALL_METHOD="serverless", SERVERLESS_HOST="127.0.0.1", SERVERLESS_PORT=port)
        printed = ended(process)

    assert printed.count("it can serve Dify no longer: [Errno") == 1
    assert f"Address already in use: ('127.0.0.1', {port})" in printed
