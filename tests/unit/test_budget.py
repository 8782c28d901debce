"""What a run has used and may still use: tokens, prices, calls; the model is told once that little is left."""

from decimal import Decimal
from typing import Any

import pytest
from dify_plugin.entities.model.llm import LLMUsage
from hypothesis import given
from hypothesis import strategies as st

from internal.budget import Budget, Usage
from internal.errors import StopReason
from tests.support.wire import USAGE


def test_each_conversation_is_told_once_that_little_is_left_and_of_two_limits_that_of_tokens_ends_the_run() -> None:
    budget = Budget(maximum_tokens=100, maximum_calls=1)
    budget.take_call()
    budget.spend(100)

    assert budget.reached() is StopReason.TOKEN_LIMIT
    assert [budget.note(name) is not None for name in ("one", "one", "other")] == [True, False, True]


def usage(**changes: Any) -> LLMUsage:  # noqa: ANN401 - any field of the SDK's
    return LLMUsage.model_validate({**USAGE, **changes})


USAGES = st.builds(
    usage,
    prompt_tokens=st.integers(-10, 10**6),
    completion_tokens=st.integers(-10, 10**6),
    total_tokens=st.sampled_from([-5, 0, 15]),
    total_price=st.decimals(0, 10**4, places=7),
    latency=st.floats(0, 1000) | st.just(float("inf")),
)


@given(st.lists(USAGES, max_size=5))
def test_tokens_prices_and_seconds_add_up_in_the_types_that_dify_reads_strictly(calls: list[LLMUsage]) -> None:
    metadata = sum(map(Usage.of, [*calls, None]), Usage.of()).execution_metadata()

    assert metadata["prompt_tokens"] == sum(max(0, call.prompt_tokens) for call in calls)
    assert metadata["completion_tokens"] == sum(max(0, call.completion_tokens) for call in calls)
    assert metadata["total_tokens"] == sum(
        call.total_tokens if call.total_tokens > 0 else max(0, call.prompt_tokens) + max(0, call.completion_tokens)
        for call in calls
    )
    assert Decimal(str(metadata["total_price"])) == sum(call.total_price for call in calls)
    assert metadata["latency"] == pytest.approx(sum(each.latency for each in calls if each.latency <= 1000), abs=1e-3)
    assert metadata["currency"] == "USD"
    types = {name: type(value) for name, value in metadata.items()}
    tokens = {name: int for name in USAGE if name.endswith("_tokens")}
    assert types == {**dict.fromkeys(USAGE, str), **tokens, "latency": float}


def test_the_latest_unit_price_and_currency_that_say_anything_count() -> None:
    cheap = Usage.of(usage(prompt_unit_price="0", completion_unit_price="0", currency=""))
    dear = Usage.of(usage(prompt_unit_price="2", completion_unit_price="3", currency="EUR"))

    assert (dear + cheap).prompt_unit_price == 2
    assert (dear + cheap).completion_unit_price == 3
    assert (dear + cheap).currency == (Usage.of(usage()) + dear).currency == "EUR"
    one = Usage.of(usage()).execution_metadata()
    assert {name: str(Decimal(str(one[name]))) for name in USAGE if name != "currency"} == {
        name: str(Decimal(str(value))) for name, value in USAGE.items() if name != "currency"
    }
