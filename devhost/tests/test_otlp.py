"""--otlp sends a run as spans, which a server reads with OpenTelemetry's own protocol classes."""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import gevent
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from devhost.cli.commands import main
from support.plugins import FIXTURES, PUPPET

pytestmark = pytest.mark.usefixtures("lent_plugins")

SECRET = "the word that must stay secret"
DRAW = {"provider": "devhost-tests/toolbox/toolbox", "tool_name": "draw", "parameters": {"size": 70}}
ASKS = [{"ask": SECRET}, {"call": DRAW}]


@dataclass
class Server:
    address: str
    status: int = 200
    paths: list[str] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def named(self, name: str) -> Span:
        (found,) = [span for span in self.spans if span.name == name]
        return found


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.paths.append(self.path)
            request = ExportTraceServiceRequest()
            request.MergeFromString(body)
            for resource in request.resource_spans:
                received.spans += [span for scope in resource.scope_spans for span in scope.spans]
            self.send_response(received.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        received = Server(f"http://127.0.0.1:{listening.server_port}")
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield received
        finally:
            listening.shutdown()
            thread.join()


def run(*arguments: str, steps: object = ASKS) -> int:
    where = ["--example", "toolbox", "--plugin", str(PUPPET), "--examples", str(FIXTURES)]
    return main(["run", *where, "--query", json.dumps(steps), *arguments])


def attributes(span: Span) -> dict[str, Any]:
    return {
        each.key: [value.string_value for value in each.value.array_value.values]
        or each.value.string_value
        or each.value.int_value
        for each in span.attributes
    }


def test_a_run_is_a_span_with_its_model_and_tool_calls_inside(server: Server) -> None:
    assert run("--otlp", server.address) == 0

    assert server.paths == ["/v1/traces"]
    agent = server.named("invoke_agent puppet")
    chat = server.named("chat scripted-gpt-5")
    assert {span.trace_id for span in server.spans} == {agent.trace_id}
    assert agent.parent_span_id == b""
    assert chat.parent_span_id == agent.span_id
    assert agent.start_time_unix_nano <= chat.start_time_unix_nano <= chat.end_time_unix_nano
    assert chat.end_time_unix_nano <= agent.end_time_unix_nano
    said = attributes(chat)
    assert said["gen_ai.operation.name"] == "chat"
    assert said["gen_ai.request.model"] == "scripted-gpt-5"
    assert said["gen_ai.usage.input_tokens"] == attributes(agent)["gen_ai.usage.input_tokens"] > 0
    assert said["gen_ai.usage.output_tokens"] == attributes(agent)["gen_ai.usage.output_tokens"] > 0
    assert said["gen_ai.response.finish_reasons"] == ["stop"]
    assert attributes(agent)["gen_ai.agent.name"] == "puppet"
    tool = server.named("execute_tool draw")
    assert tool.parent_span_id == agent.span_id
    assert attributes(tool)["gen_ai.tool.name"] == "draw"


def test_contents_are_sent_only_where_they_are_asked_for(server: Server) -> None:
    assert run("--otlp", server.address) == 0
    assert SECRET not in str(server.spans)
    server.spans.clear()

    assert run("--otlp", server.address, "--otlp-contents") == 0
    said = attributes(server.named("chat scripted-gpt-5"))
    assert SECRET in said["gen_ai.input.messages"]
    (answer,) = json.loads(said["gen_ai.output.messages"])
    assert json.loads(attributes(server.named("execute_tool draw"))["gen_ai.tool.call.arguments"]) == {"size": 70}
    assert answer["parts"] == [{"type": "text", "content": "The **answer** is 42."}]


@pytest.mark.parametrize("options", [[], ["--otlp-contents"]])
def test_a_run_that_failed_is_a_span_with_an_error(options: list[str], server: Server) -> None:
    broken = {**DRAW, "tool_name": "no_luck"}
    assert run("--otlp", server.address, *options, steps=[{"call": broken}, {"fail": "no luck"}]) == 1

    agent = server.named("invoke_agent puppet")
    tool = server.named("execute_tool no_luck")
    assert attributes(agent)["error.type"]
    for span in (agent, tool):
        assert span.status.code == Status.STATUS_CODE_ERROR
        assert bool(span.status.message) == bool(options)
    assert ("no luck" in str(server.spans)) == bool(options)


def test_a_run_that_was_broken_off_is_sent_too(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def break_off(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("devhost.terminal.turn_view.TurnView.show", break_off)
    assert run("--otlp", server.address) == 130
    assert "invoke_agent puppet" in {span.name for span in server.spans}

    server.status = 400
    assert run("--otlp", server.address) == 130
    assert "no OTLP server took the spans" in capsys.readouterr().err


def test_a_fork_after_sending_does_not_let_other_greenlets_run_in_the_child(server: Server) -> None:
    """The child of one plugin's start would start the other plugins a second time, on the same pipes."""
    assert run("--otlp", server.address) == 0
    ran: list[int] = []
    waiting = gevent.spawn(lambda: ran.append(os.getpid()))

    child = os.fork()
    if child == 0:
        os._exit(len(ran))
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    waiting.join()


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://here", "http://", "http://a:b"])
def test_what_is_no_address_is_refused_before_the_run(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--otlp", url) == 2
    assert f"--otlp {url!r} is not the address of an OTLP server" in capsys.readouterr().err


@pytest.mark.parametrize(("status", "code"), [(200, 0), (400, 2)])
def test_a_password_in_the_address_is_not_shown(
    status: int, code: int, server: Server, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    server.status = status
    assert run("--otlp", server.address.replace("http://", "http://me:hunter2secret@")) == code
    said = capsys.readouterr().err

    assert f"{server.address}/v1/traces" in said
    assert ("no OTLP server took the spans" in said) == bool(code)
    assert caplog.messages == []
    assert "hunter2secret" not in said


def test_contents_without_a_server_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--otlp-contents") == 2
    assert "--otlp-contents goes with --otlp URL" in capsys.readouterr().err
