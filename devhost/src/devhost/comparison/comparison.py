"""Two runs and the differences between them: a fork next to its origin, on a page and in the terminal."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import zip_longest
from typing import Literal

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from devhost.fork import Fork, ForkedModel, Origin
from devhost.node.outputs.run import Run, plugin_error
from devhost.page.calls import Said, offered_tools, prompt_of
from devhost.page.page import page_environment
from devhost.protocol.wire import JsonObject
from devhost.recording.turns import model_calls, model_in, tool_calls
from devhost.terminal.tables import printable
from devhost.tools.recorded import NOT_RECORDED
from devhost.trace.runs import Call, run_of
from devhost.words import counted

type Kind = Literal["same", "changed", "left", "right", "gap"]
"""`left` and `right`: only there. `gap`: equal lines that are left out."""
CONTEXT = 1
"""Equal lines around each difference."""


@dataclass(frozen=True)
class Row:
    kind: Kind
    left: str = ""
    right: str = ""


def rows(left: Sequence[str], right: Sequence[str], *, whole: bool = False) -> list[Row]:
    """Empty without a difference. `whole`: with all equal lines, also then."""
    matcher = SequenceMatcher(None, left, right)
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
class Side:
    origin: Origin
    repeats: bool = False
    """Whether its model says again what the other run's model said, whatever the prompt."""

    @cached_property
    def run(self) -> Run:
        return run_of(self.origin.run, self.origin.strategy)

    @property
    def answer(self) -> list[str]:
        return self.run.outputs.text.splitlines()

    @property
    def calls(self) -> list[str]:
        """A line for each tool call: name, arguments, and whether it failed."""
        return [_called(call) for call in tool_calls(self.origin.run.calls)]

    @property
    def not_recorded(self) -> list[str]:
        """Those of them that no recorded answer fitted."""
        return [_called(call) for call in tool_calls(self.origin.run.calls) if _raised(call) == NOT_RECORDED]

    @property
    def model_calls(self) -> int:
        return len(model_calls(self.origin.run.calls))

    @property
    def prompts(self) -> Iterator[list[str]]:
        """Of each round the lines that no earlier prompt of the run had; of the first one with the tools' names."""
        known = set[Said]()
        for number, each in enumerate(self.origin.rounds):
            last = each.calls[-1]
            lines = list[str]()
            if number == 0:
                lines.append(f"tools: {', '.join(tool.name for tool in offered_tools(last)) or 'none'}")
            for said in prompt_of(last):
                if said not in known:
                    lines += [f"{said.role}:", *said.text.splitlines()]
            known |= set(prompt_of(last))
            yield lines

    @property
    def facts(self) -> dict[str, str]:
        """By name; tokens and seconds as the model's answers reported them, also those of recorded turns."""
        spent = self.run.calls.spent
        error = self.run.error
        of_model = {
            "prompt tokens": f"{spent['prompt_tokens']:,}",
            "completion tokens": f"{spent['completion_tokens']:,}",
            SECONDS: f"{spent['latency']:.2f}",
        }
        return {
            "model": str(model_in(self.origin.run.parameters).get("model", "")),  # as the strategy was told
            "ended": f"{self.run.ending}" if error is None else f"{self.run.ending}: {error.kind}: {error.message}",
            "model calls": f"{self.model_calls:,}",
            "tool calls": f"{len(self.calls):,}",
            **(dict.fromkeys(of_model, AS_RECORDED) if self.repeats else of_model),
        }


def _called(call: Call) -> str:
    given = json.dumps(call.arguments, ensure_ascii=False, sort_keys=True)
    return f"{call.name} {given}{f' → {_raised(call)}' if call.error else ''}"


def _raised(call: Call) -> str:
    """The type of its error."""
    found = plugin_error(call.error) if call.error else None
    return found[1].kind if found else "error" if call.error else ""


# Two runs and what is different between them.

SECONDS = "seconds in models"
AS_RECORDED = "as recorded"
"""In place of what a model reports that did not read its prompts."""


@dataclass(frozen=True)
class Fact:
    name: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        """No two runs take the same time."""
        return self.left != self.right and self.name != SECONDS and self.right != AS_RECORDED


