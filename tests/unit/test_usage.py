"""Token usage and price, summed over a run's model calls."""

from decimal import Decimal
from typing import Any

from dify_plugin.entities.model.llm import LLMUsage
from hypothesis import given
from hypothesis import strategies as st

from internal.budget import Usage
from tests.support.wire import USAGE


def usage(**changes: Any) -> LLMUsage:  # noqa: ANN401 - any field of the SDK's
    return LLMUsage.model_validate({**USAGE, **changes})


usages = st.builds(
    usage,
    prompt_tokens=st.integers(0, 10**6),
    completion_tokens=st.integers(0, 10**6),
    total_price=st.decimals(0, 10**4, places=7),
    latency=st.floats(0, 1000),
)


def test_one_call_keeps_all_its_fields() -> None:
    metadata = (Usage() + Usage.of(usage())).execution_metadata()

    assert metadata.keys() == LLMUsage.model_fields.keys()
    assert {name: Decimal(str(metadata[name])) for name in USAGE if name != "currency"} == {
        name: Decimal(str(value)) for name, value in USAGE.items() if name != "currency"
    }


@given(st.lists(usages, max_size=5))
def test_tokens_prices_and_seconds_add_up_over_calls(calls: list[LLMUsage]) -> None:
    total = Usage()
    for call in calls:
        total = total + Usage.of(call)

    assert total.prompt_tokens == sum(call.prompt_tokens for call in calls)
    assert total.completion_tokens == sum(call.completion_tokens for call in calls)
    assert total.total_tokens == sum(call.total_tokens for call in calls)
    assert total.total_price == sum(call.total_price for call in calls)
    assert abs(total.latency - sum(call.latency for call in calls)) < 1e-6


@given(st.lists(usages, max_size=3))
def test_the_metadata_has_the_types_that_dify_reads_strictly(calls: list[LLMUsage]) -> None:
    metadata = sum(map(Usage.of, calls), Usage()).execution_metadata()

    for name, value in metadata.items():
        if name.endswith("_tokens"):
            assert type(value) is int
        elif name == "latency":
            assert type(value) is float
        else:
            assert type(value) is str
            assert name == "currency" or Decimal(value).is_finite()


def test_a_call_without_usage_counts_as_nothing() -> None:
    assert Usage.of(usage()) + Usage.of(None) == Usage.of(usage())
    assert Usage.of(None).execution_metadata()["currency"] == "USD"


def test_a_missing_total_is_the_sum_of_its_parts() -> None:
    assert Usage.of(usage(total_tokens=0)).total_tokens == 15


def test_a_negative_number_of_tokens_counts_as_zero() -> None:
    one = Usage.of(usage(prompt_tokens=-10, completion_tokens=5, total_tokens=-5))

    assert (one.prompt_tokens, one.completion_tokens, one.total_tokens) == (0, 5, 5)


def test_a_latency_that_is_not_a_number_counts_as_zero() -> None:
    assert Usage.of(usage(latency=float("inf"))).latency == 0


def test_the_latest_unit_price_and_currency_that_say_anything_count() -> None:
    cheap = Usage.of(usage(prompt_unit_price="0", completion_unit_price="0", currency=""))
    dear = Usage.of(usage(prompt_unit_price="2", completion_unit_price="3", currency="EUR"))

    assert (dear + cheap).prompt_unit_price == 2
    assert (dear + cheap).completion_unit_price == 3
    assert (dear + cheap).currency == "EUR"
    assert (Usage.of(usage()) + dear).currency == "EUR"
