"""What a conversation with a chatflow keeps from turn to turn, and a script's turns; without the engine."""

import base64
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost.case import Case
from devhost.conversation import Conversation
from devhost.flow.document import FlowFile
from devhost.flow.turn import FlowTurn, TurnContext
from devhost.flow.whole import WholeFlow
from devhost.host.host import start_tools
from devhost.limits import HostLimits
from devhost.script import Script, TurnScript
from devhost.trace.flow import AnswerText, FlowEnded, FlowEvent, FlowNode, FlowStatus
from support.flow_documents import START, chatflow

FITS = 204_800 - sys.getsizeof("")
"""Characters of an ASCII text that has 204,800 bytes in Python."""


class Engine:
    """Ends each turn as the test says, and keeps what the turns were given."""

    def __init__(self, *ends: FlowEnded) -> None:
        self._ends = iter(ends)
        self.turns: list[FlowTurn] = []

    def __call__(self, _file: FlowFile, turn: FlowTurn, _around: TurnContext) -> Iterator[FlowEvent]:
        self.turns.append(turn)
        yield AnswerText(FlowNode("answer", "answer", "Answer", {}), "as far as it came")
        yield next(self._ends)


def conversation_of(file: FlowFile, engine: Engine, **inputs: object) -> Conversation:
    return Conversation(Case(Script(), WholeFlow(file, inputs, engine=engine)))


def ended(status: FlowStatus, answer: str = "", **variables: object) -> FlowEnded:
    return FlowEnded(status, {"answer": answer}, "", variables)


@pytest.fixture
def file(tmp_path: Path) -> FlowFile:
    declared = [{"name": "state", "value_type": "string", "value": "new"}, {"name": "count", "value_type": "number"}]
    return FlowFile.read(chatflow(tmp_path, [START], [], conversation_variables=declared))


def test_each_turn_gets_what_the_turns_before_left(file: FlowFile) -> None:
    engine = Engine(
        ended("succeeded", "Two.", state="a"), ended("partial-succeeded", "Failed.", state="b"), ended("succeeded")
    )
    conversation = conversation_of(file, engine, name="Ann")
    assert conversation.variables == {"state": "new", "count": None}
    for question in ("How many?", "And now?", "Thanks"):
        conversation.play(TurnScript(query=question), None)

    first, second, third = engine.turns
    assert [turn.dialogue_count for turn in engine.turns] == [1, 2, 3]
    assert len({turn.conversation_id for turn in engine.turns}) == 1
    assert len(first.conversation_id) == 36
    assert first.history == []
    assert [message["content"] for message in second.history] == ["How many?", "Two."]
    assert [message["content"] for message in third.history] == ["How many?", "Two.", "And now?", "Failed."]
    assert (first.conversation, second.conversation, third.conversation) == ({}, {"state": "a"}, {"state": "b"})
    assert third.inputs == {"name": "Ann"}


def test_the_files_of_a_question_are_in_the_memory_with_their_bytes(file: FlowFile, tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Ann")
    engine = Engine(ended("succeeded", "A letter."), ended("succeeded"))
    conversation = conversation_of(file, engine)
    with start_tools((), limits=HostLimits()) as host:
        conversation.attach(letter)
        conversation.play(TurnScript(query="What is it?"), host)
        conversation.play(TurnScript(query="And now?"), host)

    assert [file.path.name for file in engine.turns[0].files] == ["letter.txt"]
    assert engine.turns[1].files == ()
    (part, words) = engine.turns[1].history[0]["content"]
    assert base64.b64decode(part["base64_data"]) == b"Dear Ann"
    assert words == {"type": "text", "data": "What is it?"}


@pytest.mark.parametrize(
    ("status", "answer"),
    [("failed", ""), ("stopped", "as far as it came"), ("paused", "as far as it came")],
)
def test_a_turn_that_does_not_end_well_leaves_its_question_and_its_variables(
    file: FlowFile, status: FlowStatus, answer: str
) -> None:
    engine = Engine(ended(status, "of the outputs", state="half"), ended("succeeded"))
    conversation = conversation_of(file, engine)
    conversation.play(TurnScript(query="How many?"), None)
    conversation.play(TurnScript(query="And now?"), None)

    assert [message["content"] for message in engine.turns[1].history] == ["How many?", answer]
    assert engine.turns[1].conversation == {"state": "half"}


def test_a_variable_that_is_too_large_fails_every_later_turn(file: FlowFile) -> None:
    engine = Engine(ended("succeeded", state="x" * FITS), ended("succeeded", state="x" * (FITS + 1)))
    conversation = conversation_of(file, engine)
    for question in ("First", "Second"):
        conversation.play(TurnScript(query=question), None)

    for question in ("Third", "Fourth"):
        end = conversation.play(TurnScript(query=question), None).end
        assert end.status == "failed"
        assert end.error == (
            "The conversation variable 'state' has 204,801 bytes. Dify takes 204,800 (MAX_VARIABLE_SIZE) "
            "and fails every later message of this conversation."
        )
        assert end.conversation == {"state": "x" * (FITS + 1)}
    assert len(engine.turns) == 2


def test_a_typed_message_has_the_turn_that_says_it_or_else_the_next_one() -> None:
    script = Script.model_validate(
        {"query": "Send it.", "then": [{"query": "yes"}, {}, {"query": "Yes!", "answers": {"form": "ok"}}]}
    )
    first, yes, silent, yes_again = script.said

    assert script.turn_for("send it", 0, 3) is first
    assert script.turn_for("YES.", 0, 1) is yes
    assert script.turn_for("yes", 1, 2) is yes_again
    assert script.turn_for("yes", 2, 5) is yes_again
    assert script.turn_for("something else", 0, 3) is silent
    assert script.turn_for("something else", 0, 9) is yes_again