@dataclass(frozen=True)
class PromptRows:
    round: int
    rows: list[Row]


@dataclass(frozen=True)
class Comparison:
    names: tuple[str, str]
    left: Side
    right: Side

    @property
    def facts(self) -> list[Fact]:
        right = self.right.facts
        return [Fact(name, value, right[name]) for name, value in self.left.facts.items()]

    @property
    def calls(self) -> list[Row]:
        return rows(self.left.calls, self.right.calls, whole=True)

    @property
    def answer(self) -> list[Row]:
        return rows(self.left.answer, self.right.answer)

    @property
    def prompts(self) -> list[PromptRows]:
        """Of the rounds whose prompts differ."""
        pairs = zip_longest(self.left.prompts, self.right.prompts, fillvalue=list[str]())
        found = [PromptRows(number, rows(mine, its)) for number, (mine, its) in enumerate(pairs, start=1)]
        return [each for each in found if each.rows]

    def as_json(self) -> JsonObject:
        return {
            "facts": {fact.name: {**asdict(fact), "differs": fact.differs} for fact in self.facts},
            "calls": list(map(asdict, self.calls)),
            "answer": list(map(asdict, self.answer)),
            "prompts": list(map(asdict, self.prompts)),
        }


@dataclass(frozen=True)
class ForkReport(Comparison):
    fork: Fork
    model: ForkedModel

    @property
    def changed(self) -> list[str]:
        """The parameters, each as NAME=VALUE."""
        asked = {} if self.fork.question == self.fork.origin.run.question else {"query": self.fork.question}
        return [f"{name}={_plain(value)}" for name, value in {**asked, **self.fork.scenario.given}.items()]

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
        """For people, after the tables."""
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


# A comparison as objects that rich prints. Differences are marked by signs as well as by colours.

LEFT = "red"
RIGHT = "green"
SIGNS = {"same": (" ", " "), "changed": ("−", "+"), "left": ("−", " "), "right": (" ", "+")}


def show_fork(fork: ForkReport, console: Console) -> None:
    for title, content in _sections(fork):
        console.line()
        console.print(Rule(Text(title, "bold cyan"), align="left", style="dim"))
        console.print(content)
    console.print(Rule(style="dim"))
    for sentence in fork.sentences():
        console.print(Text(printable(sentence), "yellow"))


def _sections(fork: ForkReport) -> Iterator[tuple[str, RenderableType]]:
    yield f"changed after {fork.kept}", Text(printable("\n".join(fork.changed)) or "no parameter")
    yield "side by side", _facts_table(fork)
    if fork.calls:
        yield "tool calls", _rows_table(fork.calls, fork.names)
    for prompt in fork.prompts:
        yield f"prompt of round {prompt.round}, what differs", _rows_table(prompt.rows, fork.names)
    yield "answer", _rows_table(fork.answer, fork.names) if fork.answer else Text(fork.same_answer)


def _facts_table(comparison: Comparison) -> Table:
    table = Table("", "", box=None, pad_edge=False, header_style="bold")
    for name in comparison.names:
        table.add_column(Text(printable(name)), overflow="fold")
    for fact in comparison.facts:
        style = "yellow" if fact.differs else ""
        cells = [Text(printable(cell), style) for cell in (fact.name, fact.left, fact.right)]
        table.add_row(Text("≠" if fact.differs else " ", "yellow bold"), *cells)
    return table


def _rows_table(rows: Sequence[Row], names: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name in names:
        table.add_column("", width=1)
        table.add_column(Text(printable(name)), ratio=1, overflow="fold")
    for row in rows:
        if row.kind == "gap":
            table.add_row("", Text("⋯", "dim"), "", Text("⋯", "dim"))
            continue
        minus, plus = SIGNS[row.kind]
        left, right = ("", "") if row.kind == "same" else (LEFT, RIGHT)
        mine = Text(printable(row.left), left)
        its = Text(printable(row.right), right)
        table.add_row(Text(minus, LEFT), mine, Text(plus, RIGHT), its)
    return table
