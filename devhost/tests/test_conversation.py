"""A conversation in which calls wait: what the person types, and what each run leaves to the next."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from devhost.protocol.wire import JsonObject
from devhost.script import Script
from support.plugins import FIXTURES, PUPPET

pytestmark = pytest.mark.usefixtures("lent_plugins")

WHERE = ["--plugin", str(PUPPET), "--examples", str(FIXTURES), "--example", "toolbox", "--no-color"]
SAY_PARAMETERS: JsonObject = {"say_parameters": ["approval", "query", "state"]}
DRAW: JsonObject = {
    "call": {"provider": "devhost-tests/toolbox/toolbox", "tool_name": "repeat", "parameters": {"word": "ho"}}
}
FAIL: JsonObject = {"fail": "broke"}


def written(*steps: JsonObject) -> str:
    return json.dumps(steps)


def leaving(*steps: JsonObject) -> str:
    """A question after which a call waits; these are the steps of the run that answers it."""
    return written({"leave": written(*steps)})


class Chat:
    """Chats with piped lines."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *lines: str, arguments: tuple[str, ...] = ()) -> list[str]:
        """What was shown after each line."""
        piped = io.TextIOWrapper(io.BytesIO("\n".join(lines).encode()))
        self._monkeypatch.setattr(sys, "stdin", piped)
        code = main(["chat", *WHERE, *arguments])
        said = self._capsys.readouterr()
        assert code == 0, said.err
        return [shown.partition("\n")[2] for shown in said.out.split("you> ")[1:]]


@pytest.fixture
def chat(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Chat:
    return Chat(capsys, monkeypatch)


def parameters(shown: str) -> dict[str, Any]:
    """As the strategy said them."""
    found: dict[str, Any] = json.loads(shown.splitlines()[0])
    return found


# --- a person answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/approve", "yes"),
        ("/Approve", "yes"),
        ("/reject", "no"),
        ("/reject   not today", "no: not today"),
        ("only the first", "only the first"),
        ("{{#s.x#}}", "{{#s.x#}}"),
    ],
)
def test_the_next_run_gets_the_answer_and_the_state(chat: Chat, typed: str, said: str) -> None:
    waiting, answered = chat(leaving(SAY_PARAMETERS), typed)

    assert "waiting for your answer:\ndraw" in waiting
    assert '{"what": "a cat"}' in waiting
    assert "Type /approve or /reject REASON" in waiting
    assert parameters(answered) == {"approval": said, "query": said, "state": written(SAY_PARAMETERS)}
    assert "waiting" not in answered
    assert "/approve" not in answered


def test_a_state_goes_from_turn_to_turn_although_nothing_waits(chat: Chat) -> None:
    left = {"emit": {"type": "variable", "message": {"variable_name": "state", "variable_value": "{{#s.x#}}"}}}

    first, second, third = chat(written(left), written(SAY_PARAMETERS), written(SAY_PARAMETERS))

    assert "waiting" not in first
    assert parameters(second)["state"] == "{{#s.x#}}"
    assert parameters(second)["approval"] == written(SAY_PARAMETERS)
    assert parameters(third) == {"approval": "", "query": written(SAY_PARAMETERS), "state": ""}


def test_an_unknown_command_is_not_sent_and_the_calls_still_wait(chat: Chat) -> None:
    lines = ("/help", "/aprove it", "/", "/approve the first", " /approve")
    _, helped, misspelt, bare, condition, answered = chat(leaving(SAY_PARAMETERS), *lines)

    assert helped.startswith("Commands:\n  /approve ")
    assert all(command in helped for command in ("/reject REASON", "/log", "/sources", "/param KEY=VALUE", "/reset"))
    assert "To send the agent a text that begins with a slash, type a space before it." in helped
    assert misspelt == f"/aprove is not a command of the chat, and was not sent.\n{helped}"
    assert bare == f"/ is not a command of the chat, and was not sent.\n{helped}"
    assert condition == "/approve takes no words. To answer with a condition, type it without /approve.\n"
    assert parameters(answered)["approval"] == "/approve", "a space before a slash sends the text"


def test_a_state_that_the_user_sets_is_not_replaced(chat: Chat) -> None:
    own = written(SAY_PARAMETERS)

    waiting, refused, answered = chat(leaving(FAIL), "/approve", "yes", arguments=("--param", f"state={own}"))

    assert "waiting for your answer" in waiting
    assert "/approve" not in waiting
    assert refused == "Nothing waits for an answer.\n"
    assert parameters(answered) == {"approval": "", "query": "yes", "state": own}


# --- a run that fails ------------------------------------------------------------------------------------------------


def test_a_failed_run_that_called_no_tool_leaves_the_calls_waiting(chat: Chat) -> None:
    _, failed, again = chat(leaving(SAY_PARAMETERS, FAIL), "/approve", "/approve")

    assert "ValueError: broke" in failed
    assert "Type /approve or /reject REASON" in failed
    assert parameters(again)["state"] == written(SAY_PARAMETERS, FAIL)


def test_a_failed_run_that_called_a_tool_drops_a_state_in_which_calls_waited(chat: Chat) -> None:
    _, failed, refused, after = chat(leaving(DRAW, FAIL), "/approve", "/approve", written(SAY_PARAMETERS))

    assert "0 model calls · 1 tool call" in failed
    assert "The state is dropped, because this run called tools" in failed
    assert "Type /approve" not in failed
    assert refused == "Nothing waits for an answer.\n"
    assert not parameters(after)["state"]


# --- commands to the chat itself -------------------------------------------------------------------------------------


