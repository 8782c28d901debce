"""What a run may still use: calls are counted before they run, and the model is told once that little is left."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.budget import Budget
from internal.call import JudgedCall, RejectedCall, ToolCall, ValidCall
from internal.calls.judging import within_budget
from internal.errors import StopReason
from internal.node.virtual_tools import plan_tool
from tests.unit.builders import tool_of

CALL = ToolCall("call_1", "search", "{}")
REAL = ValidCall(CALL, tool_of(), {})
VIRTUAL = ValidCall(CALL, plan_tool(4), {})
REFUSED = RejectedCall(CALL, "tool arguments parse error")

turns = st.lists(st.lists(st.sampled_from([REAL, REAL, VIRTUAL, REFUSED]), max_size=5), max_size=6)


def may_run(judged: Sequence[JudgedCall]) -> int:
    """How many of these calls are sent to the host."""
    return sum(call is REAL for call in judged)


@given(turns, st.integers(0, 8))
def test_never_more_calls_may_run_than_the_limit_and_the_first_ones_do(
    asked: list[list[JudgedCall]], most: int
) -> None:
    budget = Budget(maximum_calls=most)

    allowed = [within_budget(turn, budget) for turn in asked]

    wanted = [call for turn in asked for call in turn]
    got = [call for turn in allowed for call in turn]
    expected = min(most, may_run(wanted)) if most else may_run(wanted)
    assert budget.calls == may_run(got) == expected
    cut = next((place for place in range(len(wanted)) if got[place] is not wanted[place]), len(wanted))
    assert got[:cut] == wanted[:cut]
    assert may_run(got[cut:]) == 0
    assert all(one is other for one, other in zip(got, wanted, strict=True) if other is not REAL)


@given(st.lists(st.booleans(), max_size=20), st.integers(1, 5))
def test_a_call_that_was_not_sent_leaves_its_place_to_another(was_sent: list[bool], most: int) -> None:
    budget, sent = Budget(maximum_calls=most), 0

    for is_sent in was_sent:
        if within_budget([REAL], budget)[0] is REAL:
            sent += is_sent
            budget.give_back(not is_sent)

    assert sent == min(most, sum(was_sent))


def test_a_refused_call_says_which_limit_is_reached() -> None:
    _, refused = within_budget([REAL, REAL], Budget(maximum_calls=1))
    assert isinstance(refused, RejectedCall)
    assert refused.text == "limit reached: not run, since the tool calls of this run are limited to 1"

    spent = Budget(maximum_tokens=12_000)
    spent.spend(12_000)
    (refused,) = within_budget([REAL], spent)
    assert isinstance(refused, RejectedCall)
    assert refused.text == "limit reached: not run, since the tokens of this run are limited to 12,000"


@pytest.mark.parametrize(
    ("tokens", "calls", "reason"),
    [
        (99, 4, None),
        (100, 4, StopReason.TOKEN_LIMIT),
        (99, 5, StopReason.CALL_LIMIT),
        (250, 5, StopReason.TOKEN_LIMIT),
    ],
)
def test_the_limit_that_is_reached(tokens: int, calls: int, reason: StopReason | None) -> None:
    budget = Budget(100, 5)
    budget.spend(tokens)
    within_budget([REAL] * calls, budget)

    assert budget.reached() is reason


def test_zero_means_no_limit() -> None:
    budget = Budget()
    budget.spend(10**9, is_estimate=True)

    assert within_budget([REAL] * 1000, budget) == (REAL,) * 1000
    assert (budget.reached(), budget.note("a conversation"), budget.estimate_note()) == (None, None, None)


@pytest.mark.parametrize(("tokens", "calls", "is_told"), [(79, 3, False), (80, 0, True), (0, 4, True), (90, 4, True)])
def test_from_80_percent_of_either_limit_each_conversation_is_told_once(
    tokens: int, calls: int, *, is_told: bool
) -> None:
    budget = Budget(100, 5)
    budget.spend(tokens)
    within_budget([REAL] * calls, budget)

    assert [budget.note(name) is not None for name in ("one", "one", "other")] == [is_told, False, is_told]


def test_the_note_has_the_numbers_of_the_limits_that_are_set() -> None:
    both, calls = Budget(12_000, 5), Budget(maximum_calls=5)
    for budget in (both, calls):
        budget.spend(10_000)
        within_budget([REAL] * 4, budget)

    assert "about 2,000 of 12,000 tokens (prompts included) and 1 of 5 tool calls." in (both.note("one") or "")
    assert "may use: 1 of 5 tool calls." in (calls.note("one") or "")


def test_the_log_says_what_was_counted_only_when_some_of_it_is_an_estimate() -> None:
    budget = Budget(maximum_tokens=100)
    budget.spend(30)
    assert budget.estimate_note() is None

    budget.spend(1_200, is_estimate=True)
    assert "1,230" in (budget.estimate_note() or "")
