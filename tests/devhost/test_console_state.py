"""What a conversation waits for, from its turns and its child."""

import json
from pathlib import Path

import pytest

from devhost import NodeOutputs, Run, RunError
from devhost.console.asking import ChildFacts, State, approved, rejected, said, state_of, suggestion, waiting_of
from devhost.console.runs import MOST_BYTES, OUTPUT, SETUP, TRACE, RunFolder, Setup, last_printed
from devhost.node.outputs.run import CallsMade
from support.tracing import tracing
from tests.devhost import ROOT

CALL = {"id": "call_1", "tool": "draw", "arguments": {"what": "a cat"}}


def turn(*pending: object, error: RunError | None = None, **asked: int) -> Run:
    variables = {"state": "kept", "pending_calls": list(pending)}
    outputs = NodeOutputs("", [], [], {}, variables, [], 0)
    return Run("puppet", outputs, error, [], [], 0.0, CallsMade(asked))


def going(told: int) -> ChildFacts:
    return ChildFacts(told, None)


FAILED = RunError("ValueError", "broke")


@pytest.mark.parametrize(
    ("ended", "child", "expected"),
    [
        ([], None, State("over")),
        ([turn(CALL)], None, State("over")),
        ([], ChildFacts(1, 2), State("ended")),
        ([turn(CALL)], ChildFacts(1, -9), State("ended")),
        ([], going(1), State("running")),
        ([turn()], going(2), State("running")),
        ([], going(0), State("question")),
        ([turn()], going(1), State("question")),
        ([turn(), turn(CALL)], going(2), State("approval", (CALL,))),
        ([turn(CALL), turn()], going(2), State("question")),
        ([turn(CALL), turn(error=FAILED, llm=1)], going(2), State("approval", (CALL,))),
        ([turn(CALL), turn(error=FAILED, tool=1)], going(2), State("question")),
        ([turn()], ChildFacts(0, None, converses=False), State("running")),
    ],
)
def test_the_state_follows_from_the_turns_and_the_child(
    ended: list[Run], child: ChildFacts | None, expected: State
) -> None:
    assert state_of(ended, child) == expected


def test_a_run_of_a_terminal_goes_on_until_its_trace_is_written_no_more(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.beside("run", OUTPUT).write_text("so far")

    with tracing(folder.beside("run", TRACE)):
        during = waiting_of(folder, "run", None, [])
    after = waiting_of(folder, "run", None, [])

    assert (during.state, during.printed) == (State("elsewhere"), "")
    assert (after.state, after.printed) == (State("over"), "so far")


def test_no_words_are_a_command_of_the_chat() -> None:
    assert json.loads(said("/reset now")) == " /reset now"
    assert json.loads(said("two\nlines")) == "two\nlines"
    assert "\n" not in said("two\nlines")
    assert json.loads(approved()) == "yes"
    assert json.loads(rejected("ok")) == "no: ok"
    assert json.loads(rejected("")) == "no"


def test_a_run_of_another_console_is_over_and_says_what_it_printed_without_colours(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    setup = Setup(plugin=ROOT, example="order_entry", scenario="approved", strategy="gpt5_react")
    setup.write(folder.beside("old", SETUP))
    folder.beside("old", OUTPUT).write_text("\x1b[31mError: the plugin\x1b[0m\x07 broke\n")

    waiting = waiting_of(folder, "old", None, [])

    assert (waiting.state, waiting.began, waiting.printed) == (State("over"), False, "Error: the plugin broke")
    assert waiting.command.startswith("devhost chat --plugin ")


def test_after_an_answer_that_the_script_does_not_have_its_next_words_are_no_question() -> None:
    setup = Setup(plugin=ROOT, example="injection", scenario="mail", strategy="gpt5_react")
    asked, rejected, question = "Confirm the choir's booking.", "no, mention the piano too", State("question")

    assert suggestion(setup, [asked], State("approval")) == rejected
    assert suggestion(setup, [asked, rejected], question) == "yes"
    assert suggestion(setup, [asked, "no"], State("approval")) == "yes"
    assert suggestion(setup, [asked, "no"], question) == ""


def test_of_what_a_plugin_prints_without_end_only_the_last_is_read(tmp_path: Path) -> None:
    file = tmp_path / "run.output.txt"
    assert not last_printed(file)

    file.write_text("first\n" + "\x1b[31mé\x1b[0m" * MOST_BYTES + "\nlast\x07\n")

    shown = last_printed(file)
    assert shown.endswith("é\nlast")
    assert "first" not in shown
    assert len(shown) <= MOST_BYTES