def test_the_last_runs_log_and_sources_are_shown(chat: Chat) -> None:
    log: JsonObject = {"type": "log", "message": {"id": "1", "label": "ROUND 1", "status": "success", "data": {}}}
    sources = [{"number": 1, "title": "Manual", "document_id": "en/manual.md"}]
    left: JsonObject = {
        "emit": {"type": "variable", "message": {"variable_name": "sources", "variable_value": sources}}
    }

    before, _, tree, cited = chat("/log", written({"emit": log}, left), "/LOG", "/sources")

    assert before == "There was no turn yet.\n"
    assert "✓ ROUND 1" in tree
    assert "Manual" in cited


def test_reset_empties_memory_and_state(chat: Chat) -> None:
    asks = written({"say_parameters": ["model", "state"]})
    _, reset, approved, answered = chat(leaving(FAIL), "/reset", "/approve", asks)

    assert reset == "A new conversation begins: memory and state are empty.\n"
    assert approved == "Nothing waits for an answer.\n"
    said = parameters(answered)
    assert said["state"] == ""
    assert said["model"]["history_prompt_messages"] == []


def test_a_parameter_is_set_for_the_next_runs_if_a_run_takes_it(chat: Chat) -> None:
    asks = written({"say_parameters": ["rounds"]})
    typed = ("/param rounds", "/param query=x", "/param nothing=1", '/param rounds={"variable": "no.such"}')
    *refused, first, changed, second, _, third = chat(*typed, asks, "/param rounds=3", asks, "/reset", asks)

    said = ("'rounds' is not KEY=VALUE", "a question is ", "there is no parameter 'nothing'", "does not exist")
    for note, words in zip(refused, said, strict=True):
        assert words in " ".join(note.split())
    assert parameters(first) == {"rounds": 2}
    assert changed == "rounds is set for the next messages.\n"
    assert parameters(second) == parameters(third) == {"rounds": 3}


# --- a script's conversation -----------------------------------------------------------------------------------------


def script(tmp_path: Path, then: list[JsonObject], **more: object) -> Path:
    """Its question leaves a call waiting; what answers it asks the model, and says the parameters."""
    query = leaving(SAY_PARAMETERS, {"ask": "x"}, {"leave_again": None})
    file = tmp_path / "script.yaml"
    file.write_text(yaml.safe_dump({"query": query, "turns": [{"text": "unused"}], "then": then, **more}))
    return file


def run(file: Path, *arguments: str) -> int:
    return main(["run", *WHERE, "--script", str(file), *arguments])


def test_a_script_says_more_than_its_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    then = [
        {"query": "yes", "turns": [{"text": "the first answer"}]},
        {"query": "go on", "approval": '{"call_1": true}', "turns": [{"text": "the second answer"}]},
        {"query": "yes", "turns": [{"text": "the third answer"}]},
    ]

    assert run(script(tmp_path, then), "--json") == 0

    said = capsys.readouterr()
    last = json.loads(said.out)
    first, second, third = last["earlier_turns"]
    assert first["variables"]["pending_calls"][0]["tool"] == "draw"
    turns = (second, third, last)
    answers = ["the first answer", "the second answer", "the third answer"]
    assert [turn["text"].partition("\n")[2] for turn in turns] == answers
    assert [parameters(turn["text"])["approval"] for turn in turns] == ["yes", '{"call_1": true}', "yes"]
    assert [shown.partition("\n")[0] for shown in said.err.split("\nquestion  ")[2:]] == ["yes", "go on", "yes"]


def test_the_scripts_own_question_plays_the_conversation_unless_it_is_asked_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = script(tmp_path, [{"query": "yes", "turns": [{"text": "approved"}]}])
    assert run(file, "--json", "--query", Script.read(file).query) == 0
    assert len(json.loads(capsys.readouterr().out)["earlier_turns"]) == 1

    assert run(file, "--json", "--alone") == 0
    first = json.loads(capsys.readouterr().out)
    assert "earlier_turns" not in first
    assert first["variables"]["pending_calls"]

    state = f"state={first['variables']['state']}"
    assert run(file, "--json", "--query", "yes", "--param", "approval=yes", "--param", state) == 0
    said, _, answer = json.loads(capsys.readouterr().out)["text"].partition("\n")
    assert json.loads(said)["approval"] == "yes"
    assert answer == "approved"


def test_a_scripts_conversation_ends_with_a_turn_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = {"turns": [{"error": {"type": "InvokeBadRequestError", "message": "no"}}]}

    assert run(script(tmp_path, [{"query": each, **said} for each in ("one", "two", "three")])) == 1

    shown = capsys.readouterr().out
    assert "The conversation ends here, before 2 further messages of the script." in shown
    assert "\nquestion  one\n" in shown
    assert "\nquestion  two\n" not in shown


# --- the panel of the tools ------------------------------------------------------------------------------------------


def test_a_tools_panel_can_take_the_conversations_id_and_the_number_of_the_message(chat: Chat, tmp_path: Path) -> None:
    script = {
        "query": written(),
        "panel": {"repeat": {"word": "{{#sys.dialogue_count#}} in {{#sys.conversation_id#}}", "times": "3"}},
        "turns": [{"text": "unused"}],
    }
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(script))
    ask = written({"say_parameters": ["tools"]})
    arguments = ("--script", str(tmp_path / "script.yaml"), "--set", "repeat.times=4")

    panels = [panel(shown) for shown in chat(ask, ask, arguments=arguments)]

    assert [each["times"] for each in panels] == [4, 4]
    turns, conversations = zip(*(each["word"].split(" in ") for each in panels), strict=True)
    assert turns == ("1", "2")
    assert len(set(conversations)) == 1
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", conversations[0])


def panel(shown: str) -> dict[str, Any]:
    (tool,) = [tool for tool in parameters(shown)["tools"] if tool["identity"]["name"] == "repeat"]
    found: dict[str, Any] = tool["runtime_parameters"]
    return found
