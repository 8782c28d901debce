"""Context sizes and prices of OpenAI's models.

The values were read on 2026-11-21 from the package genai-prices 0.2.3 (November 2026): standard tier, dollars per
million tokens. A model that is not listed has no price and no context size. The higher prices of prompts above 272,000
tokens are not included.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

PRICES_AS_OF = "November 2026"


@dataclass(frozen=True)
class ModelFacts:
    """The context size of a model in tokens, and its prices in dollars per million tokens."""

    context_size: int
    prompt: Decimal
    cached: Decimal
    """The price of prompt tokens that were read from the provider's cache."""
    written: Decimal
    """The price of prompt tokens that were written to the cache."""
    completion: Decimal


def _facts(window: int, prompt: str, cached: str, completion: str, *, written: str | None = None) -> ModelFacts:
    return ModelFacts(window, Decimal(prompt), Decimal(cached), Decimal(written or prompt), Decimal(completion))


_SHORT = 128_000
_WINDOW = 400_000
_LONG = 1_050_000

MODELS = {
    "gpt-6-astra": _facts(_LONG, "10", "1", "50", written="12.5"),
    "gpt-6-sol": _facts(_LONG, "2", "0.2", "10", written="2.5"),
    "gpt-6-luna": _facts(_LONG, "0.1", "0.01", "0.5", written="0.125"),
    "gpt-6.1-sol": _facts(_LONG, "2", "0.1", "10", written="2.5"),
    "gpt-6.1-terra": _facts(_LONG, "1", "0.05", "5", written="1.25"),
    "gpt-5.6": _facts(_LONG, "4", "0.4", "20", written="5"),
    "gpt-5.6-sol": _facts(_LONG, "4", "0.4", "20", written="5"),
    "gpt-5.6-terra": _facts(_LONG, "2", "0.2", "12", written="2.5"),
    "gpt-5.6-luna": _facts(_LONG, "0.2", "0.02", "1.2", written="0.25"),
    "gpt-5.5": _facts(_LONG, "5", "0.5", "30"),
    "gpt-5.4": _facts(_LONG, "2.5", "0.25", "15"),
    "gpt-5.4-mini": _facts(_WINDOW, "0.75", "0.075", "4.5"),
    "gpt-5.4-nano": _facts(_WINDOW, "0.2", "0.02", "1.25"),
    "gpt-5.2": _facts(_WINDOW, "1.75", "0.175", "14"),
    "gpt-5.1": _facts(_WINDOW, "1.25", "0.125", "10"),
    "gpt-5": _facts(_WINDOW, "1.25", "0.125", "10"),
    "gpt-5-mini": _facts(_WINDOW, "0.25", "0.025", "2"),
    "gpt-5-nano": _facts(_WINDOW, "0.05", "0.005", "0.4"),
    "o4-mini": _facts(200_000, "1.1", "0.275", "4.4"),
    "o3": _facts(200_000, "2", "0.5", "8"),
    "gpt-4.1": _facts(1_000_000, "2", "0.5", "8"),
    "gpt-4.1-mini": _facts(1_000_000, "0.4", "0.1", "1.6"),
    "gpt-4.1-nano": _facts(1_000_000, "0.1", "0.025", "0.4"),
    "gpt-4o": _facts(_SHORT, "2.5", "1.25", "10"),
    "gpt-4o-mini": _facts(_SHORT, "0.15", "0.075", "0.6"),
}
DEFAULT_MODEL = "gpt-5.6-terra"

_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_OF_OPENAI = re.compile(r"gpt-\d|o\d(-|$)|chatgpt-")
_THAT_REASONS = re.compile(r"gpt-([5-9]|\d\d)(\D|$)|o\d(-|$)")


def facts_of(model: str) -> ModelFacts | None:
    """Returns the facts of a listed model. A dated snapshot has the facts of its model."""
    return MODELS.get(_SNAPSHOT.sub("", _own_name(model)))


def _own_name(model: str) -> str:
    """Returns the name without a router's prefix: openai/gpt-5 → gpt-5."""
    return model.rsplit("/", 1)[-1]


def is_openais(model: str) -> bool:
    return _OF_OPENAI.match(_own_name(model)) is not None


def reasons(model: str) -> bool:
    """Returns whether OpenAI's model of this name reasons. The chat-latest models do not."""
    name = _own_name(model)
    return _THAT_REASONS.match(name) is not None and "chat" not in name
