"""Token usage and price of a run, summed over its model calls."""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from decimal import Decimal

from dify_plugin.entities.model.llm import LLMUsage

from internal.errors import OurWords, StopReason
from prompt import template

# Token usage and price of a run, summed over its model calls.

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


# How many tokens and tool calls one run may use; all its loops and subtasks share one Budget.

NOTE_SHARE = 0.8
"""Of a limit; from then on little is left."""


@dataclass
class Budget:
    """What a run has used of its limits; a limit of 0 is none."""

    maximum_tokens: int = 0
    """Of prompts and completions, over all tries of all model calls."""
    maximum_calls: int = 0
    """That are sent to the host."""
    tokens: int = field(default=0, init=False)
    calls: int = field(default=0, init=False)
    _has_estimates: bool = field(default=False, init=False)
    _told: set[Hashable] = field(default_factory=set, init=False)

    def spend(self, tokens: int, *, is_estimate: bool = False) -> None:
        self.tokens += tokens
        self._has_estimates = self._has_estimates or is_estimate

    def take_call(self) -> str | None:
        """Count one more call that will be sent; where a limit is reached, its refusal instead."""
        if reason := self.reached():
            return self.refusal(reason)
        self.calls += 1
        return None

    def reached(self) -> StopReason | None:
        """The limit that is reached; of both the limit of tokens."""
        if 0 < self.maximum_tokens <= self.tokens:
            return StopReason.TOKEN_LIMIT
        if 0 < self.maximum_calls <= self.calls:
            return StopReason.CALL_LIMIT
        return None

    def refusal(self, reason: StopReason) -> str:
        """What the model reads as the result of a call that goes beyond this limit."""
        if reason is StopReason.TOKEN_LIMIT:
            return template.TOKENS_USED_UP.format(most=self.maximum_tokens)
        return template.CALLS_USED_UP.format(most=self.maximum_calls)

    def note(self, conversation: Hashable) -> str | None:
        """What a conversation with the model has to read once, when most of a limit is used."""
        used = ((self.tokens, self.maximum_tokens), (self.calls, self.maximum_calls))
        is_due = any(most > 0 and count >= NOTE_SHARE * most for count, most in used)
        if not is_due or conversation in self._told:
            return None
        self._told.add(conversation)
        wordings = (template.TOKENS_LEFT, template.CALLS_LEFT)
        left = [
            wording.format(left=max(0, most - count), most=most)
            for wording, (count, most) in zip(wordings, used, strict=True)
            if most
        ]
        return template.BUDGET_NOTE.format(left=" and ".join(left))

    def estimate_note(self) -> OurWords | None:
        """For the log: what was counted, where the provider did not report all of it and a limit rests on it."""
        if not (self._has_estimates and self.maximum_tokens):
            return None
        counted = f"with an estimate of the rest, the run used {self.tokens:,}"
        return OurWords(f"maximum_total_tokens: the provider did not report all tokens; {counted}")
