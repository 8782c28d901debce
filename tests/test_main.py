"""How main.py starts the plugin: an unusable timeout is replaced and named, and never prevents the start."""

import json
import math
import os
import subprocess
import sys
from decimal import Decimal
from io import StringIO
from pathlib import Path

import gevent
import pytest
from dify_plugin import DifyPluginEnv
from dify_plugin.core.server.__base.response_writer import ResponseWriter
from dify_plugin.core.server.stdio.response_writer import StdioResponseWriter
from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage
from dify_plugin.entities.model.message import AssistantPromptMessage, UserPromptMessage

from devhost.limits import HostLimits
from internal.node.params import StrategyParams
from main import TIMEOUTS, put_in_one_step, settle_log_content, settle_timeouts, write_together
from tests.support.wire import model

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("name", "asked", "used", "change"),
    [
        ("MAX_REQUEST_TIMEOUT", "700", "700", None),
        ("MAX_REQUEST_TIMEOUT", "", "3600", None),
        ("MAX_REQUEST_TIMEOUT", "5 min", "3600", "not a number of seconds; 3600 is used"),
        ("MAX_REQUEST_TIMEOUT", "inf", "3600", "not a number of seconds; 3600 is used"),
        ("MAX_REQUEST_TIMEOUT", "30", "600", "30 is outside 600 to 3600; 600 is used"),
        ("MAX_REQUEST_TIMEOUT", "1e9", "3600", "1000000000 is outside 600 to 3600; 3600 is used"),
        ("MAX_INVOCATION_TIMEOUT", "120", "120", None),
        ("MAX_INVOCATION_TIMEOUT", "-1", "10", "-1 is outside 10 to 600; 10 is used"),
    ],
)
def test_a_timeout_is_kept_within_its_bounds(name: str, asked: str, used: str, change: str | None) -> None:
    for environment, dotenv in (({name: asked}, {}), ({}, {name: asked})):
        settled: dict[str, str] = dict(environment)
        assert settle_timeouts(settled, dict(dotenv)) == ([f"{name}: {change}"] if change else [])
        assert settled == {"MAX_REQUEST_TIMEOUT": "3600", name: used}


def test_an_unset_limit_on_silent_calls_is_the_default_of_the_sdk() -> None:
    environment: dict[str, str] = {}
    assert settle_timeouts(environment, {}) == []
    assert "MAX_INVOCATION_TIMEOUT" not in environment
    assert TIMEOUTS["MAX_INVOCATION_TIMEOUT"].default == DifyPluginEnv.model_fields["MAX_INVOCATION_TIMEOUT"].default


def test_a_serverless_connection_outlasts_the_longest_run() -> None:
    """While thoughts are hidden nothing is written, and Dify takes a connection that ends early for a success."""
    environment: dict[str, str] = {}
    settle_timeouts(environment, {})
    longest = StrategyParams.model_validate({"model": model(), "query": "?", "maximum_seconds": 10**6}).maximum_seconds
    assert int(environment["MAX_REQUEST_TIMEOUT"]) == longest
    assert TIMEOUTS["MAX_REQUEST_TIMEOUT"].least == HostLimits().run_seconds


@pytest.mark.parametrize(
    ("asked", "used", "said"),
    [
        *((word, "off", []) for word in (" OFF ", "false", "no", "0")),
        *((word, "on", []) for word in ("On", "true", "yes", "1", "")),
        ("none", "off", ["LOG_CONTENT: neither on nor off; off is used"]),
    ],
)
def test_log_content_is_read_as_on_or_off(asked: str, used: str, said: list[str]) -> None:
    """An unknown value counts as off, which keeps contents out of the logs."""
    for environment, dotenv in (({"LOG_CONTENT": asked}, {}), ({}, {"LOG_CONTENT": asked})):
        settled: dict[str, str] = dict(environment)
        assert settle_log_content(settled, dict(dotenv)) == said
        assert settled == {"LOG_CONTENT": used}


