"""What is known of models: parameters, windows, prices; and how parameters are checked."""

from decimal import Decimal

import pytest

from devhost.models.catalog import MODELS, facts_of
from devhost.models.openai_api.provider import Api, parameter_rules
from devhost.models.parameters import settle
from devhost.models.usage import Spending, TokenCounts, price_notice


def names(api: Api, model: str) -> set[str]:
    return {rule["name"] for rule in parameter_rules(api, model)}


def options(api: Api, model: str, name: str) -> list[str]:
    (rule,) = [rule for rule in parameter_rules(api, model) if rule["name"] == name]
    return list(rule["options"])


def test_a_model_that_reasons_takes_no_sampling() -> None:
    assert "temperature" not in names("responses", "gpt-5")
    assert {"reasoning_effort", "reasoning_summary", "verbosity", "max_tokens"} <= names("responses", "gpt-5")
    assert "reasoning_summary" not in names("chat", "gpt-5")
    assert "reasoning_mode" in names("responses", "gpt-5.6-terra") - names("responses", "gpt-5.5")
    assert {"temperature", "top_p"} <= names("responses", "gpt-4.1")
    assert "reasoning_effort" not in names("responses", "gpt-4.1")


def test_efforts_by_model() -> None:
    assert options("responses", "gpt-5-2025-08-07", "reasoning_effort") == ["minimal", "low", "medium", "high"]
    assert "minimal" not in options("responses", "gpt-5.1", "reasoning_effort")
    assert "max" in options("responses", "gpt-9-nova", "reasoning_effort")
    assert options("chat", "qwen3", "reasoning_effort") == []


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"max_tokens": "9"}, "Model Parameter max_tokens should be int."),
        ({"max_tokens": 0}, "max_tokens should be greater than or equal to 1"),
        ({"max_tokens": 200_000}, "max_tokens should be less than or equal to 128000"),
        ({"reasoning_effort": "none"}, "reasoning_effort should be one of"),
        ({"verbosity": 3}, "verbosity should be string"),
    ],
)
def test_what_a_rule_forbids(params: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        settle(params, parameter_rules("responses", "gpt-5"))


def test_what_no_rule_names_is_dropped_as_in_dify() -> None:
    params = {"temperature": 0.5, "parallel_tool_calls": False, "max_tokens": 50, "verbosity": None}
    assert settle(params, parameter_rules("responses", "gpt-5")) == {"max_tokens": 50}


def test_a_call_is_priced_by_what_was_cached_and_written() -> None:
    counts = TokenCounts(prompt=100_000, cached=60_000, written=10_000, completion=2_000, reasoning=500)
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


def test_a_long_prompt_costs_more_where_it_does() -> None:
    long = TokenCounts(prompt=300_000, completion=1_000)
    assert long.usage("gpt-5.4", 0)["prompt_price"] == "1.5000000"
    assert long.usage("gpt-5.4", 0)["completion_price"] == "0.0225000"
    assert long.usage("gpt-5.4-mini", 0)["prompt_price"] == "0.2250000"


def test_an_unlisted_model_costs_nothing_and_the_notice_says_so() -> None:
    assert TokenCounts(prompt=5, completion=5).usage("qwen3", 0)["total_price"] == "0.0000000"
    assert price_notice("qwen3") == "devhost knows no price of qwen3 and counts 0"
    assert facts_of("qwen3").context_size is None
    assert price_notice("gpt-5-mini-2025-08-07") == price_notice("gpt-5") == "OpenAI's prices of November 2026"


def test_every_listed_model_is_whole() -> None:
    for facts in MODELS.values():
        assert facts.prices is not None
        assert facts.context_size is not None
        assert 0 < facts.prices.cached <= facts.prices.prompt <= facts.prices.written < facts.prices.completion * 2


def test_spending_adds_up() -> None:
    spending = Spending().plus(TokenCounts(10, 4, 0, 5, 2), Decimal("0.5"))
    spending = spending.plus(TokenCounts(20, 6, 1, 5, 3), Decimal("0.25"))
    assert str(spending) == (
        "Model calls answered: 2. Prompt tokens: 30, of which 10 from the cache. "
        "Completion tokens: 10, of which 5 for reasoning."
    )
    assert spending.as_json()["total_price"] == "0.75"
