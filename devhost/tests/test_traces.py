"""--trace: what is written while it happens, and what can be read from it afterwards."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from devhost import Host, ScriptedModel
from devhost.cli.commands import main
from devhost.errors import TraceError
from devhost.process.program import TransportName
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets
from devhost.trace.lines import TraceWriter, is_written, read_trace
from devhost.trace.runs import run_of, traced_runs
from devhost.trace.timeline import timeline
from support.charts import API_KEY
from support.plugins import CHARTS, FIXTURES, PROJECT, PUPPET, TOOLBOX
from support.tracing import FACTS, as_replayed, remove_files, tracing
from support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("lent_plugins")

TOOLBOXES = ["--example", "toolbox", "--plugin", str(PUPPET), "--examples", str(FIXTURES), "--no-color"]
HEADER = json.dumps({"trace": "devhost", "version": 1, "started": "2026-08-01T12:00:00Z", **FACTS})


def lines_of(file: Path) -> list[JsonObject]:
    return [json.loads(line) for line in file.read_text().splitlines()]


# --- written and read ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["stdio", "tcp", "http"])
def test_a_trace_contains_the_run_over_each_transport(tmp_path: Path, transport: TransportName) -> None:
    file = tmp_path / "run.jsonl"
    draw = {"provider": "devhost-tests/toolbox/toolbox", "tool_name": "draw", "parameters": {"size": 9000}}
    steps: list[JsonObject] = [{"say": "Hi 東京 "}, {"call": draw}, {"ask": "hello"}, {"emit": {"type": "log"}}]
    with (
        tracing(file, transport=transport) as writer,
        Host.start(PUPPET, tools=[TOOLBOX], transport=transport, watcher=writer) as host,
    ):
        run = host.run("puppet", {"query": json.dumps(steps)}, model=ScriptedModel.of([{"text": "The answer"}]))
        writer.remark("a remark")
    trace = read_trace(file)
    (traced,) = traced_runs(trace)

    again = run_of(traced, "puppet")
    assert again.outputs == run.outputs
    assert again.elapsed_seconds == run.elapsed_seconds
    assert (again.error, again.findings, again.messages) == (run.error, run.findings, run.messages)
    assert (again.asked, again.session_id) == (run.asked, run.session_id)
    assert [finding.rule for finding in again.findings] == ["message-malformed"]
    assert traced.question == json.dumps(steps)
    assert traced.remark == "a remark"
    assert (trace.header.transport, trace.cut_off) == (transport, False)

    tool, model = traced.calls
    assert (tool.kind, tool.name, tool.request["tool_parameters"], tool.error) == ("tool", "draw", {"size": 9000}, "")
    assert [piece.data["type"] for piece in tool.pieces] == ["image_link", "retriever_resources"]
    assert (model.kind, model.name) == ("llm", "scripted-gpt-5")
    assert "".join(piece.data["delta"]["message"]["content"] for piece in model.pieces) == "The answer"

    times = [line["at"] for line in lines_of(file)[1:]]
    assert times == sorted(times)
    sides = {(line["plugin"], line["from"]) for line in lines_of(file) if line.get("event") == "message"}
    assert sides == {("puppet", "host"), ("puppet", "plugin"), ("toolbox", "host"), ("toolbox", "plugin")}


@pytest.mark.processes
def test_a_killed_run_leaves_what_there_was(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    log = {"type": "log", "message": {"id": "1", "label": "ROUND 1", "status": "start", "data": {}}}
    steps = [{"emit": log}, {"say": "so far\n"}, {"ask": "x"}]
    script = tmp_path / "slow.yaml"
    script.write_text("query: '?'\nturns: &slow [{text: [so, much], delay: 600}]\notherwise: *slow")
    arguments = [*TOOLBOXES, "--script", str(script), "--query", json.dumps(steps), "--trace", str(file)]
    with subprocess.Popen(
        [sys.executable, "-m", "devhost", "run", *arguments], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() not in ("so far\n", ""):
            pass
        meanwhile = read_trace(file)
        process.terminate()  # a plugin whose host is killed outright would stay behind
        process.communicate(timeout=PATIENCE)
    assert traced_runs(meanwhile)[0].streamed[-1].data["message"] == {"text": "so far\n"}
    with file.open("a") as torn:
        torn.write('{"at": 1.5, "event": "mess')

    trace = read_trace(file)
    (traced,) = traced_runs(trace)
    run = run_of(traced, "puppet")
    assert trace.cut_off
    assert (run.outputs.text, run.outputs.logs[0].label) == ("so far\n", "ROUND 1")
    assert run.error is not None
    assert "the trace ends before the run does" in run.error.message
    assert timeline(traced)[0].status == "start"
    assert main(["report", str(file)]) == 0
    page = file.with_suffix(".html").read_text()
    assert "The last line of the trace is cut off" in page
    assert "not ended" in page
    assert "<dd>at least " in page


# --- secrets ---------------------------------------------------------------------------------------------------------


def test_no_secret_is_in_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.jsonl"
    key = "sk-test-0123456789"
    script = tmp_path / "script.yaml"
    script.write_text(
        "query: draw\nturns:\n"
        "- tool_calls: [{name: draw_chart, id: c, arguments: {title: Sales, values: '1,2'}}]\n"
        f"- text: 'The keys are {API_KEY} and {key}.'\n"
    )
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    arguments = ["--tools", str(CHARTS), "--credential", f"charts.api_key={API_KEY}", "--script", str(script)]
    fixed = ["--set", "draw_chart.signature=signed by me"]
    assert main(["run", "--scripted", *arguments, *fixed, "--no-color", "--trace", str(file)]) == 0
    remove_files(capsys.readouterr().out)
    written = file.read_text()
    for secret in (API_KEY, key, "signed by me"):
        assert secret not in written
    assert "The keys are [secret] and [secret]." in run_of(traced_runs(read_trace(file))[0], "").outputs.text
    requests = [line["message"]["data"] for line in lines_of(file) if line.get("message", {}).get("event") == "request"]
    assert {request["credentials"]["api_key"] for request in requests if "credentials" in request} == {"[secret]"}


@pytest.mark.parametrize(
    ("secrets", "region"), [(Secrets(["abc"]), "eu"), (None, "[secret]")], ids=["known", "unknown"]
)
def test_credentials_stay_out_all_of_them_where_no_secret_is_known(
    tmp_path: Path, secrets: Secrets | None, region: str
) -> None:
    credentials = {"pin": "abc", "region": "eu"}
    with TraceWriter(tmp_path / "run.jsonl", secrets) as writer:
        writer.crossed("host", "tools", {"event": "request", "data": {"action": "x", "credentials": credentials}})
        writer.crossed("plugin", "tools", {"event": "heartbeat"})
    _, request = lines_of(tmp_path / "run.jsonl")
    assert request["message"]["data"]["credentials"] == {"pin": "[secret]", "region": region}


# --- whether a run still writes its trace ----------------------------------------------------------------------------


READERS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from devhost.trace.lines import is_written

with ThreadPoolExecutor(4) as threads:
    print(sorted(set(threads.map(is_written, [Path(sys.argv[1])] * int(sys.argv[2])))))
"""
"""A process of its own, because gevent makes the threads of this one take turns."""


