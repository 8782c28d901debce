"""Tokens of calls, and what they cost."""

from devhost.models.usage import CountsSpending, TokenCounts, price_notice
from devhost.words import price_text


def test_a_call_is_priced_by_what_was_cached_and_written() -> None:
    counts = TokenCounts(
        100_000, cached_tokens=60_000, cache_write_tokens=10_000, completion_tokens=2_000, reasoning_tokens=500
    )
    usage = counts.usage("gpt-5.6-terra", 1.23456)

    # 30,000 fresh at 2, 60,000 cached at 0.2, 10,000 written at 2.5; 2,000 at 12: dollars per million.
    assert usage["prompt_price"] == "0.0970000"
    assert usage["completion_price"] == "0.0240000"
    assert usage["total_price"] == "0.1210000"
    assert (usage["prompt_unit_price"], usage["completion_unit_price"], usage["prompt_price_unit"]) == (
        "2",
        "12",
        "0.000001",
    )
    assert (usage["total_tokens"], usage["latency"], usage["currency"]) == (102_000, 1.235, "USD")


def test_an_unlisted_model_costs_nothing_and_the_notice_says_so() -> None:
    assert TokenCounts(prompt_tokens=5, completion_tokens=5).usage("qwen3", 0)["total_price"] == "0.0000000"
    assert price_notice("qwen3") == "devhost has no price for qwen3 and counts 0"
    assert price_notice("gpt-5-mini-2025-08-07") == price_notice("gpt-5") == "OpenAI's prices of November 2026"


def test_prices_have_plain_digits() -> None:
    assert [price_text(price) for price in ("2E-7", 0.5, "dear")] == ["0.0000002", "0.5", "dear"]


def test_spending_adds_up() -> None:
    model = CountsSpending()
    for counts, price in [(TokenCounts(10, 4, 0, 5, 2), "0.5"), (TokenCounts(20, 6, 1, 5, 3), "0.25")]:
        model.count({"total_price": price, "currency": "USD"}, counts)
    assert model.afterwards == (
        "Model calls answered: 2. Prompt tokens: 30, of which 10 from the cache. "
        "Completion tokens: 10, of which 5 for reasoning."
    )
    assert model.spent()["total_price"] == "0.75"
