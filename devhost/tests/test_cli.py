"""`devhost run`, as a person and as a program uses it."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.playing import conversation_report
from support.plugins import FIXTURES, PROJECT, PUPPET
from support.waiting import PATIENCE

WHERE = ["--example", "toolbox", "--plugin", str(PUPPET), "--examples", str(FIXTURES)]
LOG = {"type": "log", "message": {"id": "1", "label": "ROUND 1", "status": "success", "data": {"calls": 0}}}
SOURCES = {
    "type": "variable",
    "message": {"variable_name": "sources", "variable_value": [{"number": 1, "title": "Manual"}]},
}

pytestmark = pytest.mark.usefixtures("lent_plugins")


def run(*arguments: str) -> int:
    return main(["run", *WHERE, *arguments])


def test_a_program_reads_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    steps = [{"say": "Hi "}, {"ask": "x"}, {"emit": LOG}, {"emit": SOURCES}, {"show_parameters": None}]
    asked = ["--query", json.dumps(steps), "--strategy", "puppet", "--param", "rounds=9", "--param", "mood=wild"]
    assert run("--json", *asked) == 0
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert report["text"] == "Hi The **answer** is 42."
    assert report["logs"][0]["label"] == "ROUND 1"
    assert report["variables"]["sources"] == [{"number": 1, "title": "Manual"}]
    assert report["variables"]["parameters"]["rounds"] == 9
    assert report["variables"]["parameters"]["mood"] == "wild"
    assert report["model"]["scripted"] is True
    assert report["error"] is None
    assert "scripted model" in shown.err
    assert documented_keys() == {*report, *conversation_report([{}, {}])}


def documented_keys() -> set[str]:
    """Those of the table in devhost/docs/traces.md."""
    page = (PROJECT / "docs" / "traces.md").read_text(encoding="utf-8")
    table = page.partition("## What `--json` prints\n")[2].partition("\n#")[0]
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    return {key for cell in cells for key in re.findall(r"`(\w+)`", cell)}


def test_a_failed_run_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json", "--query", '[{"say": "so far"}, {"fail": "broke"}]') == 1
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert (report["text"], report["error"]["kind"], report["error"]["message"]) == ("so far", "ValueError", "broke")
    assert "ValueError: broke" in shown.err


def test_limits_hold(capsys: pytest.CaptureFixture[str]) -> None:
    long = json.dumps([{"say": "x" * 10_000}])
    assert run("--json", "--query", long, "--limit", "line-bytes=10000") == 1
    assert "more than 10,000 bytes" in json.loads(capsys.readouterr().out)["error"]["message"]


@pytest.mark.processes
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_and_its_plugins(sent: signal.Signals, code: int) -> None:
    begun = {**LOG, "message": {"id": "a", "label": "ROUND 1", "status": "start", "data": {}}}
    query = json.dumps([{"emit": begun}, {"say": "started\n"}, {"freeze": 600}])
    command = [sys.executable, "-m", "devhost", "run", *WHERE, "--query", query]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline() not in ("started\n", ""):
            pass
        process.send_signal(sent)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "Traceback" not in stderr
    where_it_hung = re.search(r"log until Ctrl-C ─+\n… ROUND 1  never finished\n", stdout)
    assert bool(where_it_hung) == (sent is signal.SIGINT)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--example", "nope"], "there is no example 'nope'; there are: bad_strategy, toolbox"),
        (["--strategy", "nope"], "there is no strategy 'nope'; there are: puppet"),
        (
            ["--param", "nope=1"],
            "there is no parameter 'nope'; there are: query, rounds, loud, mood, files, approval, state",
        ),
        (["--param", "query=foo"], "--param query: a question is given with --query, or typed in a chat"),
        (["--param", "rounds"], "--param 'rounds' is not KEY=VALUE"),
        (["--plugin", "/no/such/plugin"], "/no/such/plugin is not a plugin: manifest.yaml is missing"),
        (["--plugin", str(FIXTURES / "toolbox")], "has no agent strategy"),
        (["--plugin", "x" * 300], "xxx/manifest.yaml cannot be used: File name too long"),
        (["--surprise"], "No such option"),
        (
            ["--limit", "patience=3"],
            "--limit: unknown key 'patience'. There are: line-bytes=5242880, launch-seconds=120,",
        ),
        (["--limit", "run-seconds=soon"], "run_seconds: Input should be a valid number"),
        (["--limit", "line-bytes"], "--limit 'line-bytes' is not KEY=VALUE"),
    ],
)
def test_a_mistake_in_the_options_exits_with_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run(*arguments) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""


def test_a_plugin_that_does_not_start_exits_with_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plugin = tmp_path / "puppet"
    shutil.copytree(PUPPET, plugin)
    (plugin / "main.py").write_text("raise SystemExit(1)\n")
    assert run("--plugin", str(plugin), "--json") == 1
    said = capsys.readouterr()
    assert "did not start: the plugin exited with code 1" in said.err
    assert json.loads(said.out)["error"]["kind"] == "PluginStartError"
    (plugin / "main.py").write_text("x = unknown\n")
    assert run("--plugin", str(plugin)) == 1
    said = capsys.readouterr()
    sentence = "the plugin exited with code 1: NameError: name 'unknown' is not defined, puppet/main.py:1\n"
    assert said.err.endswith(sentence)
    assert (said.out + said.err).count("Traceback") == 1
    (plugin / "main.py").write_text("def main(:\n")
    assert run("--plugin", str(plugin)) == 1
    assert "did not start: main.py: line 1: invalid syntax\nthe plugin exited with code 1" in capsys.readouterr().err
    (plugin / "strategies" / "puppet.py").unlink()
    assert run("--plugin", str(plugin)) == 1
    said = capsys.readouterr()
    assert said.err.endswith("puppet did not start: strategies/puppet.py does not exist: the SDK cannot load it\n")
    assert "puppet |" not in said.out