def reading(file: Path, times: int) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", READERS, str(file), str(times)], stdout=subprocess.PIPE, text=True)


def test_readers_do_not_take_each_other_for_the_writer(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with TraceWriter(file):
        assert reading(file, 1_000).communicate()[0] == "[True]\n"
    assert reading(file, 10_000).communicate()[0] == "[False]\n"


def test_readers_do_not_keep_a_writer_from_its_trace(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.touch()
    readers = reading(file, 10_000)
    while readers.poll() is None:
        with TraceWriter(file):
            assert is_written(file)
    assert readers.returncode == 0


def test_two_runs_do_not_write_one_trace(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with TraceWriter(file) as writer:
        with pytest.raises(TraceError, match="is being written by another run: name another file"):
            TraceWriter(file)
        writer.notice("It is still there.")
    assert read_trace(file).notices == ("It is still there.",)
    with TraceWriter(Path(os.devnull)), TraceWriter(Path(os.devnull)):
        pass


# --- files that cannot be written or read ----------------------------------------------------------------------------


def test_a_trace_that_cannot_be_written_is_an_error_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *TOOLBOXES, "--trace", str(tmp_path / "no" / "run.jsonl")]) == 2
    said = capsys.readouterr()
    assert "cannot be written: No such file or directory" in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: not a trace of devhost: not valid JSON"),
        ('{"trace": "devhost", "version": 7}\n', "line 1: not a trace of devhost: version: Input should be 1"),
        (f"{HEADER}\n\nx\n", "line 3: not a line of a trace: not valid JSON"),
        (f'{HEADER}\n{{"at": 1, "event": "dance"}}\n', "line 2: not a line of a trace: Input tag 'dance'"),
        (
            f'{HEADER}\n{{"at": 1, "event": "message", "from": "host"}}\n',
            "line 2: not a line of a trace: message.plugin",
        ),
    ],
)
def test_the_error_for_a_damaged_trace_names_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text(text)
    for command in ("replay", "report"):
        assert main([command, str(file)]) == 2
        assert f"Error: {file}, {words}" in capsys.readouterr().err


@pytest.mark.parametrize("kept", ["query: hello\n", "\n", '{"a": 1}', "\x00\xff"])
def test_only_a_trace_is_overwritten_by_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: str) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(kept)
    assert main(["run", *TOOLBOXES, "--trace", str(file)]) == 2
    said = capsys.readouterr()
    assert f"--trace {file} exists and is not a trace of devhost: name a new file, or an older trace" in said.err
    assert (said.out, file.read_text()) == ("", kept)


# --- replay ----------------------------------------------------------------------------------------------------------


def test_a_replay_shows_what_the_run_showed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.jsonl"
    assert main(["run", *TOOLBOXES, "--trace", str(file)]) == 0
    shown = capsys.readouterr().out
    assert main(["replay", str(file), "--no-color"]) == 0
    assert capsys.readouterr().out == as_replayed(shown)
    remove_files(shown)


def test_a_conversation_is_replayed_turn_by_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "chat.jsonl"
    questions = [json.dumps([{"say": words}]) for words in ("one", "two")]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(questions)))
    assert main(["chat", *TOOLBOXES, "--trace", str(file)]) == 0
    capsys.readouterr()
    assert main(["replay", str(file), "--no-color"]) == 0
    shown = capsys.readouterr().out
    one, two = (f"question  {question}" for question in questions)
    places = [shown.index(words) for words in (one, "\none\n", two, "\ntwo\n")]
    assert places == sorted(places)
    assert shown.count("finished in ") == 2
    assert main(["report", str(file)]) == 0
    page = file.with_suffix(".html").read_text()
    assert "A conversation of 2 turns" in page
    assert page.count('class="card timeline"') == 2
