"""`devhost flow chat` and a script's conversation, over the engine."""

import io
import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from devhost.cli.commands import main
from devhost.errors import FlowFileError
from devhost.flow.turn import FlowTurn
from devhost.protocol.wire import JsonObject
from support.flow_documents import START, answer, chain, chatflow, mixed, node, tool, workflow
from support.terminal_session import CTRL_C, CTRL_D, on_a_terminal
from tests.flows.conftest import FIXTURES
from tests.flows.playing import ROOT, Played
from tests.flows.test_human_input import EDGES, NODES

KEEP = {"variable_selector": ["conversation", "seen"], "input_type": "variable", "operation": "append"}
SEEN = {"id": "1", "name": "seen", "value_type": "array[string]", "value": []}


@pytest.fixture
def counting(tmp_path: Path) -> Path:
    """A chatflow that puts every question into the list `seen`."""
    keep = node("assigner", "keep", version="2", items=[{**KEEP, "value": ["sys", "query"]}])
    says = answer("{{#sys.dialogue_count#}} in {{#sys.conversation_id#}}")
    return chatflow(tmp_path, [START, keep, says], chain("start", "keep", "answer"), conversation_variables=[SEEN])


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """What stands in it is typed."""
    bytes_ = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(bytes_))
    return bytes_


def written(folder: Path, script: JsonObject) -> str:
    file = folder / "script.yaml"
    file.write_text(yaml.safe_dump(script), encoding="utf-8")
    return str(file)


def test_variables_the_id_and_the_count_live_on_until_a_reset(
    counting: Path, pipe: io.BytesIO, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe.write(b"/log\none\ntwo\n/variables\n/log\n/reset\n/variables\nthree\n/nothing\n")
    pipe.seek(0)

    assert main(["flow", "chat", str(counting)]) == 0
    shown = capsys.readouterr().out

    turns = re.findall(r"^(\d) in ([0-9a-f-]{36})$", shown, re.MULTILINE)
    assert [count for count, _ in turns] == ["1", "2", "1"]
    (first, second, third) = (conversation for _, conversation in turns)
    assert first == second != third
    before, after = re.findall(r"^seen +(\[.*\])", shown, re.MULTILINE)
    assert (before, after) == ('["one", "two"]', "[]")
    assert "There was no turn yet." in shown
    assert "✓ Keep  assigner" in shown
    assert "A new conversation begins" in shown
    assert "/nothing is not a command of the chat, and was not sent." in shown


def test_a_file_goes_with_the_next_message_alone(
    tmp_path: Path, pipe: io.BytesIO, capsys: pytest.CaptureFixture[str]
) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Ann")
    names = node(
        "template-transform",
        "names",
        variables=[{"variable": "files", "value_selector": ["sys", "files"]}],
        template="{{ files | length }} files",
    )
    file = chatflow(tmp_path, [START, names, answer("{{#names.output#}}")], chain("start", "names", "answer"))
    pipe.write(f"/file {tmp_path}/gone.txt\n/file '{letter}'\n/reset\none\ntwo\n".encode())
    pipe.seek(0)

    assert main(["flow", "chat", str(file)]) == 0
    shown = capsys.readouterr().out
    assert f"the file '{tmp_path}/gone.txt' cannot be read: No such file" in shown
    assert "letter.txt goes with the next message." in shown
    assert re.findall(r"^(\d) files$", shown, re.MULTILINE) == ["1", "0"]


def test_a_tool_plugin_that_ended_is_started_again(
    tmp_path: Path, pipe: io.BytesIO, capsys: pytest.CaptureFixture[str]
) -> None:
    perform = tool("oddments", "perform", steps=mixed("{{#sys.query#}}"))
    file = chatflow(tmp_path, [START, perform, answer("{{#perform.text#}}")], chain("start", "perform", "answer"))
    pipe.write(b'[["crash", null]]\n[["say", "still there"]]\n')
    pipe.seek(0)

    assert main(["flow", "chat", str(file), "--tools", str(FIXTURES / "oddments")]) == 0
    first, second = capsys.readouterr().out.split("A plugin has ended. The plugins are started again")
    assert "the plugin exited with code 3" in first
    assert "still there" in second


def test_a_value_that_is_not_of_the_declared_type_is_told(counting: Path) -> None:
    counting.write_text(counting.read_text(encoding="utf-8").replace("value: []", "value: many"), encoding="utf-8")

    with pytest.raises(
        FlowFileError, match=r"variable 'seen' is declared as array\[string\], which its value does not"
    ):
        Played.of(counting, FlowTurn("one"), None, {})


def test_a_script_plays_its_whole_conversation(
    counting: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = written(tmp_path, {"query": "one", "then": [{"query": "two"}]})

    assert main(["flow", str(counting), "--script", script, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["conversation"] == {"seen": ["one", "two"]}
    assert [turn["conversation"] for turn in report["earlier_turns"]] == [{"seen": ["one"]}]

    script = written(tmp_path, {"query": "one", "then": [{"query": "two"}]})
    for alone in (["--alone"], ["--query", "three"]):
        main(["flow", str(counting), "--script", script, "--json", *alone])
        assert "earlier_turns" not in json.loads(capsys.readouterr().out)


def test_a_form_without_an_answer_stays_open(
    tmp_path: Path, pipe: io.BytesIO, capsys: pytest.CaptureFixture[str]
) -> None:
    del pipe
    assert main(["flow", str(chatflow(tmp_path, NODES, EDGES)), "--query", "it"]) == 1
    shown = capsys.readouterr().out
    assert "One moment. \n" in shown
    assert "… Form  human-input  waits for an answer\n" in shown
    assert "answers: form: ok or no or timeout; form.when: now or later" in shown


def test_a_workflow_has_no_chat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    field = {"variable": "word", "label": "Word", "type": "paragraph", "required": True}
    start = node("start", "start", variables=[field])
    file = workflow(tmp_path, [start, node("end", "end", outputs=[])], chain("start", "end"))

    assert main(["flow", "chat", str(file)]) == 2
    assert f"{file} is a workflow and has no conversation: play it with devhost flow FILE" in capsys.readouterr().err


def test_a_person_answers_the_form_at_the_terminal(tmp_path: Path) -> None:
    file = chatflow(tmp_path, NODES, EDGES)
    with on_a_terminal(["-m", "devhost", "flow", "chat", str(file)], ROOT) as terminal:
        terminal.wait_for("you>")
        terminal.press("the mail\n")
        assert "Form waits for an answer:\nSend the mail?\n" in terminal.wait_for("takes: the mail)>")
        for typed, asked in (("it is right\n", "when>"), ("1\n", "button>"), ("1\n", "ok now: Send the mail?")):
            terminal.press(typed)
            terminal.wait_for(asked)

        terminal.wait_for("you>")
        terminal.press("another\n")
        terminal.wait_for("takes: another)>")
        terminal.press(CTRL_C)
        terminal.wait_for("node 'Form' (form) was left without an answer")
        terminal.wait_for("you>")
        terminal.press(CTRL_D)
        terminal.wait_for_the_end()


def test_ctrl_c_at_a_form_ends_the_command_without_the_next_turn(tmp_path: Path) -> None:
    chatflow(tmp_path, NODES, EDGES)
    script = tmp_path / "script.yaml"
    script.write_text("{flow: flow.yml, query: the mail, then: [{query: another}]}")
    with on_a_terminal(["-m", "devhost", "flow", "--script", str(script)], ROOT) as terminal:
        terminal.wait_for("takes: the mail)>")
        terminal.press(CTRL_C)
        assert "another" not in terminal.wait_for_the_end()
    assert terminal.process.wait() == 130
