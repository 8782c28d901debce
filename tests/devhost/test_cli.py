"""`python -m devhost run`, as a person and as a program uses it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.cli.scenario_options import HOME
from tests.devhost.conftest import FIXTURES, PUPPET

WHERE = ["--example", "toolbox", "--plugin", str(PUPPET), "--examples", str(FIXTURES)]
LOG = {"type": "log", "message": {"id": "1", "label": "ROUND 1", "status": "success", "data": {"calls": 0}}}
SOURCES = {
    "type": "variable",
    "message": {"variable_name": "sources", "variable_value": [{"number": 1, "title": "Manual"}]},
}


def devhost(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "devhost", "run", *WHERE, *arguments]
    return subprocess.run(command, cwd=HOME, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.e2e
def test_a_person_sees_the_run() -> None:
    ended = devhost()
    assert ended.returncode == 0
    assert "scripted model: the answers are written in script.yaml, no provider is called" in ended.stdout
    assert "The **answer** is 42." in ended.stdout
    assert "✗ CALL draw  0.500 s" in ended.stdout
    assert "picture.png" in ended.stdout
    assert "15 tokens = 12 prompt + 3 completion" in ended.stdout
    assert "\x1b" not in ended.stdout
    (path,) = [word for word in ended.stdout.split() if word.endswith(".png") and word.startswith("/tmp")]
    assert Path(path).stat().st_size == 9000
    Path(path).unlink()
    Path(path).parent.rmdir()


@pytest.mark.e2e
def test_a_program_reads_one_json_object() -> None:
    steps = [{"say": "Hi "}, {"ask": "x"}, {"emit": LOG}, {"emit": SOURCES}, {"show_parameters": None}]
    ended = devhost(
        "--json", "--query", json.dumps(steps), "--strategy", "puppet", "--param", "rounds=9", "--param", "mood=wild"
    )
    assert ended.returncode == 0
    report = json.loads(ended.stdout)
    assert report["text"] == "Hi The **answer** is 42."
    assert report["logs"][0]["label"] == "ROUND 1"
    assert report["sources"] == [{"number": 1, "title": "Manual"}]
    assert report["variables"]["parameters"]["rounds"] == 9
    assert report["variables"]["parameters"]["mood"] == "wild"
    assert report["model"]["scripted"] is True
    assert report["error"] is None
    assert {"files", "json", "usage", "findings"} <= set(report)
    assert "scripted model" in ended.stderr


@pytest.mark.e2e
def test_a_run_that_fails_exits_with_1() -> None:
    ended = devhost("--json", "--query", '[{"say": "so far"}, {"fail": "broke"}]')
    report = json.loads(ended.stdout)
    assert ended.returncode == 1
    assert (report["text"], report["error"]["kind"], report["error"]["message"]) == ("so far", "ValueError", "broke")
    assert "ValueError: broke" in ended.stderr


@pytest.mark.e2e
def test_a_variable_called_usage_is_printed_and_shown() -> None:
    usage = {"type": "variable", "message": {"variable_name": "usage", "variable_value": {"a": 1}}}
    ended = devhost("--json", "--query", json.dumps([{"emit": usage}]))
    assert (ended.returncode, json.loads(ended.stdout)["usage"]) == (0, {"a": 1})
    assert "Traceback" not in ended.stderr


@pytest.mark.e2e
def test_the_json_comes_whatever_becomes_of_the_view(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("devhost.terminal.run_view.RunView.close", fail)
    with pytest.raises(ZeroDivisionError):
        main(["run", *WHERE, "--json", "--query", '[{"say": "Hi"}]'])
    assert json.loads(capsys.readouterr().out)["text"] == "Hi"


@pytest.mark.e2e
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["run", *WHERE, "--query", "[]"]])
def test_a_full_disk_is_said_in_one_sentence(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "devhost", *arguments]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command, cwd=HOME, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert ended.returncode == 1
    assert ended.stderr == "Error: the output cannot be written: No space left on device\n"


@pytest.mark.e2e
def test_an_error_that_is_no_full_disk_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr("devhost.terminal.run_view.RunView.close", fail)
    with pytest.raises(ConnectionRefusedError):
        main(["run", *WHERE, "--query", "[]"])


@pytest.mark.e2e
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_cleanly(sent: signal.Signals, code: int) -> None:
    query = json.dumps([{"say": "started\n"}, {"ask": "x"}, {"freeze": 60}])
    command = [sys.executable, "-m", "devhost", "run", *WHERE, "--query", query]
    with subprocess.Popen(command, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline() not in ("started\n", ""):
            pass
        process.send_signal(sent)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == code
    assert "Traceback" not in stderr


HIT_WHERE_EXCEPTIONS_ARE_DROPPED = """
import os, signal, threading, weakref
from devhost.cli.ending import end_with_signals
end_with_signals()
thread = threading.Thread()
died = weakref.ref(thread, lambda _: os.kill(os.getpid(), signal.{sent}))
del thread
threading.Event().wait(60)
"""


@pytest.mark.parametrize(("sent", "code"), [("SIGINT", -signal.SIGINT), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_that_strikes_in_a_finalizer_ends_it_too(sent: str, code: int) -> None:
    program = HIT_WHERE_EXCEPTIONS_ARE_DROPPED.format(sent=sent)
    ended = subprocess.run([sys.executable, "-c", program], cwd=HOME, timeout=20, capture_output=True, check=False)
    assert ended.returncode == code
    assert b"Exception ignored" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--example", "nope"], "there is no example 'nope'; there are: toolbox"),
        (["--strategy", "nope"], "there is no strategy 'nope'; puppet has: puppet"),
        (["--param", "nope=1"], "puppet has no parameter 'nope' to set; there are: query, rounds, loud, mood"),
        (["--param", "tools=[]"], "puppet has no parameter 'tools' to set"),
        (["--param", "query=foo"], "--param query: a question is given with --query, or typed in a chat"),
        (["--param", "rounds"], "--param 'rounds' is not KEY=VALUE"),
        (["--param", "rounds=many"], "rounds: invalid literal"),
        (["--param", "mood=odd"], "value odd not in options ['calm', 'wild']"),
        (["--plugin", "/no/such/plugin"], "it has no manifest.yaml"),
        (["--plugin", str(FIXTURES / "toolbox")], "has no agent strategy"),
        (["--surprise"], "No such option"),
    ],
)
def test_what_is_asked_wrongly_exits_with_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["run", *WHERE, *arguments]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""


@pytest.mark.e2e
def test_a_plugin_that_does_not_start_exits_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSTALL_METHOD", "ignored")  # devhost says how it runs a plugin
    monkeypatch.setenv("MAX_WORKER", "not a number")
    assert main(["run", *WHERE]) == 1
    assert "did not start: the plugin exited with code 1" in capsys.readouterr().err
    assert main(["run", *WHERE, "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "PluginStartError"
    assert "did not start: the plugin exited with code 1" in error["message"]


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    assert "--param KEY=VALUE" in capsys.readouterr().out
