"""The tokens of model calls and their cost."""

import threading
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, fields
from decimal import Decimal
from typing import Any, Self

from devhost.models.catalog import PRICES_AS_OF, ModelFacts, facts_of
from devhost.protocol.wire import JsonObject
from devhost.words import price_text

_MILLIONTH = Decimal("0.000001")
_SMALLEST = Decimal("0.0000001")
"""The precision of a price: model plugins round to seven digits."""
_FREE = ModelFacts(0, Decimal(0), Decimal(0), Decimal(0), Decimal(0))


@dataclass(frozen=True)
class TokenCounts:
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that were read from the provider's cache."""
    cache_write_tokens: int = 0
    """Prompt tokens that were written to the cache."""
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    """Completion tokens that were used for reasoning."""

    @classmethod
    def read(cls, usage: Mapping[str, Any], prompt: str, completion: str) -> Self:
        """Parses a provider's usage. `prompt` and `completion` are the keys of its two token counts.

        Counts that a compatible server omits are zero.
        """
        details = {**(usage.get(f"{prompt}_details") or {}), **(usage.get(f"{completion}_details") or {})}
        known = {**details, "prompt_tokens": usage.get(prompt), "completion_tokens": usage.get(completion)}
        counts = {field.name: known.get(field.name) for field in fields(cls)}
        return cls(**{name: count for name, count in counts.items() if isinstance(count, int)})

    def __add__(self, other: "TokenCounts") -> "TokenCounts":
        return TokenCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def usage(self, model: str, seconds: float) -> JsonObject:
        """Returns Dify's usage object with the model's prices. The prices of an unlisted model are zero."""
        prices = facts_of(model) or _FREE
        cached = self.cached_tokens
        written = self.cache_write_tokens
        fresh = max(0, self.prompt_tokens - cached - written)
        asked = _dollars(fresh * prices.prompt + cached * prices.cached + written * prices.written)
        answered = _dollars(self.completion_tokens * prices.completion)
        return {
            "prompt_tokens": self.prompt_tokens,
            "prompt_unit_price": str(prices.prompt),
            "prompt_price_unit": f"{_MILLIONTH:f}",
            "prompt_price": f"{asked:f}",
            "completion_tokens": self.completion_tokens,
            "completion_unit_price": str(prices.completion),
            "completion_price_unit": f"{_MILLIONTH:f}",
            "completion_price": f"{answered:f}",
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "total_price": f"{asked + answered:f}",
            "currency": "USD",
            "latency": round(seconds, 3),
        }


def _dollars(millionths: Decimal) -> Decimal:
    return (millionths * _MILLIONTH).quantize(_SMALLEST)


def price_notice(model: str) -> str:
    if facts_of(model) is None:
        return f"devhost has no price for {model} and counts 0"
    return f"OpenAI's prices of {PRICES_AS_OF}"


class CountsSpending:
    """A backend that counts its calls, their tokens and their price.

    If a server reports no usage, only the call is counted. The class is thread-safe.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.tokens = TokenCounts()
        self.price = Decimal(0)
        self._currency = "USD"
        self._counting = threading.Lock()

    @property
    def afterwards(self) -> str:
        """A summary for the person at the terminal after the run."""
        tokens = self.tokens
        cached = ""
        if tokens.cached_tokens:
            cached = f", of which {tokens.cached_tokens:,} from the cache"
        reasoning = ""
        if tokens.reasoning_tokens:
            reasoning = f", of which {tokens.reasoning_tokens:,} for reasoning"
        return (
            f"Model calls answered: {self.calls}. Prompt tokens: {tokens.prompt_tokens:,}{cached}. "
            f"Completion tokens: {tokens.completion_tokens:,}{reasoning}."
        )

    def spent(self) -> JsonObject:
        """Returns the calls, tokens and price counted so far."""
        return {
            "calls": self.calls,
            **asdict(self.tokens),
            "total_price": price_text(self.price),
            "currency": self._currency,
        }

    def count(self, usage: JsonObject | None, tokens: TokenCounts | None = None) -> None:
        """Counts one call.

        `usage` is in Dify's form; it is `None` if the server reported none. `tokens` has details that Dify's form
        lacks.
        """
        with self._counting:
            self.calls += 1
            if usage is not None:
                self.tokens += tokens or TokenCounts.read(usage, "prompt_tokens", "completion_tokens")
                self.price += Decimal(usage["total_price"])
                self._currency = usage["currency"]
