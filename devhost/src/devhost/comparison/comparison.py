"""Two runs and the differences between them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from devhost.fork import Round, rounds
from devhost.node.outputs.run import Run, plugin_error
from devhost.page.calls import Said, offered_tools, prompt_of
from devhost.protocol.wire import JsonObject
from devhost.recording.turns import tool_calls
from devhost.tools.recorded import NOT_RECORDED
from devhost.trace.runs import Call, TracedRun, run_of
from devhost.words import price_text

type Kind = Literal["same", "changed", "left", "right", "gap"]
"""`left` and `right`: only there. `gap`: equal lines that are left out."""
CONTEXT = 1
"""Equal lines around each difference."""
MOST_LINES = 2_000
"""Above this, frequent lines are not matched one by one: the time of a comparison grows with the square."""


@dataclass(frozen=True)
class Row:
    kind: Kind
    left: str = ""
    right: str = ""

    def as_json(self) -> dict[str, str | None]:
        return {
            "kind": self.kind,
            "left": None if self.kind == "right" else self.left,
            "right": None if self.kind == "left" else self.right,
        }


def rows(left: Sequence[str], right: Sequence[str], *, whole: bool = False) -> list[Row]:
    """Empty without a difference. `whole`: with all equal lines, also then."""
    matcher = SequenceMatcher(None, left, right, autojunk=max(len(left), len(right)) > MOST_LINES)
    if whole:
        return [row for code in matcher.get_opcodes() for row in _rows(code, left, right)]
    found: list[Row] = []
    groups = matcher.get_grouped_opcodes(CONTEXT)
    for group in groups if list(left) != list(right) else ():
        if found:
            found.append(Row("gap"))
        found += [row for code in group for row in _rows(code, left, right)]
    return found


def _rows(code: tuple[str, int, int, int, int], left: Sequence[str], right: Sequence[str]) -> Iterator[Row]:
    tag, left_from, left_to, right_from, right_to = code
    for mine, its in zip_longest(left[left_from:left_to], right[right_from:right_to]):
        if its is None:
            yield Row("left", mine)
        elif mine is None:
            yield Row("right", right=its)
        else:
            yield Row("same" if tag == "equal" else "changed", mine, its)


# One of two runs, as far as they are compared.


@dataclass(frozen=True)
class Asked:
    """One round."""

    number: int
    prompt: tuple[str, ...]
    """The lines that no earlier prompt of the run had; of the first one all, with the names of the tools."""
    prompt_tokens: int
    completion_tokens: int
    seconds: float


@dataclass(frozen=True)
class Side:
    name: str
    model: str
    run: Run
    rounds: tuple[Asked, ...]
    calls: tuple[str, ...]
    """A line for each tool call: name, arguments, and whether it failed."""
    not_recorded: tuple[str, ...]
    """Those of them that no recorded answer fitted."""
    models: int
    """Calls of a model."""

    @classmethod
    def of(cls, name: str, model: str, traced: TracedRun, strategy: str) -> "Side":
        asked = tool_calls(traced.calls)
        made = rounds(traced)
        lines = tuple(map(_called, asked))
        missing = tuple(line for line, call in zip(lines, asked, strict=True) if raised(call) == NOT_RECORDED)
        run, models = run_of(traced, strategy), sum(len(each.calls) for each in made)
        return cls(name, model, run, _asked(made), lines, missing, models)

    @property
    def answer(self) -> list[str]:
        return self.run.outputs.text.splitlines()

    @property
    def ending(self) -> str:
        error = self.run.error
        return str(self.run.ending) if error is None else f"{self.run.ending}: {error.kind}: {error.message}"

    @property
    def usage(self) -> JsonObject:
        """What the answers of models reported."""
        return self.run.calls.spent

    def as_json(self) -> JsonObject:
        rounds = [{name: value for name, value in asdict(each).items() if name != "prompt"} for each in self.rounds]
        return {
            "model": self.model,
            "ended": self.ending,
            "text": self.run.outputs.text,
            "usage": self.usage,
            "elapsed_seconds": self.run.elapsed_seconds,
            "rounds": rounds,
            "calls": list(self.calls),
        }


def _asked(made: Sequence[Round]) -> tuple[Asked, ...]:
    found, known = [], set[Said]()
    for each in made:
        last = each.calls[-1]
        found.append(
            Asked(
                each.number,
                tuple(_new_lines(last, known, with_tools=each is made[0])),
                sum(_tokens(call, "prompt_tokens") for call in each.calls),
                sum(_tokens(call, "completion_tokens") for call in each.calls),
                sum(map(_seconds, each.calls)),
            )
        )
        known |= set(prompt_of(last))
    return tuple(found)


def _new_lines(call: Call, known: set[Said], *, with_tools: bool) -> list[str]:
    lines = [f"tools: {', '.join(tool.name for tool in offered_tools(call)) or 'none'}"] if with_tools else []
    for said in prompt_of(call):
        if said not in known:
            lines += [f"{said.role}:", *said.text.splitlines()]
    return lines


def _seconds(call: Call) -> float:
    """As the model reported it: a recorded turn, which takes no time, has its own again. Else on the clock."""
    reported = call.usage.get("latency")
    return float(reported) if isinstance(reported, int | float) else (call.ended or call.began) - call.began


def _tokens(call: Call, name: str) -> int:
    value = call.usage.get(name)
    return value if isinstance(value, int) else 0


def _called(call: Call) -> str:
    given = json.dumps(call.arguments, ensure_ascii=False, sort_keys=True)
    return f"{call.name} {given}{f' → {raised(call)}' if call.error else ''}"


def raised(call: Call) -> str:
    """The type of its error."""
    found = plugin_error(call.error) if call.error else None
    return found.error_type if found else "error" if call.error else ""


# Two runs and what is different between them.

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
    yield _time("seconds in models", left.usage["latency"], right.usage["latency"])
    mine, its = (f"{side.run.elapsed_seconds:.2f}" for side in (left, right))
    yield Fact("seconds in all", mine, its, differs=False)  # what is recorded takes no time
    for pair in zip_longest(left.rounds, right.rounds):
        yield _round(*pair)


def _fact(name: str, left: str, right: str) -> Fact:
    return Fact(name, left, right, left != right)


def _count(name: str, left: int, right: int) -> Fact:
    return Fact(name, f"{left:,}", f"{right:,}", left != right, f"{right - left:+,}" if left != right else "")


def _time(name: str, left: float, right: float) -> Fact:
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
