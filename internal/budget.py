"""The usage of a run: tokens and prices of its model calls, and its limits for tokens and tool calls."""

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
"""Fields that keep their latest known value. All other fields are added up."""


_CURRENCY = re.compile("[A-Za-z]{3,5}")
"""A currency code. The log and the node show the code of a model's plugin unchanged, so any other text is refused."""


class Usage(LLMUsage):
    """The tokens, prices in ``currency`` and seconds of any number of model calls. Instances are never changed."""

    @classmethod
    def of(cls, usage: LLMUsage | None = None) -> "Usage":
        """Return the usage of one call. Missing values, and values that cannot be added up, count as 0."""
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
        """Return all fields in the types that Dify's strict parser accepts."""
        texts = {name: str(value) if isinstance(value, Decimal) else value for name, value in vars(self).items()}
        return {**texts, "currency": self.currency or "USD", "latency": round(self.latency, 3)}


NO_USAGE = Usage(**vars(LLMUsage.empty_usage()))


_MAX_EXPONENT = 15
"""Maximum power of ten of a price. A price such as 1E+6000000 is short, but has six million digits when written out."""
_MAX_SECONDS = 1e9


def _usable(value: Any) -> Any:  # noqa: ANN401 - a field's value, of its type
    """Return the value if it can be added up and written in a few characters; otherwise zero or the nearest limit."""
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
    """Return the price rounded to 28 digits, the precision of sums; zero for a price of an absurd size."""
    if abs(value.adjusted()) > _MAX_EXPONENT:
        return Decimal(0)
    return +value


NOTE_SHARE = 0.8
"""Share of a limit after which the model is told that little is left."""


MAX_RUN_BYTES = 20 * 1024 * 1024
"""Maximum bytes of model and tool output that a run keeps in memory until its end (docs/limits.md)."""
MAX_LOOKUP_TURNS = 20
"""Number of turns in one run that only read the agent's own data and do not count as tool rounds
(docs/long-results.md)."""


@dataclass
class Budget:
    """The limits of a run with all its loops and subtasks, and how much of them is used. 0 means no limit."""

    maximum_tokens: int = 0
    """Maximum tokens of prompts and completions, including all retries of model calls."""
    maximum_calls: int = 0
    """Maximum number of tool calls that are sent to the host."""
    tokens: int = field(default=0, init=False)
    calls: int = field(default=0, init=False)
    lookup_turns_left: int = field(default=MAX_LOOKUP_TURNS, init=False)
    size: int = field(default=0, init=False)
    """Bytes of memory that the run keeps until its end."""
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
        """Whether the run has reached its memory limit."""
        return self.size >= MAX_RUN_BYTES

    def take_call(self) -> str | None:
        """Count one more call; if a limit is reached, return the text that the model reads instead of a result."""
        if reason := self.reached():
            return self.refusals[reason]
        self.calls += 1
        return None

    @property
    def refusals(self) -> dict[StopReason, str]:
        """The text that the model reads instead of a result, for each limit."""
        return {
            StopReason.TOKEN_LIMIT: template.TOKENS_USED_UP.format(most=self.maximum_tokens),
            StopReason.CALL_LIMIT: template.CALLS_USED_UP.format(most=self.maximum_calls),
            StopReason.SIZE_LIMIT: template.SIZE_USED_UP,
        }

    def reached(self) -> StopReason | None:
        """Return the limit that is reached, or None. The token limit has priority over calls, and calls over size."""
        if 0 < self.maximum_tokens <= self.tokens:
            return StopReason.TOKEN_LIMIT
        if 0 < self.maximum_calls <= self.calls:
            return StopReason.CALL_LIMIT
        if self.is_full:
            return StopReason.SIZE_LIMIT
        return None

    def note(self, conversation: Hashable) -> str | None:
        """Return a note for the model, once in each conversation, when most of a limit is used; otherwise None."""
        tokens = template.TOKENS_LEFT, self.tokens, self.maximum_tokens
        calls = template.CALLS_LEFT, self.calls, self.maximum_calls
        limits = [limit for limit in (tokens, calls) if limit[2]]
        if conversation in self._told or all(used < NOTE_SHARE * most for _, used, most in limits):
            return None
        self._told.add(conversation)
        left = [wording.format(left=max(0, most - used), most=most) for wording, used, most in limits]
        return template.BUDGET_NOTE.format(left=" and ".join(left))

    def estimate_note(self) -> OurWords | None:
        """Return a note for the log if the token limit relies on estimates, because a provider did not report usage."""
        if not (self._has_estimates and self.maximum_tokens):
            return None
        counted = f"with an estimate of the rest, the run used {self.tokens:,}"
        return OurWords(f"maximum_total_tokens: the provider did not report all tokens; {counted}")
