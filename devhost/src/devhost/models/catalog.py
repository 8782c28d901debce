"""Facts about OpenAI's models, all in this place: context size, price, effort and parameters.

Read on 2026-11-21. Prices and windows: the package genai-prices 0.2.3 (November 2026), standard tier, dollars per
million tokens. Efforts and parameters: OpenAI's guides and the catalog of Dify's openai plugin 1.0.4. A model that is
not listed has neither price nor window here; its parameters go by its name.
"""

import re
from dataclasses import dataclass, replace
from decimal import Decimal

PRICES_AS_OF = "November 2026"
LONG_PROMPT = 272_000
"""Above so many prompt tokens some models cost more, for the whole request."""
_LONG_PROMPT_FACTOR, _LONG_COMPLETION_FACTOR = Decimal(2), Decimal("1.5")


@dataclass(frozen=True)
class Prices:
    """Dollars per million tokens."""

    prompt: Decimal
    cached: Decimal
    """Prompt tokens that the provider had in its cache."""
    written: Decimal
    """Prompt tokens that it put there."""
    completion: Decimal
    has_long_rate: bool = False

    def at(self, prompt_tokens: int) -> "Prices":
        """The rates that hold for a prompt of that length."""
        if not self.has_long_rate or prompt_tokens <= LONG_PROMPT:
            return self
        return replace(
            self,
            prompt=self.prompt * _LONG_PROMPT_FACTOR,
            cached=self.cached * _LONG_PROMPT_FACTOR,
            written=self.written * _LONG_PROMPT_FACTOR,
            completion=self.completion * _LONG_COMPLETION_FACTOR,
        )


@dataclass(frozen=True)
class ModelFacts:
    context_size: int | None = None
    prices: Prices | None = None
    efforts: tuple[str, ...] = ()
    """Of a model that reasons; empty for one that does not, or of which nothing is known."""


def _facts(  # noqa: PLR0913 - one row of a table
    window: int,
    prompt: str,
    cached: str | None,
    completion: str,
    *,
    written: str | None = None,
    efforts: tuple[str, ...] = (),
) -> ModelFacts:
    prices = Prices(
        prompt=Decimal(prompt),
        cached=Decimal(cached or prompt),
        written=Decimal(written or prompt),
        completion=Decimal(completion),
        has_long_rate=window == _LONG_WINDOW,
    )
    return ModelFacts(window, prices, efforts)


_WINDOW, _LONG_WINDOW = 400_000, 1_050_000
_O = ("low", "medium", "high")
_5 = ("minimal", "low", "medium", "high")
_51 = ("none", "low", "medium", "high")
_52 = (*_51, "xhigh")
_56 = (*_52, "max")
_PRO = ("medium", "high", "xhigh")
EVERY_EFFORT = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

