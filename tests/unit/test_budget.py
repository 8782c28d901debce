"""What a run may still use: calls are counted before they run, and the model is told once that little is left."""

import pytest

from internal.budget import Budget
from internal.errors import StopReason


def refusals(budget: Budget, calls: int) -> list[str | None]:
    """What becomes of so many calls that are about to be sent."""
    return [budget.take_call() for _ in range(calls)]


def test_the_first_calls_are_sent_and_a_refused_one_says_which_limit_is_reached() -> None:
    budget, spent = Budget(maximum_calls=2), Budget(maximum_tokens=12_000)
    spent.spend(12_000)

    refusal = "limit reached: not run, since the tool calls of this run are limited to 2"
    assert refusals(budget, 4) == [None, None, refusal, refusal]
    assert budget.calls == 2
    assert refusals(spent, 1) == ["limit reached: not run, since the tokens of this run are limited to 12,000"]


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
    refusals(budget, calls)

    assert budget.reached() is reason


def test_zero_means_no_limit() -> None:
    budget = Budget()
    budget.spend(10**9, is_estimate=True)

    assert refusals(budget, 1000) == [None] * 1000
    assert (budget.reached(), budget.note("a conversation"), budget.estimate_note()) == (None, None, None)


@pytest.mark.parametrize(("tokens", "calls", "is_told"), [(79, 3, False), (80, 0, True), (0, 4, True), (90, 4, True)])
def test_from_80_percent_of_either_limit_each_conversation_is_told_once(
    tokens: int, calls: int, *, is_told: bool
) -> None:
    budget = Budget(100, 5)
    budget.spend(tokens)
    refusals(budget, calls)

    assert [budget.note(name) is not None for name in ("one", "one", "other")] == [is_told, False, is_told]


def test_the_note_has_the_numbers_of_the_limits_that_are_set() -> None:
    both, calls = Budget(12_000, 5), Budget(maximum_calls=5)
    for budget in (both, calls):
        budget.spend(10_000)
        refusals(budget, 4)

    assert "about 2,000 of 12,000 tokens (prompts included) and 1 of 5 tool calls." in (both.note("one") or "")
    assert "may use: 1 of 5 tool calls." in (calls.note("one") or "")


def test_the_log_says_what_was_counted_only_when_some_of_it_is_an_estimate() -> None:
    budget = Budget(maximum_tokens=100)
    budget.spend(30)
    assert budget.estimate_note() is None

    budget.spend(1_200, is_estimate=True)
    assert "1,230" in (budget.estimate_note() or "")
