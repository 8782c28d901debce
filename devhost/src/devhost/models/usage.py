"""Tokens of model calls, and what they cost."""

import threading
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from decimal import Decimal
from typing import Any, Self

from devhost.models.catalog import PRICES_AS_OF, ModelFacts, facts_of
from devhost.protocol.wire import JsonObject
from devhost.words import price_text

_MILLIONTH = Decimal("0.000001")
_SMALLEST = Decimal("0.0000001")
"""Model plugins round prices to seven digits."""
_FREE = ModelFacts(0, Decimal(0), Decimal(0), Decimal(0), Decimal(0))


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
    def read(cls, usage: Mapping[str, Any], prompt: str, completion: str) -> Self:
        """From a provider's usage, whose two sides are named so; compatible servers leave out what they do not know."""
        of_prompt, of_completion = (usage.get(f"{side}_details") or {} for side in (prompt, completion))
        counts = (
            *(usage.get(prompt), of_prompt.get("cached_tokens"), of_prompt.get("cache_write_tokens")),
            *(usage.get(completion), of_completion.get("reasoning_tokens")),
        )
        return cls(*(count if isinstance(count, int) else 0 for count in counts))

    def __add__(self, other: "TokenCounts") -> "TokenCounts":
        return TokenCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def usage(self, model: str, seconds: float) -> JsonObject:
        """Dify's usage at the model's prices; an unlisted model costs nothing here."""
        prices = facts_of(model) or _FREE
        fresh = max(0, self.prompt - self.cached - self.written)
        asked = _dollars(fresh * prices.prompt + self.cached * prices.cached + self.written * prices.written)
        answered = _dollars(self.completion * prices.completion)
        return {
            "prompt_tokens": self.prompt,
            "prompt_unit_price": str(prices.prompt),
            "prompt_price_unit": f"{_MILLIONTH:f}",
            "prompt_price": f"{asked:f}",
            "completion_tokens": self.completion,
            "completion_unit_price": str(prices.completion),
            "completion_price_unit": f"{_MILLIONTH:f}",
            "completion_price": f"{answered:f}",
            "total_tokens": self.prompt + self.completion,
            "total_price": f"{asked + answered:f}",
            "currency": "USD",
            "latency": round(seconds, 3),
        }


def _dollars(millionths: Decimal) -> Decimal:
    return (millionths * _MILLIONTH).quantize(_SMALLEST)


def price_notice(model: str) -> str:
    if facts_of(model) is None:
        return f"devhost knows no price of {model} and counts 0"
    return f"OpenAI's prices of {PRICES_AS_OF}"


class CountsSpending:
    """A backend that counts its calls, their tokens and their price. Thread-safe.

    A server that does not count tokens adds none.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.tokens = TokenCounts()
        self.price = Decimal(0)
        self._currency = "USD"
        self._counting = threading.Lock()

    @property
    def afterwards(self) -> str:
        """A sentence for the person at the terminal after the run."""
        tokens = self.tokens
        cached = f", of which {tokens.cached:,} from the cache" if tokens.cached else ""
        reasoning = f", of which {tokens.reasoning:,} for reasoning" if tokens.reasoning else ""
        return (
            f"Model calls answered: {self.calls}. Prompt tokens: {tokens.prompt:,}{cached}. "
            f"Completion tokens: {tokens.completion:,}{reasoning}."
        )

    def spent(self) -> JsonObject:
        return {
            "calls": self.calls,
            "prompt_tokens": self.tokens.prompt,
            "cached_tokens": self.tokens.cached,
            "cache_write_tokens": self.tokens.written,
            "completion_tokens": self.tokens.completion,
            "reasoning_tokens": self.tokens.reasoning,
            "total_price": price_text(self.price),
            "currency": self._currency,
        }

    def count(self, usage: JsonObject | None, tokens: TokenCounts | None = None) -> None:
        """One call: its usage as Dify has it, None if the server did not count. `tokens`: if more is known of them."""
        with self._counting:
            self.calls += 1
            if usage is not None:
                known = tokens or TokenCounts(usage["prompt_tokens"], completion=usage["completion_tokens"])
                self.tokens += known
                self.price += Decimal(usage["total_price"])
                self._currency = usage["currency"]
