"""Endless loops of one identical call are stopped."""

import pytest

from internal.call import CallStatus, EndedCall, RejectedCall, Signature, ToolCall
from internal.calls.judging import REPEATED_FAILURE, Refuse, RepeatGuard
from prompt import template

CALL = Signature.of("search", {"q": "x"})
OTHER = Signature.of("search", {"q": "y"})


def past(signature: Signature, status: CallStatus, text: str, *, transient: bool = False) -> EndedCall:
    judged = RejectedCall(ToolCall("call_1", signature.tool, signature.arguments), text, signature=signature)
    return EndedCall(judged, status, text, transient=transient)


def found(text: str, signature: Signature = CALL) -> EndedCall:
    return past(signature, CallStatus.OK, text)


def failed(signature: Signature = CALL, *, transient: bool = False) -> EndedCall:
    return past(signature, CallStatus.ERROR, "tool invoke error", transient=transient)


def refused(signature: Signature = CALL) -> EndedCall:
    return past(signature, CallStatus.REFUSED, "refused")


def guard_after(*rounds: EndedCall | list[EndedCall]) -> RepeatGuard:
    guard = RepeatGuard()
    for calls in rounds:
        guard.record_round(calls if isinstance(calls, list) else [calls])
    return guard


def test_the_values_of_arguments_make_another_call_and_their_order_does_not() -> None:
    assert Signature.of("t", {"a": 1, "b": {"c": 2, "d": 3}}) == Signature.of("t", {"b": {"d": 3, "c": 2}, "a": 1})
    assert Signature.of("t", {"a": 1}) != Signature.of("t", {"a": "1"})
    assert Signature.of("t", {"a": 1}) != Signature.of("t", {"a": True})
    assert Signature.of("t", {}) != Signature.of("u", {})
    assert "日本" in Signature.of("t", {"q": "日本"}).arguments


def test_a_first_call_runs() -> None:
    assert RepeatGuard().judge(CALL) is None


def test_a_call_that_failed_before_is_not_run_again() -> None:
    assert guard_after(failed()).judge(CALL) == Refuse(REPEATED_FAILURE)
    assert guard_after(failed(), refused(), found("x")).judge(CALL) == Refuse(REPEATED_FAILURE)
    assert REPEATED_FAILURE == "tool invoke error: repeated failure detected; skipped duplicate call"


def test_a_failed_call_does_not_affect_other_calls() -> None:
    assert guard_after(failed()).judge(OTHER) is None


def test_a_transient_failure_counts_from_its_second_time() -> None:
    assert guard_after(failed(transient=True)).judge(CALL) is None
    assert guard_after(failed(transient=True), failed(transient=True)).judge(CALL) == Refuse(REPEATED_FAILURE)
    assert guard_after([failed(transient=True), failed(transient=True)]).judge(CALL) == Refuse(REPEATED_FAILURE)


@pytest.mark.parametrize("texts", [["a"], ["a", "b"], ["a", "a", "b"], ["a", "b", "a"]])
def test_results_that_differ_do_not_count_as_repeated(texts: list[str]) -> None:
    assert guard_after(*map(found, texts)).judge(CALL) is None


@pytest.mark.parametrize("texts", [["a", "a"], ["b", "a", "a"]])
def test_a_call_whose_last_two_results_were_equal_is_answered_with_the_latest_and_a_note(texts: list[str]) -> None:
    verdict = guard_after(*map(found, texts)).judge(CALL)

    assert verdict == Refuse(f"a\n\n{template.REPEATED_RESULT_NOTE}", ends_tool_phase=False)


def test_equal_results_within_one_round_do_not_count_as_repeated() -> None:
    assert guard_after([found("a"), found("a")]).judge(CALL) is None


def test_asked_once_more_it_ends_the_tool_phase() -> None:
    guard = guard_after(found("a"), found("a"), refused())

    assert guard.judge(CALL) == Refuse(f"a\n\n{template.REPEATED_RESULT_NOTE}", ends_tool_phase=True)
    assert guard.judge(OTHER) is None


def test_an_empty_result_repeats_like_any_other() -> None:
    assert isinstance(guard_after(found(""), found("")).judge(CALL), Refuse)
