"""What a run has used: tokens and prices over its model calls, and its limits of tokens and tool calls."""

import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from dify_plugin.entities.model.llm import LLMUsage

from internal.errors import OurWords, StopReason
from internal.json_values import MAX_EXACT_INTEGER
from prompt import template

_LATEST = {"prompt_unit_price", "prompt_price_unit", "completion_unit_price", "completion_price_unit", "currency"}
"""Fields of which the latest known value counts. All others are added up."""


_CURRENCY = re.compile("[A-Za-z]{3,5}")
"""What a model's plugin says goes to the log and to the node as it is: a code, and no text."""


class Usage(LLMUsage):
    """Tokens, prices in ``currency`` and seconds, over any number of model calls; never changed in place."""

    @classmethod
    def of(cls, usage: LLMUsage | None = None) -> "Usage":
        """One call's usage; what it did not report, or what cannot be added up, counts as 0."""
        if usage is None:
            return NO_USAGE
        one = {name: _usable(value) for name, value in vars(usage).items()}
        if not _CURRENCY.fullmatch(one["currency"]):
            one["currency"] = ""
        one["total_tokens"] = one["total_tokens"] or one["prompt_tokens"] + one["completion_tokens"]
        return cls(**one)

    def __add__(self, later: "Usage") -> "Usage":
        if self is NO_USAGE:
            return later
        both = zip(vars(self).items(), vars(later).values(), strict=True)
        return Usage(**{name: (new or old) if name in _LATEST else old + new for (name, old), new in both})

    def execution_metadata(self) -> dict[str, int | float | str]:
        """All fields in the types that Dify's strict reader takes."""
        texts = {name: str(value) if isinstance(value, Decimal) else value for name, value in vars(self).items()}
        return {**texts, "currency": self.currency or "USD", "latency": round(self.latency, 3)}


NO_USAGE = Usage(**vars(LLMUsage.empty_usage()))


_MAX_EXPONENT = 15
"""The largest power of ten of a price. The price 1E+6000000 has ten characters, and six million when written out."""
_MAX_SECONDS = 1e9


def _usable(value: Any) -> Any:  # noqa: ANN401 - a field's value, of its type
    """The value where it can be added up and written in a few characters; else what stands for no report."""
    match value:
        case Decimal():
            return _price(value)
        case float():
            if abs(value) < _MAX_SECONDS:
                return value
            return 0.0
        case int():
            return min(max(0, value), MAX_EXACT_INTEGER)
    return value


def _price(value: Decimal) -> Decimal:
    """The price in the 28 digits in which prices are added up."""
    if abs(value.adjusted()) > _MAX_EXPONENT:
        return Decimal(0)
    return +value


NOTE_SHARE = 0.8
"""Share of a limit after which the model is told that little is left."""


MAX_RUN_BYTES = 20 * 1024 * 1024
"""Bytes of memory that a run keeps to its end of what the model wrote and the tools brought (docs/limits.md)."""
MAX_LOOKUP_TURNS = 20
"""Turns of one run that only look up what the agent keeps and do not count as tool rounds (docs/long-results.md)."""


@dataclass
class Budget:
    """What a run, with all its loops and subtasks, has used of its limits; a limit of 0 is none."""

    maximum_tokens: int = 0
    """Maximum tokens of prompts and completions, over all tries of all model calls."""
    maximum_calls: int = 0
    """Maximum tool calls that are sent to the host."""
    tokens: int = field(default=0, init=False)
    calls: int = field(default=0, init=False)
    lookup_turns_left: int = field(default=MAX_LOOKUP_TURNS, init=False)
    size: int = field(default=0, init=False)
    """Bytes of memory that the run keeps to its end."""
    _has_estimates: bool = field(default=False, init=False)
    _told: set[Hashable] = field(default_factory=set, init=False)

    def spend(self, tokens: int, *, is_estimate: bool = False) -> None:
        self.tokens += tokens
        self._has_estimates = self._has_estimates or is_estimate

    def keep(self, size: int) -> None:
        """Add these bytes to the memory that the run keeps."""
        self.size += size

    @property
    def is_full(self) -> bool:
        """Whether the run keeps as much as it may."""
        return self.size >= MAX_RUN_BYTES

    def take_call(self) -> str | None:
        """Count one more call that will be sent; where a limit is reached, what the model reads in its place."""
        if reason := self.reached():
            return self.refusals[reason]
        self.calls += 1
        return None

    @property
    def refusals(self) -> dict[StopReason, str]:
        """What the model reads in place of a call beyond each limit."""
        return {
            StopReason.TOKEN_LIMIT: template.TOKENS_USED_UP.format(most=self.maximum_tokens),
            StopReason.CALL_LIMIT: template.CALLS_USED_UP.format(most=self.maximum_calls),
            StopReason.SIZE_LIMIT: template.SIZE_USED_UP,
        }

    def reached(self) -> StopReason | None:
        """The limit that is reached; of several the first of tokens, calls and size."""
        if 0 < self.maximum_tokens <= self.tokens:
            return StopReason.TOKEN_LIMIT
        if 0 < self.maximum_calls <= self.calls:
            return StopReason.CALL_LIMIT
        if self.is_full:
            return StopReason.SIZE_LIMIT
        return None

    def note(self, conversation: Hashable) -> str | None:
        """What a conversation with the model has to read once, when most of a limit is used."""
        tokens = template.TOKENS_LEFT, self.tokens, self.maximum_tokens
        calls = template.CALLS_LEFT, self.calls, self.maximum_calls
        limits = [limit for limit in (tokens, calls) if limit[2]]
        if conversation in self._told or all(used < NOTE_SHARE * most for _, used, most in limits):
            return None
        self._told.add(conversation)
        left = [wording.format(left=max(0, most - used), most=most) for wording, used, most in limits]
        return template.BUDGET_NOTE.format(left=" and ".join(left))

    def estimate_note(self) -> OurWords | None:
        """For the log: what was counted, where the provider did not report all of it and a limit rests on it."""
        if not (self._has_estimates and self.maximum_tokens):
            return None
        counted = f"with an estimate of the rest, the run used {self.tokens:,}"
        return OurWords(f"maximum_total_tokens: the provider did not report all tokens; {counted}")
