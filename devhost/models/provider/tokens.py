"""Tokens of model calls and what they cost.

In: the counts that a provider reports. Out: the usage of one call with all fields of LLMUsage, prices as strings, as
Decimals travel; LLMUsage has no fields for cached and reasoning tokens, so these stay here, summed over the calls.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Self

from devhost.models.provider.catalog import PRICES_AS_OF, Prices, facts_of
from devhost.protocol.wire import JsonObject
from devhost.text.counted import counted
from devhost.text.price import price_text

_MILLIONTH = Decimal("0.000001")
_SMALLEST = Decimal("0.0000001")
"""Model plugins round prices to seven digits."""
_FREE = Prices(Decimal(0), Decimal(0), Decimal(0), Decimal(0))


@dataclass(frozen=True)
class TokenCounts:
    prompt: int = 0
    cached: int = 0
    """Of the prompt: found in the provider's cache."""
    written: int = 0
    """Of the prompt: put there."""
    completion: int = 0
    reasoning: int = 0
    """Of the completion."""

    @classmethod
    def read(cls, usage: Mapping[str, object], prompt: str, completion: str) -> Self:
        """From a provider's usage, whose two sides are named so; compatible servers leave out what they do not know."""
        details = [usage.get(f"{prompt}_details"), usage.get(f"{completion}_details")]
        of_prompt, of_completion = (detail if isinstance(detail, Mapping) else {} for detail in details)
        return cls(
            prompt=_count(usage.get(prompt)),
            cached=_count(of_prompt.get("cached_tokens")),
            written=_count(of_prompt.get("cache_write_tokens")),
            completion=_count(usage.get(completion)),
            reasoning=_count(of_completion.get("reasoning_tokens")),
        )


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


@dataclass(frozen=True)
class Spending:
    """The sum over all calls of a backend."""

    calls: int = 0
    uncounted: int = 0
    """Calls of which the server did not count the tokens."""
    tokens: TokenCounts = TokenCounts()
    dollars: Decimal = Decimal(0)

    def plus_uncounted(self) -> "Spending":
        return replace(self, calls=self.calls + 1, uncounted=self.uncounted + 1)

    def plus(self, counts: TokenCounts, price: Decimal) -> "Spending":
        had = self.tokens
        tokens = TokenCounts(
            prompt=had.prompt + counts.prompt,
            cached=had.cached + counts.cached,
            written=had.written + counts.written,
            completion=had.completion + counts.completion,
            reasoning=had.reasoning + counts.reasoning,
        )
        return replace(self, calls=self.calls + 1, tokens=tokens, dollars=self.dollars + price)

    def __str__(self) -> str:
        tokens = self.tokens
        if self.uncounted and self.uncounted == self.calls:
            return f"Model calls answered: {self.calls}. The server did not count their tokens."
        uncounted = (
            f" The server did not count the tokens of {counted(self.uncounted, 'call')}." if self.uncounted else ""
        )
        return (
            f"Model calls answered: {self.calls}. "
            f"Prompt tokens: {tokens.prompt:,}, of which {tokens.cached:,} from the cache. "
            f"Completion tokens: {tokens.completion:,}, of which {tokens.reasoning:,} for reasoning.{uncounted}"
        )

    def as_json(self) -> JsonObject:
        return {
            "calls": self.calls,
            "uncounted_calls": self.uncounted,
            "prompt_tokens": self.tokens.prompt,
            "cached_tokens": self.tokens.cached,
            "cache_write_tokens": self.tokens.written,
            "completion_tokens": self.tokens.completion,
            "reasoning_tokens": self.tokens.reasoning,
            "total_price": price_text(self.dollars),
            "currency": "USD",
        }


@dataclass(frozen=True)
class PricedCall:
    """One call's counts at its model's prices; an unlisted model costs nothing here."""

    counts: TokenCounts
    prices: Prices
    seconds: float

    @classmethod
    def of(cls, model: str, counts: TokenCounts, seconds: float) -> Self:
        prices = facts_of(model).prices or _FREE
        return cls(counts, prices.at(counts.prompt), seconds)

    @property
    def prompt_price(self) -> Decimal:
        counts, prices = self.counts, self.prices
        fresh = max(0, counts.prompt - counts.cached - counts.written)
        return _dollars(fresh * prices.prompt + counts.cached * prices.cached + counts.written * prices.written)

    @property
    def completion_price(self) -> Decimal:
        return _dollars(self.counts.completion * self.prices.completion)

    @property
    def total_price(self) -> Decimal:
        return self.prompt_price + self.completion_price

    def usage(self) -> JsonObject:
        return {
            "prompt_tokens": self.counts.prompt,
            "prompt_unit_price": str(self.prices.prompt),
            "prompt_price_unit": f"{_MILLIONTH:f}",
            "prompt_price": f"{self.prompt_price:f}",
            "completion_tokens": self.counts.completion,
            "completion_unit_price": str(self.prices.completion),
            "completion_price_unit": f"{_MILLIONTH:f}",
            "completion_price": f"{self.completion_price:f}",
            "total_tokens": self.counts.prompt + self.counts.completion,
            "total_price": f"{self.total_price:f}",
            "currency": "USD",
            "latency": round(self.seconds, 3),
        }


def _dollars(millionths: Decimal) -> Decimal:
    return (millionths * _MILLIONTH).quantize(_SMALLEST)


def price_notice(model: str) -> str:
    if facts_of(model).prices is None:
        return f"devhost knows no price of {model} and counts 0"
    return f"OpenAI's prices of {PRICES_AS_OF}"
