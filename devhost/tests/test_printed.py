"""What plugins print: in the terminal with the plugin's name, in the trace, bounded and harmless."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from devhost import Host, HostLimits, ScriptedModel
from devhost.cli.commands import main
from devhost.process.plugin_process import LONGEST, MOST, PrintedLines
from devhost.process.program import LONGEST_READ, LOST, TransportName, read_lines
from devhost.process.session import Stop, Watcher
from devhost.text import Secrets
from devhost.trace.lines import PrintedLine, read_trace
from support.charts import API_KEY
from support.plugins import CHARTS, FIXTURES, ODDMENTS, PUPPET
from support.waiting import PATIENCE

WHERE = ["--example", "toolbox", "--plugin", str(PUPPET), "--examples", str(FIXTURES), "--no-color"]
PERFORM = {"provider": "devhost-tests/oddments/oddments", "tool_name": "perform"}


class LineRecorder(Watcher):
    def __init__(self, told: Callable[[str], None] = lambda _: None) -> None:
        self.lines: list[tuple[str, str]] = []
        self._told = told

    def printed(self, plugin: str, text: str) -> None:
        self.lines.append((plugin, text))
        self._told(text)


def told(*lines: str, secrets: Secrets | None = None) -> list[str]:
    texts: list[str] = []
    printed = PrintedLines(texts.append)
    printed.hide(secrets or Secrets())
    for line in lines:
        printed.add(line)
    return texts


@pytest.mark.processes
@pytest.mark.parametrize("transport", ["stdio", "tcp", "http"])
def test_print_logging_and_stderr_are_heard_over_every_transport(transport: TransportName) -> None:
    heard = LineRecorder()
    steps = [{"out": "plain\n"}, {"err": "on \udcff stderr\n"}, {"log": "careful"}, {"out": '{"a": 1}\n[2]\n'}]
    with Host.start(PUPPET, transport=transport, watcher=heard) as host:
        run = host.run("puppet", {"query": json.dumps(steps)}, model=ScriptedModel.of([{}]))
        assert run.error is None
    texts = [text for plugin, text in heard.lines if plugin == "puppet"]
    assert sorted(texts) == ["WARNING: careful", "[2]", "on � stderr", "plain", '{"a": 1}']


@pytest.mark.usefixtures("lent_plugins")
def test_the_terminal_and_the_trace_show_lines_of_strategy_and_tools(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "run.jsonl"
    call = {"call": {**PERFORM, "parameters": {"steps": json.dumps([["shout", ["with ", API_KEY[:9], API_KEY[9:]]]])}}}
    steps = [{"say": "The ans"}, {"out": "\x1b[31mred\x1b[0m \x1b[2Jalert\x07\n"}, {"say": "wer."}, call]
    tools = ["--tools", str(ODDMENTS), "--tools", str(CHARTS), "--credential", f"charts.api_key={API_KEY}"]
    query = ["--query", json.dumps(steps), "--trace", str(trace)]
    assert main(["run", *WHERE, *tools, *query]) == 0
    shown = capsys.readouterr().out
    assert "\npuppet | red alert\n" in shown
    assert "oddments | with [secret]\n" in shown
    assert API_KEY not in shown + trace.read_text()
    assert "Installed" not in shown

    printed = [line for line in read_trace(trace).lines if isinstance(line, PrintedLine)]
    assert [(line.plugin, line.text) for line in printed] == [
        ("puppet", "red alert"),
        ("oddments", "with [secret]"),
    ]
    assert printed[0].at <= printed[1].at
    assert main(["replay", str(trace), "--no-color"]) == 0
    assert "The ans\npuppet | red alert\nwer." in capsys.readouterr().out

    assert main(["run", *WHERE, *tools, *query, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["text"] == "The answer."
    assert "oddments | with [secret]\n" in said.err


@pytest.mark.usefixtures("lent_plugins")
def test_a_tools_traceback_is_shown_if_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    call = {"call": {**PERFORM, "parameters": {"steps": json.dumps([["fail", "out of cheese"]])}}}
    arguments = [*WHERE, "--tools", str(ODDMENTS), "--query", json.dumps([call, {"say": "done"}])]
    assert main(["run", *arguments]) == 0
    assert "raise ValueError(text)" not in capsys.readouterr().out.partition("variables ─")[0]
    assert main(["run", *arguments, "--traceback"]) == 0
    shown = capsys.readouterr().out
    before, _, after = shown.partition("raise ValueError(text)")
    assert (
        "tool perform failed: ValueError: out of cheese, tools/perform.py:41\nTraceback (most recent call last):"
        in before
    )
    assert "done" in after


def test_an_endless_print_is_bounded_for_each_run() -> None:
    texts = told(*(f"line {number}" for number in range(MOST + 100)))
    assert texts[-2:] == [f"line {MOST - 1}", f"… further lines of this run are left out, after {MOST}"]


def test_a_long_line_is_cut_and_a_secret_at_the_cut_is_hidden() -> None:
    secret = "sk-0123456789"
    (text,) = told("x" * (LONGEST - 5) + secret + "y" * 100, secrets=Secrets([secret]))
    assert text == "x" * (LONGEST - 5) + "[secr…"
    lines = told("-----BEGIN", "abcdef123", "other", secrets=Secrets(["-----BEGIN\nabcdef123\n"]))
    assert lines == ["[secret]", "[secret]", "other"]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("exit(4)", r"devhost: SystemExit\(4\), strategies/puppet.py:\d+, ends no run: .* raise another exception"),
        ("input('Name: ')", "devhost: input cannot come, because stdin carries the protocol. End with Ctrl-C; .*"),
        ("breakpoint()", "devhost: input cannot come, .*; for breakpoint.* there are remote-pdb and debugpy, .*"),
    ],
)
def test_a_plugin_that_would_wait_for_ever_says_why(expression: str, sentence: str) -> None:
    stop = Stop()
    limits = HostLimits(run_seconds=PATIENCE)
    heard = LineRecorder(lambda line: stop.request() if re.fullmatch(sentence, line) else None)
    query = json.dumps([{"evaluate": expression}])
    with Host.start(PUPPET, watcher=heard, limits=limits) as host:
        run = host.run("puppet", {"query": query}, model=ScriptedModel.of([{}]), stop=stop)
    assert run.error is not None
    assert run.error.kind == "RunStoppedError"


def test_lines_of_a_pipe() -> None:
    pipe = io.BytesIO(b"a\nb\r\n\xff\n" + b"x" * LONGEST_READ + b"y")
    assert list(read_lines(pipe)) == ["a", "b", "�", "x" * LONGEST_READ, "y"]


@pytest.mark.processes
def test_a_message_that_stands_behind_a_print_without_a_newline_is_said_to_be_lost() -> None:
    heard = LineRecorder()
    with Host.start(PUPPET, watcher=heard) as host:
        steps = [{"out": 'half {"event" '}, {"say": "lost"}, {"say": "heard"}]
        run = host.run("puppet", {"query": json.dumps(steps)}, model=ScriptedModel.of([{}]))
    assert run.outputs.text == "heard"
    line, explained = [text for plugin, text in heard.lines if plugin == "puppet"]
    assert line.startswith('half {"event" {"event"')
    assert explained == LOST