def test_what_is_set_nowhere_stays_unset_and_the_environment_wins_over_dotenv() -> None:
    unset: dict[str, str] = {}
    assert settle_log_content(unset, {"LOG_CONTENT": None}) == []
    assert unset == {}
    environment = {"LOG_CONTENT": "off", "MAX_INVOCATION_TIMEOUT": "60"}
    assert settle_log_content(environment, {"LOG_CONTENT": "on"}) == []
    assert settle_timeouts(environment, {"MAX_INVOCATION_TIMEOUT": "soon"}) == []
    assert environment == {"LOG_CONTENT": "off", "MAX_INVOCATION_TIMEOUT": "60", "MAX_REQUEST_TIMEOUT": "3600"}


def test_lines_that_are_written_together_leave_together_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StdioResponseWriter, "write", StdioResponseWriter.write)  # restored after the test
    writes = list[str]()

    class Stdout(StringIO):
        def write(self, text: str) -> int:
            writes.append(text)
            return len(text)

    write_together(Stdout())
    for line in ("a\n", "b\n"):
        StdioResponseWriter().write(line)
    assert writes == []
    gevent.sleep(0.001)
    StdioResponseWriter().write("c\n")
    gevent.sleep(0.001)
    assert writes == ["a\nb\n", "c\n"]


class Lines(ResponseWriter):
    """Keeps what is written."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, data: str) -> None:
        self.text += data

    def done(self) -> None:
        raise NotImplementedError


def test_a_line_that_is_written_in_one_step_is_that_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = InvokeMessage.RetrieverResourceMessage.RetrieverResource(content="ä", score=math.inf)
    bodies = [
        (InvokeMessage.MessageType.TEXT, InvokeMessage.TextMessage(text="ä\n\u2028")),
        (InvokeMessage.MessageType.BLOB, InvokeMessage.BlobMessage(blob=b"\xff")),
        (
            InvokeMessage.MessageType.JSON,
            InvokeMessage.JsonMessage(json_object={"a": [math.nan, Decimal("1.0"), None]}),
        ),
        (
            InvokeMessage.MessageType.RETRIEVER_RESOURCES,
            InvokeMessage.RetrieverResourceMessage(retriever_resources=[sources], context=""),
        ),
    ]
    prompt = [UserPromptMessage(content="?"), AssistantPromptMessage(content="", tool_calls=[])]

    def written() -> str:
        lines = Lines()
        for kind, body in bodies:
            message = AgentInvokeMessage.model_validate({"type": kind, "message": body})
            lines.session_message("s", lines.stream_object(message))
        lines.session_message("s", lines.stream_invoke_object({"prompt_messages": prompt}))
        lines.session_message("s", lines.stream_end_object())
        lines.error(data={"error": "e"})
        lines.heartbeat()
        return lines.text

    before = written()
    for name in ("stream_object", "stream_invoke_object", "put"):
        monkeypatch.setattr(ResponseWriter, name, getattr(ResponseWriter, name))  # restored after the test
    put_in_one_step()

    assert written() == before


@pytest.mark.e2e
def test_the_plugin_starts_with_unusable_timeouts_and_warns() -> None:
    garbage = {"MAX_REQUEST_TIMEOUT": "soon", "MAX_INVOCATION_TIMEOUT": "99999", "INSTALL_METHOD": "local"}
    with subprocess.Popen(
        [sys.executable, "-m", "main"],
        cwd=ROOT,
        env={**os.environ, **garbage},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            lines: list[dict[str, object]] = []
            for line in process.stdout or ():  # ends with the process, which pytest's own limit bounds
                if line.strip():
                    lines.append(json.loads(line))
                if lines and lines[-1].get("event") == "heartbeat":
                    break
        finally:
            process.kill()
    assert lines[0]["name"] == "gpt5_agent", "Dify reads the first line as the manifest"
    said = [line["data"] for line in lines[1:] if line.get("event") == "log"]
    assert [entry["message"] for entry in said if isinstance(entry, dict) and entry["level"] == "WARNING"] == [
        "MAX_REQUEST_TIMEOUT: not a number of seconds; 3600 is used",
        "MAX_INVOCATION_TIMEOUT: 99999 is outside 10 to 600; 600 is used",
    ]
