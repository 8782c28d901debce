"""When a loop has its answer: a turn without calls, or, with ``answer_schema``, a valid call of ``submit_answer``.

In: a turn, and its judged calls. Out: a Finish, or what the model reads before it is asked again. One object per
transcript; the loop asks it the same questions in a round and in the closing answer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from internal.calls.judging import hands_over
from internal.model.reading import ModelTurn
from internal.report.events import StopReason
from internal.report.tool_calls import JudgedCall, ValidCall
from internal.steps import Finish
from prompt import template

MAX_CORRECTIONS = 2
"""How often errors in an answer that has to be a call go back to the model."""


class AnswerRule(Protocol):
    """What counts as the answer."""

    is_text: bool
    """Whether the model's text is the answer."""
    closing_note: str
    """Tells the model that the answer is due."""
    revision_note: str
    """Tells the model what is wrong with its answer: a template with ``criteria``, ``problems`` and ``look_up``."""
    submissions: int
    """Rounds in which the answer was handed over, validly or not; they are not rounds of tools."""

    def after_text(self, turn: ModelTurn, closing: StopReason | None) -> Finish | str:
        """What follows a turn whose calls, if it has any, do not run; a text is what the model reads next.

        ``closing`` is what ended the tool phase, None while it lasts.
        """

    def after_calls(self, turn: ModelTurn, judged: Sequence[JudgedCall], closing: StopReason | None) -> Finish | None:
        """The end, if the calls of a turn bring it."""

    def again(self) -> "AnswerRule":
        """The rule for an answer that is written again, with all its corrections."""


class TextAnswer:
    """The answer is the text of the first turn without calls."""

    is_text = True
    closing_note = template.CLOSING_NOTE
    revision_note = template.REVISION_NOTE
    submissions = 0

    def after_text(self, turn: ModelTurn, closing: StopReason | None) -> Finish:
        return judge_final_turn(turn, closing or StopReason.ANSWERED)

    def after_calls(self, turn: ModelTurn, judged: Sequence[JudgedCall], closing: StopReason | None) -> None:
        """Calls are never the answer."""

    def again(self) -> "TextAnswer":
        return self


@dataclass
class CallAnswer:
    """The answer is a valid call; errors in it go back to the model, and text is answered with one reminder."""

    is_text = False
    closing_note = template.CLOSING_NOTE_FOR_SUBMISSION
    revision_note = template.REVISION_NOTE_FOR_SUBMISSION
    submissions: int = 0
    _refused: int = 0
    _has_been_reminded: bool = False

    def after_text(self, turn: ModelTurn, closing: StopReason | None) -> Finish | str:
        if turn.cut:
            return judge_final_turn(turn, closing or StopReason.ANSWERED)
        if self._has_been_reminded:
            return Finish(StopReason.ANSWER_INVALID, turn.text)
        self._has_been_reminded = True
        return template.SUBMIT_ANSWER_REMINDER

    def after_calls(self, turn: ModelTurn, judged: Sequence[JudgedCall], closing: StopReason | None) -> Finish | None:
        self.submissions += any(map(hands_over, judged))
        for call in judged:
            if isinstance(call, ValidCall) and hands_over(call):
                return Finish(closing or StopReason.ANSWERED, written_out(call.arguments), call.arguments)
        if any(map(hands_over, judged)):
            self._refused += 1
            is_over = self._refused > MAX_CORRECTIONS
        elif closing:
            # The refusal of the other calls is the reminder.
            is_over = self._has_been_reminded
            self._has_been_reminded = True
        else:
            is_over = False
        return Finish(StopReason.ANSWER_INVALID, turn.text if closing else "") if is_over else None

    def again(self) -> "CallAnswer":
        return CallAnswer()


def judge_final_turn(turn: ModelTurn, reason: StopReason) -> Finish:
    """What was wrong with the final turn itself wins over what ended the tool phase; empty is never a success.

    A closing answer that ran out of time keeps the reason that ended the tool phase.
    """
    if turn.cut is StopReason.TIME_LIMIT and reason is not StopReason.ANSWERED:
        return Finish(reason, turn.text, cut=turn.cut)
    if turn.cut:
        return Finish(turn.cut, turn.text, cut=turn.cut)
    return Finish(StopReason.EMPTY if turn.is_empty else reason, turn.text)


def written_out(answer: Mapping[str, Any]) -> str:
    """The answer as text: JSON that a person can read."""
    return json.dumps(answer, ensure_ascii=False, indent=2)
