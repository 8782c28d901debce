"""Endless loops of one identical call are stopped; tests/agent/test_tool_failures.py has the conversations."""

from typing import Any

import pytest

from internal.call import CallStatus, EndedCall, RejectedCall, ToolCall, ValidCall
from internal.calls.judging import REPEATED_FAILURE, RepeatGuard
from prompt import template
from tests.support.builders import tool_of


def call_of(arguments: dict[str, Any]) -> ValidCall:
    return ValidCall(ToolCall("call_1", "search", "{}"), tool_of(), arguments)


CALL = call_of({"q": "x"})


def found(text: str) -> EndedCall:
    return EndedCall(CALL, CallStatus.OK, text)


FAILED = EndedCall(CALL, CallStatus.ERROR, "error")
TRANSIENT = EndedCall(CALL, CallStatus.ERROR, "error", transient=True)
RUNS = None
REPEATED = f"a\n\n{template.REPEATED_RESULT_NOTE}"
HISTORIES: list[tuple[list[list[EndedCall]], str | None]] = [
    ([], RUNS),
    ([[FAILED]], REPEATED_FAILURE),
    ([[FAILED], [found("x")]], REPEATED_FAILURE),
    ([[TRANSIENT]], RUNS),
    ([[TRANSIENT], [TRANSIENT]], REPEATED_FAILURE),
    ([[TRANSIENT, TRANSIENT]], REPEATED_FAILURE),
    ([[found("a")], [found("b")]], RUNS),
    ([[found("a")], [found("a")], [found("b")]], RUNS),
    ([[found("a"), found("a")]], RUNS),
    ([[found("b")], [found("a")], [found("a")]], REPEATED),
    ([[found("")], [found("")]], REPEATED[1:]),
]


@pytest.mark.parametrize(("history", "refusal"), HISTORIES)
def test_what_a_call_meets_after_earlier_rounds(history: list[list[EndedCall]], refusal: str | None) -> None:
    guard = RepeatGuard()
    for calls in history:
        guard.record_round(calls)

    judged, other = guard.judge(CALL), call_of({"q": "y"})

    assert (judged.text if isinstance(judged, RejectedCall) else None) == refusal
    assert guard.judge(other) is other


def test_asked_once_more_it_ends_the_tool_phase() -> None:
    guard = RepeatGuard()
    for _ in range(2):
        guard.record_round([found("a")])

    refused = [guard.judge(CALL), guard.judge(CALL)]  # in one turn
    guard.record_round([])

    assert refused == [RejectedCall(CALL.call, REPEATED, CALL.tool)] * 2
    assert guard.judge(CALL) == RejectedCall(CALL.call, REPEATED, CALL.tool, ends_tool_phase=True)


def test_the_values_of_arguments_make_another_call_and_their_order_does_not() -> None:
    assert call_of({"a": 1, "b": {"c": 2, "d": 3}}).signature == call_of({"b": {"d": 3, "c": 2}, "a": 1}).signature
    assert len({call_of({"a": value}).signature for value in (1, "1", True, 1.0)}) == 4
