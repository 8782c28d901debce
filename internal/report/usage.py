"""Token usage and price of a run, summed over its model calls.

In: the last LLMUsage of each call. Out: a frozen Usage and the ``execution_metadata`` that Dify reads strictly
(docs/host-facts.md, "Usage"): tokens are ints, prices numeric strings, nothing is None.
"""

import math
from dataclasses import dataclass
from decimal import Decimal

from dify_plugin.entities.model.llm import LLMUsage

_ZERO = Decimal(0)


@dataclass(frozen=True)
class Usage:
    """Tokens, prices in ``currency`` and seconds, over any number of model calls."""

    prompt_tokens: int = 0
    prompt_unit_price: Decimal = _ZERO
    prompt_price_unit: Decimal = _ZERO
    prompt_price: Decimal = _ZERO
    completion_tokens: int = 0
    completion_unit_price: Decimal = _ZERO
    completion_price_unit: Decimal = _ZERO
    completion_price: Decimal = _ZERO
    total_tokens: int = 0
    total_price: Decimal = _ZERO
    currency: str = ""
    latency: float = 0.0

    @classmethod
    def of(cls, usage: LLMUsage | None) -> "Usage":
        """One call's usage; all zero if the call reported none. A negative number of tokens counts as 0."""
        if usage is None:
            return cls()
        prompt, completion = max(0, usage.prompt_tokens), max(0, usage.completion_tokens)
        return cls(
            prompt_tokens=prompt,
            prompt_unit_price=_finite(usage.prompt_unit_price),
            prompt_price_unit=_finite(usage.prompt_price_unit),
            prompt_price=_finite(usage.prompt_price),
            completion_tokens=completion,
            completion_unit_price=_finite(usage.completion_unit_price),
            completion_price_unit=_finite(usage.completion_price_unit),
            completion_price=_finite(usage.completion_price),
            total_tokens=max(0, usage.total_tokens) or prompt + completion,
            total_price=_finite(usage.total_price),
            currency=usage.currency,
            latency=usage.latency if math.isfinite(usage.latency) else 0.0,
        )

    def __add__(self, later: "Usage") -> "Usage":
        """Tokens, prices and seconds are added; of unit prices and currency the latest known value counts."""
        return Usage(
            prompt_tokens=self.prompt_tokens + later.prompt_tokens,
            prompt_unit_price=later.prompt_unit_price or self.prompt_unit_price,
            prompt_price_unit=later.prompt_price_unit or self.prompt_price_unit,
            prompt_price=self.prompt_price + later.prompt_price,
            completion_tokens=self.completion_tokens + later.completion_tokens,
            completion_unit_price=later.completion_unit_price or self.completion_unit_price,
            completion_price_unit=later.completion_price_unit or self.completion_price_unit,
            completion_price=self.completion_price + later.completion_price,
            total_tokens=self.total_tokens + later.total_tokens,
            total_price=self.total_price + later.total_price,
            currency=later.currency or self.currency,
            latency=self.latency + later.latency,
        )

    def execution_metadata(self) -> dict[str, int | float | str]:
        """All fields of LLMUsage in the types that Dify's strict reader takes."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "prompt_unit_price": str(self.prompt_unit_price),
            "prompt_price_unit": str(self.prompt_price_unit),
            "prompt_price": str(self.prompt_price),
            "completion_tokens": self.completion_tokens,
            "completion_unit_price": str(self.completion_unit_price),
            "completion_price_unit": str(self.completion_price_unit),
            "completion_price": str(self.completion_price),
            "total_tokens": self.total_tokens,
            "total_price": str(self.total_price),
            "currency": self.currency or "USD",
            "latency": round(self.latency, 3),
        }


def _finite(price: Decimal) -> Decimal:
    return price if price.is_finite() else _ZERO
