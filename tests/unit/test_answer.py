"""What counts as the answer of a loop: text, or a valid call of ``submit_answer``."""

import json

import pytest

from internal.call import JudgedCall, ToolCall
from internal.calls.judging import RepeatGuard, judge_calls
from internal.errors import StopReason
from internal.loop import MAX_CORRECTIONS, CallAnswer, Finish, TextAnswer, written_out
from internal.model.reading import ModelTurn
from internal.node.tools import Toolbox
from internal.node.virtual_tools import answer_tool
from prompt import template

CITY = json.dumps({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
SAID = ModelTurn("Köln it is.", "Köln it is.")
LATE = StopReason.ITERATION_LIMIT


def submissions(*arguments: str) -> tuple[JudgedCall, ...]:
    """Calls of ``submit_answer``, judged."""
    tool = answer_tool(CITY)
    made = [ToolCall(f"call_{number}", tool.name, text) for number, text in enumerate(arguments)]
    return judge_calls(made, Toolbox({tool.name: tool}), RepeatGuard())


OTHERS = judge_calls([ToolCall("call_1", "search", "{}")] * 5, Toolbox(), RepeatGuard())


@pytest.mark.parametrize(("closing", "reason"), [(None, StopReason.ANSWERED), (LATE, LATE)])
def test_text_is_the_answer_and_keeps_what_ended_the_tool_phase(closing: StopReason | None, reason: StopReason) -> None:
    assert TextAnswer().after_text(SAID, closing) == Finish(reason, SAID.text)


@pytest.mark.parametrize(("closing", "reason"), [(None, StopReason.ANSWERED), (LATE, LATE)])
def test_the_first_valid_call_is_the_answer(closing: StopReason | None, reason: StopReason) -> None:
    judged = submissions("{}", '{"city": "Bonn"}', '{"city": "Kiel"}')

    finish = CallAnswer().after_calls(SAID, judged, closing)

    assert finish == Finish(reason, '{\n  "city": "Bonn"\n}', {"city": "Bonn"})


@pytest.mark.parametrize(("closing", "text"), [(None, ""), (LATE, SAID.text)])
def test_errors_in_the_answer_go_back_to_the_model_twice(closing: StopReason | None, text: str) -> None:
    answer = CallAnswer()

    for _ in range(MAX_CORRECTIONS):
        assert answer.after_calls(SAID, submissions("{}"), closing) is None

    assert answer.after_calls(SAID, submissions("{}"), closing) == Finish(StopReason.ANSWER_INVALID, text)


def test_calls_of_other_tools_do_not_count_as_wrong_answers() -> None:
    answer = CallAnswer()

    assert [answer.after_calls(SAID, OTHERS, None) for _ in range(MAX_CORRECTIONS + 1)] == [None] * 3


def test_text_is_answered_with_one_reminder() -> None:
    answer = CallAnswer()

    assert answer.after_text(SAID, None) == template.SUBMIT_ANSWER_REMINDER
    assert answer.after_text(SAID, None) == Finish(StopReason.ANSWER_INVALID, SAID.text)


def test_calls_of_other_tools_in_the_closing_answer_are_answered_like_text() -> None:
    answer = CallAnswer()

    assert answer.after_calls(SAID, OTHERS, LATE) is None
    assert answer.after_calls(SAID, OTHERS, LATE) == Finish(StopReason.ANSWER_INVALID, SAID.text)


def test_an_answer_is_written_out_for_people() -> None:
    assert written_out({"city": "Köln"}) == '{\n  "city": "Köln"\n}'
