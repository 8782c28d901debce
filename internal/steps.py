"""What may come next in a loop, and what a loop leaves behind: a closed union of values, no flags."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from internal.model.reading import ModelTurn
from internal.report.events import StopReason


@dataclass(frozen=True)
class AnotherRound:
    """The model may call tools once more."""


@dataclass(frozen=True)
class ClosingAnswer:
    """The tool phase is over without an answer: ask for it."""

    reason: StopReason


@dataclass(frozen=True)
class Finish:
    """Nothing more is sent."""

    reason: StopReason
    text: str = ""
    submitted: Mapping[str, Any] | None = None
    """The answer that was handed over in the form asked for."""


type NextStep = AnotherRound | ClosingAnswer | Finish


@dataclass(frozen=True)
class Ending:
    """What a loop leaves behind."""

    reason: StopReason
    text: str
    """The visible text of the last turn; "" when there is none."""
    submitted: Mapping[str, Any] | None
    rounds: int
    """Tool rounds done."""


def judge_final_turn(turn: ModelTurn, reason: StopReason) -> Finish:
    """What was wrong with the final turn itself wins over what ended the tool phase; empty is never a success.

    A closing answer that ran out of time is still the answer to whatever ended the tool phase.
    """
    if turn.cut is StopReason.TIME_LIMIT and reason is not StopReason.ANSWERED:
        return Finish(reason, turn.text)
    if turn.cut:
        return Finish(turn.cut, turn.text)
    return Finish(StopReason.EMPTY if turn.is_empty else reason, turn.text)