MODELS = {
    "gpt-6-astra": _facts(_LONG_WINDOW, "10", "1", "50", written="12.5", efforts=_56),
    "gpt-6-sol": _facts(_LONG_WINDOW, "2", "0.2", "10", written="2.5", efforts=_56),
    "gpt-6-luna": _facts(_LONG_WINDOW, "0.1", "0.01", "0.5", written="0.125", efforts=_56),
    "gpt-6.1-sol": _facts(_LONG_WINDOW, "2", "0.1", "10", written="2.5", efforts=_56),
    "gpt-6.1-terra": _facts(_LONG_WINDOW, "1", "0.05", "5", written="1.25", efforts=_56),
    "gpt-5.6": _facts(_LONG_WINDOW, "4", "0.4", "20", written="5", efforts=_56),
    "gpt-5.6-sol": _facts(_LONG_WINDOW, "4", "0.4", "20", written="5", efforts=_56),
    "gpt-5.6-terra": _facts(_LONG_WINDOW, "2", "0.2", "12", written="2.5", efforts=_56),
    "gpt-5.6-luna": _facts(_LONG_WINDOW, "0.2", "0.02", "1.2", written="0.25", efforts=_56),
    "gpt-5.5": _facts(_LONG_WINDOW, "5", "0.5", "30", efforts=_52),
    "gpt-5.5-pro": _facts(_LONG_WINDOW, "30", None, "180", efforts=_PRO),
    "gpt-5.4": _facts(_LONG_WINDOW, "2.5", "0.25", "15", efforts=_52),
    "gpt-5.4-pro": _facts(_LONG_WINDOW, "30", None, "180", efforts=_PRO),
    "gpt-5.4-mini": _facts(_WINDOW, "0.75", "0.075", "4.5", efforts=_52),
    "gpt-5.4-nano": _facts(_WINDOW, "0.2", "0.02", "1.25", efforts=_52),
    "gpt-5.3-codex": _facts(_WINDOW, "1.75", "0.175", "14", efforts=_52),
    "gpt-5.2": _facts(_WINDOW, "1.75", "0.175", "14", efforts=_52),
    "gpt-5.2-pro": _facts(_WINDOW, "21", None, "168", efforts=_PRO),
    "gpt-5.1": _facts(_WINDOW, "1.25", "0.125", "10", efforts=_51),
    "gpt-5": _facts(_WINDOW, "1.25", "0.125", "10", efforts=_5),
    "gpt-5-mini": _facts(_WINDOW, "0.25", "0.025", "2", efforts=_5),
    "gpt-5-nano": _facts(_WINDOW, "0.05", "0.005", "0.4", efforts=_5),
    "gpt-5-pro": _facts(_WINDOW, "15", None, "120", efforts=("high",)),
    "o4-mini": _facts(200_000, "1.1", "0.275", "4.4", efforts=_O),
    "o3": _facts(200_000, "2", "0.5", "8", efforts=_O),
    "o3-pro": _facts(200_000, "20", None, "80", efforts=_O),
    "gpt-4.1": _facts(1_000_000, "2", "0.5", "8"),
    "gpt-4.1-mini": _facts(1_000_000, "0.4", "0.1", "1.6"),
    "gpt-4.1-nano": _facts(1_000_000, "0.1", "0.025", "0.4"),
    "gpt-4o": _facts(128_000, "2.5", "1.25", "10"),
    "gpt-4o-mini": _facts(128_000, "0.15", "0.075", "0.6"),
}
DEFAULT_MODEL = "gpt-5.6-terra"

_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_GPT_5_AND_LATER = re.compile(r"gpt-([5-9]|\d\d)(\D|$)")
_O_SERIES = re.compile(r"o\d(-|$)")
_OF_OPENAI = re.compile(r"gpt-\d|o\d(-|$)|chatgpt-")
_WITH_REASONING_MODES = re.compile(r"gpt-(5\.[6-9]|[6-9]|\d\d)")


def facts_of(model: str) -> ModelFacts:
    """A dated snapshot is its model; reasoning models that are not listed take every effort there is."""
    name = own_name(model)
    known = MODELS.get(_SNAPSHOT.sub("", name))
    if known is not None:
        return known
    return ModelFacts(efforts=EVERY_EFFORT if reasons(name) else ())


def own_name(model: str) -> str:
    """Without what a router puts before it: openai/gpt-5 → gpt-5."""
    return model.rsplit("/", 1)[-1]


def is_openais(model: str) -> bool:
    return _OF_OPENAI.match(own_name(model)) is not None


def reasons(model: str) -> bool:
    """Whether OpenAI's model of that name reasons; the chat-latest ones do not."""
    name = own_name(model)
    return limits_completion_tokens(name) and "chat" not in name


def limits_completion_tokens(model: str) -> bool:
    """Whether Chat Completions calls its limit `max_completion_tokens`, which counts the reasoning too."""
    name = own_name(model)
    return bool(_GPT_5_AND_LATER.match(name) or _O_SERIES.match(name))


def has_verbosity(model: str) -> bool:
    return _GPT_5_AND_LATER.match(own_name(model)) is not None


def has_reasoning_modes(model: str) -> bool:
    return _WITH_REASONING_MODES.match(own_name(model)) is not None
