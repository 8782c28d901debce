"""The differences between two runs, turn by turn, or between a fork and its origin."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from textwrap import shorten
from typing import Literal, Self

from devhost.comparison.side import AS_RECORDED, LONGEST, SECONDS, Side, is_prose, summary
from devhost.errors import TraceError
from devhost.fork import Fork, ForkedModel
from devhost.page.page import page_environment
from devhost.protocol.wire import JsonObject
from devhost.trace.lines import Trace, read_trace
from devhost.trace.turns import TracedTurn, last_conversation
from devhost.words import counted

type Kind = Literal["same", "changed", "left", "right", "gap"]
"""The kind of a row. `left` and `right` rows exist on one side only, and a `gap` replaces equal lines."""
CONTEXT = 1
"""The number of equal lines that are kept around each difference."""


@dataclass(frozen=True)
class AlignedRow:
    kind: Kind
    left: str = ""
    right: str = ""


def rows(left: Sequence[str], right: Sequence[str], *, whole: bool = False) -> list[AlignedRow]:
    """Align the lines of two texts. The result is empty if the texts are equal.

    `whole` keeps all equal lines, even if the texts are equal.
    """
    matcher = SequenceMatcher(None, left, right)
    if whole:
        return [row for code in matcher.get_opcodes() for row in _rows(code, left, right)]
    found: list[AlignedRow] = []
    groups = matcher.get_grouped_opcodes(CONTEXT)
    for group in groups if list(left) != list(right) else ():
        if found:
            found.append(AlignedRow("gap"))
        found += [row for code in group for row in _rows(code, left, right)]
    return found


def _rows(code: tuple[str, int, int, int, int], left: Sequence[str], right: Sequence[str]) -> Iterator[AlignedRow]:
    tag, left_from, left_to, right_from, right_to = code
    for mine, its in zip_longest(left[left_from:left_to], right[right_from:right_to]):
        if its is None:
            yield AlignedRow("left", mine)
        elif mine is None:
            yield AlignedRow("right", right=its)
        else:
            yield AlignedRow("same" if tag == "equal" else "changed", mine, its)


# Two turns and the differences between them.


@dataclass(frozen=True)
class ComparedFact:
    name: str
    left: str
    right: str
    is_packed: bool = False
    """Whether two different values are shown alike, such as two states of the same length."""

    @property
    def differs(self) -> bool:
        """Whether the values differ. Times are ignored, because no two runs take the same time."""
        return not self.is_same and self.name != SECONDS and self.right != AS_RECORDED

    @property
    def is_same(self) -> bool:
        return self.left == self.right and not self.is_packed


@dataclass(frozen=True)
class PromptRows:
    round: int
    rows: list[AlignedRow]
    asker: str = ""
    """The name of the node, or of the strategy, that called the model."""


@dataclass(frozen=True)
class ComparedPart:
    """One thing that is compared between two turns."""

    name: str
    rows: Sequence[AlignedRow] = ()
    """The lines of two texts, side by side."""
    facts: Sequence[ComparedFact] = ()
    """Values with names, if the part has no lines."""
    texts: Sequence[tuple[str, Sequence[AlignedRow]]] = ()
    """The names and the lines of long texts that differ among these values."""
    is_there: bool = True
    """Whether at least one side has the part."""

    @property
    def differs(self) -> bool:
        return any(row.kind != "same" for row in self.rows) or any(fact.differs for fact in self.facts)

    @classmethod
    def of_lines(cls, name: str, left: Sequence[str], right: Sequence[str]) -> Self:
        return cls(name, rows(left, right, whole=True), is_there=bool(left or right))


@dataclass(frozen=True)
class Comparison:
    """Two turns and the differences between them."""

    names: tuple[str, str]
    left: Side
    right: Side

    @property
    def facts(self) -> list[ComparedFact]:
        right = self.right.facts
        return [ComparedFact(name, value, right[name]) for name, value in self.left.facts.items()]

    @property
    def calls(self) -> list[AlignedRow]:
        return rows(self.left.calls, self.right.calls, whole=True)

    @property
    def answer(self) -> list[AlignedRow]:
        return rows(self.left.answer, self.right.answer)

    @cached_property
    def parts(self) -> list[ComparedPart]:
        """All parts that are compared, beginning with what the user got."""
        found = [
            ComparedPart.of_lines("answer", self.left.answer, self.right.answer),
            ComparedPart.of_lines("forms", self.left.forms, self.right.forms),
            ComparedPart.of_lines("path of nodes", self.left.path, self.right.path),
            _of_values("variables", self.left.variables, self.right.variables),
            ComparedPart.of_lines("tool calls", self.left.calls, self.right.calls),
            ComparedPart("outcome and cost", facts=self.facts),
            _of_values("question and inputs", self.left.settings, self.right.settings),
        ]
        return [part for part in found if part.is_there]

    @property
    def different(self) -> list[str]:
        """The names of what differs."""
        found = [part.name for part in self.parts if part.differs]
        if self.prompts:
            found.append("prompts")
        return found

    @property
    def same(self) -> list[str]:
        """The names of what was compared and does not differ."""
        found = [part.name for part in self.parts if not part.differs]
        if not self.prompts and (self.left.model_calls or self.right.model_calls):
            found.append("prompts")
        return found

    @cached_property
    def prompts(self) -> list[PromptRows]:
        """The prompts of the rounds in which they differ."""
        left = self.left.prompts
        right = self.right.prompts
        found = [
            PromptRows(number, rows(left.get((name, number), ()), right.get((name, number), ())), name)
            for name, number in dict.fromkeys([*left, *right])
        ]
        return [each for each in found if each.rows]

    @property
    def has_askers(self) -> bool:
        """Whether a round has to be shown with the name of its node."""
        return not (self.left.turn.is_direct and self.right.turn.is_direct)

    def parts_as_json(self) -> JsonObject:
        parts = [{**asdict(part), "differs": part.differs} for part in self.parts]
        prompts = list(map(asdict, self.prompts))
        return {"different": self.different, "same": self.same, "parts": parts, "prompts": prompts}

    def as_json(self) -> JsonObject:
        return {
            "facts": {fact.name: {**asdict(fact), "differs": fact.differs} for fact in self.facts},
            "calls": list(map(asdict, self.calls)),
            "answer": list(map(asdict, self.answer)),
            "prompts": list(map(asdict, self.prompts)),
        }


def _of_values(name: str, left: Mapping[str, object], right: Mapping[str, object]) -> ComparedPart:
    facts = []
    texts = []
    for each in dict.fromkeys([*left, *right]):
        mine = left.get(each, "")
        its = right.get(each, "")
        fact = ComparedFact(each, summary(mine), summary(its))
        facts.append(replace(fact, is_packed=fact.left == fact.right and mine != its))
        longest = max(len(str(mine)), len(str(its)))
        if mine != its and longest > LONGEST and is_prose(mine) and is_prose(its):
            texts.append((each, rows(str(mine).splitlines(), str(its).splitlines())))
    return ComparedPart(name, facts=facts, texts=texts, is_there=bool(facts))


# Two runs: their turns, pair by pair, and whether the same flow or strategy ran.

KINDS = {"strategy": "strategies", "chatflow": "chatflows", "workflow": "workflows"}


@dataclass(frozen=True)
class RunComparison:
    turns: Sequence[Comparison]
    unpaired: Sequence[tuple[str, str]]
    """The turns that only one side has: the name of the side, and the question."""
    of: str
    """A sentence that says which flows or strategies ran."""
    is_alike: bool
    """Whether both runs are of the same flow or strategy."""

    def as_json(self) -> JsonObject:
        return {
            "of": self.of,
            "turns": [turn.parts_as_json() for turn in self.turns],
            "unpaired": [{"run": name, "question": question} for name, question in self.unpaired],
        }


def read_compared(file: Path) -> tuple[Trace, list[TracedTurn]]:
    """Return the trace and the turns of its last conversation. Raises TraceError if there is none."""
    trace = read_trace(file)
    turns = last_conversation(trace)
    if not turns:
        raise TraceError(f"{file} ended before anything was asked: there is nothing to compare")
    return trace, turns


def names_of(before: tuple[Trace, TracedTurn], after: tuple[Trace, TracedTurn]) -> tuple[str, str]:
    """Return two short names that distinguish the runs."""

    def facts(trace: Trace, turn: TracedTurn) -> tuple[str, ...]:
        header = trace.header
        return turn.question, turn.facts.name, header.model.name, f"{header.started:%Y-%m-%d %H:%M:%S}"

    pairs = zip(facts(*before), facts(*after), strict=True)
    left, right = next((pair for pair in pairs if all(pair) and pair[0] != pair[1]), ("the first", "the second"))
    return shorten(left, 60, placeholder=" …"), shorten(right, 60, placeholder=" …")


def compared(names: tuple[str, str], left: Sequence[Side], right: Sequence[Side]) -> RunComparison:
    turns = [Comparison(names, mine, its) for mine, its in zip(left, right, strict=False)]
    common = len(turns)
    unpaired = [(names[0], side.turn.question) for side in left[common:]]
    unpaired += [(names[1], side.turn.question) for side in right[common:]]
    mine, its = (side[0].turn.facts if side else None for side in (left, right))
    if mine is None or its is None:
        return RunComparison(turns, unpaired, "One of the runs has no turn.", is_alike=False)
    if (mine.kind, mine.name) == (its.kind, its.name):
        of = f"Both are runs of the {mine.kind} {mine.name}."
        return RunComparison(turns, unpaired, of, is_alike=True)
    of = f"These are runs of different things: the {mine.kind} {mine.name}, and the {its.kind} {its.name}."
    if mine.kind == its.kind:
        of = f"These are runs of different {KINDS.get(mine.kind, 'flows')}: {mine.name}, and {its.name}."
    return RunComparison(turns, unpaired, of, is_alike=False)


@dataclass(frozen=True)
class ForkReport(Comparison):
    fork: Fork
    model: ForkedModel

    @property
    def changed(self) -> list[str]:
        """The changed parameters, each as NAME=VALUE."""
        if self.fork.question == self.fork.origin.run.question:
            asked = {}
        else:
            asked = {"query": self.fork.question}
        return [f"{name}={_plain(value)}" for name, value in {**asked, **self.fork.changed}.items()]

    @property
    def kept(self) -> str:
        if self.fork.at:
            return f"round {self.fork.at}"
        return "the question"

    @property
    def same_answer(self) -> str:
        if self.changed and self.model.is_recorded:
            return "the same: the model's turns are recorded. A real model shows what a change leads to."
        if self.left.answer:
            return "the same"
        return "none on either side"

    def sentences(self) -> Iterator[str]:
        """Yield sentences for the user that follow the tables."""
        if missing := self.right.not_recorded:
            counts = Counter(call.partition(" ")[0] for call in missing)
            calls = ", ".join(f"{count} × {name}" for name, count in sorted(counts.items()))
            yield f"Calls that are not in the recording: {calls}. --live-tools runs them."
        at = self.fork.at
        if 0 < at == self.fork.origin.answered and self.right.model_calls <= self.left.model_calls:
            kept, lower = ("it", "--at 0") if at == 1 else ("them all", f"--at {at - 1} or lower")
            needs = f"{lower}, and --script FILE or a real model"
            yield f"The run has {counted(at, 'round')}, and --at {at} keeps {kept}. Another answer needs {needs}."
        if self.model.afterwards:
            yield self.model.afterwards

    def as_json(self) -> JsonObject:
        return {
            "trace": str(self.fork.origin.file),
            "at": self.fork.at,
            "question": self.fork.origin.run.question,
            "strategy": self.fork.origin.strategy,
            "changed": self.changed,
            "model": self.model.description.notice,
            "not_recorded": self.right.not_recorded,
            "differences": super().as_json(),
        }


def _plain(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def render_fork(fork: ForkReport) -> str:
    template = page_environment().get_template("fork.html.j2")
    return template.render(fork=fork, comparison=fork, origin=fork.fork.origin)
