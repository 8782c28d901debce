"""Two runs and what is different between them.

In: two sides. Out: a `Comparison`: numbers in pairs, and rows for calls, answer and the prompt of each round.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from devhost.comparison.lines import Row, rows
from devhost.comparison.sides import Asked, Side
from devhost.protocol.wire import JsonObject
from devhost.text.price import price_text

LEAST_SECONDS, LEAST_SHARE = 0.1, 0.1
"""Times that differ by less, in seconds or as a part of the longer one, count as equal: no two runs take the same."""


@dataclass(frozen=True)
class Fact:
    name: str
    left: str
    right: str
    differs: bool
    change: str = ""
    """Of a number."""


@dataclass(frozen=True)
class PromptRows:
    round: int
    rows: list[Row]


@dataclass(frozen=True)
class Comparison:
    left: Side
    right: Side
    facts: tuple[Fact, ...]
    calls: list[Row]
    answer: list[Row]
    prompts: tuple[PromptRows, ...]
    """Of the rounds whose prompts differ."""

    @classmethod
    def of(cls, left: Side, right: Side) -> "Comparison":
        return cls(
            left,
            right,
            tuple(_facts(left, right)),
            rows(left.calls, right.calls, whole=True),
            rows(left.answer, right.answer),
            tuple(_prompts(left, right)),
        )

    def as_json(self) -> JsonObject:
        return {
            "facts": {
                fact.name: {"left": fact.left, "right": fact.right, "differs": fact.differs} for fact in self.facts
            },
            "calls": [row.as_json() for row in self.calls],
            "answer": [row.as_json() for row in self.answer],
            "prompts": [{"round": each.round, "rows": [row.as_json() for row in each.rows]} for each in self.prompts],
        }


def _facts(left: Side, right: Side) -> Iterator[Fact]:
    yield _fact("model", left.model, right.model)
    yield _fact("ended", left.ending, right.ending)
    yield _count("rounds", len(left.rounds), len(right.rounds))
    yield _count("model calls", left.models, right.models)
    yield _count("tool calls", len(left.calls), len(right.calls))
    for name, key in (("prompt tokens", "prompt_tokens"), ("completion tokens", "completion_tokens")):
        yield _count(name, left.usage[key], right.usage[key])
    yield _fact("price", _price(left), _price(right))
    yield _seconds("seconds in models", left.usage["latency"], right.usage["latency"])
    mine, its = (f"{side.run.elapsed_seconds:.2f}" for side in (left, right))
    yield Fact("seconds in all", mine, its, differs=False)  # what is recorded takes no time
    for pair in zip_longest(left.rounds, right.rounds):
        yield _round(*pair)


def _fact(name: str, left: str, right: str) -> Fact:
    return Fact(name, left, right, left != right)


def _count(name: str, left: int, right: int) -> Fact:
    return Fact(name, f"{left:,}", f"{right:,}", left != right, f"{right - left:+,}" if left != right else "")


def _seconds(name: str, left: float, right: float) -> Fact:
    differs = _take_differently_long(left, right)
    return Fact(name, f"{left:.2f}", f"{right:.2f}", differs, f"{right - left:+.2f}" if differs else "")


def _take_differently_long(left: float, right: float) -> bool:
    return abs(left - right) > max(LEAST_SECONDS, LEAST_SHARE * max(left, right))


def _price(side: Side) -> str:
    return f"{price_text(side.usage['total_price'])} {side.usage['currency']}"


def _round(mine: Asked | None, its: Asked | None) -> Fact:
    there = [asked for asked in (mine, its) if asked is not None]
    tokens = {(asked.prompt_tokens, asked.completion_tokens) for asked in there}
    differs = len(there) == 1 or len(tokens) > 1 or _take_differently_long(there[0].seconds, there[1].seconds)
    return Fact(f"round {there[0].number}", _costs(mine), _costs(its), differs)


def _costs(asked: Asked | None) -> str:
    if asked is None:
        return "–"
    return f"{asked.prompt_tokens:,} → {asked.completion_tokens:,} tokens, {asked.seconds:.2f} s"


def _prompts(left: Side, right: Side) -> Iterator[PromptRows]:
    for mine, its in zip_longest(left.rounds, right.rounds):
        found = rows(() if mine is None else mine.prompt, () if its is None else its.prompt)
        if found:
            yield PromptRows((mine or its).number, found)
