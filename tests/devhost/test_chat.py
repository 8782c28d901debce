"""`python -m devhost chat`: a conversation on a terminal, from a pipe, and from Python."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from devhost import Host, ScriptedModel
from devhost.cli.commands import main
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject
from devhost.script import Script
from support.plugins import FIXTURES, PUPPET
from support.terminal_session import CTRL_C, CTRL_D, on_a_terminal
from support.waiting import PATIENCE
from tests.devhost import ROOT

pytestmark = pytest.mark.usefixtures("lent_plugins")

PUPPETS = ["--plugin", str(PUPPET), "--examples", str(FIXTURES), "--example", "toolbox"]


def steps(*steps: JsonObject) -> str:
    return json.dumps(steps)


@pytest.fixture
def slow_script(tmp_path: Path) -> Path:
    """An answer that takes longer than any test."""
    file = tmp_path / "slow.yaml"
    turns = [{"text": ["first words ", *["tick "] * 100 * PATIENCE], "delay": 0.1}]
    file.write_text(yaml.safe_dump({"query": "?", "turns": turns, "otherwise": turns}))
    return file


# --- on a terminal ---------------------------------------------------------------------------------------------------


@pytest.mark.processes
def test_ctrl_c_ends_a_turn_and_ctrl_d_the_chat(slow_script: Path) -> None:
    command = ["-m", "devhost", "chat", *PUPPETS, "--script", str(slow_script)]
    with on_a_terminal(command, ROOT) as terminal:
        terminal.wait_for("Ctrl-C ends a turn, Ctrl-D the chat; /help lists the commands.")
        terminal.wait_for("you>")

        terminal.press(steps({"ask": "x"}, {"say": "never said"}) + "\n")
        terminal.wait_for("first words tick")
        terminal.press(CTRL_C)
        terminal.wait_for("stopped: 1 model call · 0 tool calls")
        terminal.wait_for("you>")

        terminal.press(steps({"say": "the second answer"}) + "\n")
        terminal.wait_for("\n")  # the terminal's echo of the question
        answer = terminal.wait_for("0 model calls · 0 tool calls · 0 tokens")
        assert "the second answer\n" in answer
        assert "tick" not in answer
        terminal.wait_for("you>")

        terminal.press("half a question")
        terminal.press(CTRL_C)
        terminal.press("\n")
        terminal.press(CTRL_D)
        assert "model call" not in terminal.wait_for_the_end()
        assert terminal.process.wait(PATIENCE) == 0
    assert "Traceback" not in terminal.shown
    assert "never said" not in terminal.shown.replace('"never said"', "")


# --- from a pipe -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    code: int
    shown: str
    errors: str


type Piped = Callable[..., Ended]


@pytest.fixture
def piped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Piped:
    """Runs a chat whose questions come from a pipe."""

    def piped(*arguments: str, lines: str) -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
        code = main(["chat", *arguments])
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return piped


@pytest.mark.usefixtures("without_pauses")
def test_each_piped_line_is_a_question_that_starts_the_script_from_its_beginning(piped: Piped) -> None:
    script = Script.read(ROOT / "examples" / "helpdesk" / "script.yaml")
    ended = piped("--example", "helpdesk", lines=f"{script.query}\n\n  \nrecovery code\n{script.query}")
    assert ended.code == 0, ended.errors
    first, second, third = ended.shown.split("you> ")[1:]
    assert "Two-factor login with an authenticator app" in first
    assert "2 model calls · 2 tool calls · " in first
    assert "The best 3 hits in the manual for: recovery code" in second
    assert "most similar to: recovery code" in second
    assert "2 model calls · 2 tool calls · " in second
    assert "Keep the ten recovery codes away from your phone" in third
    assert "ROUND" not in ended.shown
    assert "\x1b" not in ended.shown


def test_a_plugin_that_ended_is_started_again(piped: Piped) -> None:
    ended = piped(*PUPPETS, lines="\n".join([steps({"crash": "bye"}), steps({"say": "still there"})]))
    assert ended.code == 0
    assert "the plugin exited with code 3" in ended.shown
    assert "A plugin has ended. The plugins are started again, as the daemon would start it." in ended.shown
    assert "\nstill there\n" in ended.shown


def test_a_line_of_json_is_a_question_of_several_lines_or_a_command(piped: Piped) -> None:
    asked = ['[{"say":\n"from two lines"}]', "  ", "/sources", " /approve\n"]
    ended = piped(*PUPPETS, "--json-lines", lines="\n".join(["", *map(json.dumps, asked)]))
    assert ended.code == 0
    assert "\nfrom two lines\n" in ended.shown
    assert "The last turn has no sources." in ended.shown
    assert "Nothing waits for an answer." not in ended.shown, "with a space before it, it is a question"
    assert ended.shown.count("0 model calls") == 2


@pytest.mark.parametrize("line", ["What now?", '["What now?"]'])
def test_a_line_that_is_not_a_text_in_json_ends_the_chat(piped: Piped, line: str) -> None:
    ended = piped(*PUPPETS, "--json-lines", lines=f"{json.dumps(steps({'say': 'Hi'}))}\n{line}")
    assert ended.code == 2
    assert "\nHi\n" in ended.shown
    assert "line 2 of the input must be a text in JSON" in ended.errors


def test_strict_shows_broken_rules_and_exits_with_1(piped: Piped) -> None:
    ended = piped(*PUPPETS, "--strict", lines=steps({"say": "<think>open"}))
    assert ended.code == 1
    assert "think-left-open" in ended.shown


# --- from Python -----------------------------------------------------------------------------------------------------


def test_a_stopped_run_keeps_its_text_and_the_next_run_is_not_affected() -> None:
    stop = Stop()
    slow = ScriptedModel.of([{"text": ["a ", *["more "] * 100], "delay": 0.05}])
    row = {"type": "log", "message": {"id": "1", "label": "ROUND 1", "status": "start", "data": {}}}

    with Host.start(PUPPET) as host:
        run = host.run(
            "puppet",
            {"query": steps({"emit": row}, {"ask": "x"})},
            model=slow,
            on_message=lambda message: stop.request() if message["type"] == "text" else None,
            stop=stop,
        )
        assert run.error is not None
        assert run.error.kind == "RunStoppedError"
        assert run.outputs.text == "a "
        assert [entry.status for entry in run.outputs.logs] == ["start"]
        assert run.findings == [], "a strategy that is stopped cannot finish its log"
        next_run = host.run("puppet", {"query": steps({"ask": "x"})}, model=ScriptedModel.of([{"text": "clean"}]))
    assert next_run.error is None
    assert next_run.outputs.text == "clean"
