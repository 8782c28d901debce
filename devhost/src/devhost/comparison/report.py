"""A fork next to its origin: on a page and in the terminal."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from devhost.comparison.comparison import Comparison, Fact, Row
from devhost.fork import Fork, ForkedModel, Origin
from devhost.page.page import page_environment
from devhost.protocol.wire import JsonObject
from devhost.terminal.tables import printable


@dataclass(frozen=True)
class ForkReport:
    comparison: Comparison
    trace: str
    question: str
    strategy: str
    at: int
    """How many rounds stay."""
    changed: tuple[str, ...]
    """The parameters, each as NAME=VALUE."""
    model: str
    """A sentence about what answers."""
    ran: tuple[str, ...]
    """The calls of tools that ran."""
    afterwards: str
    is_recorded: bool
    """Whether the recording gives all turns of the model."""

    @classmethod
    def of(cls, comparison: Comparison, fork: Fork, origin: Origin, model: ForkedModel) -> "ForkReport":
        asked = {} if fork.question == origin.run.question else {"query": fork.question}
        changed = (f"{name}={_plain(value)}" for name, value in {**asked, **fork.scenario.given}.items())
        return cls(
            comparison,
            str(origin.file),
            origin.run.question,
            origin.strategy,
            fork.past.rounds,
            tuple(changed),
            model.description.notice,
            tuple(f"{call['tool']} {_plain(call['arguments'])}" for call in fork.ran),
            model.afterwards,
            model.is_recorded,
        )

    @property
    def kept(self) -> str:
        return f"round {self.at}" if self.at else "the question"

    @property
    def same_answer(self) -> str:
        is_given = self.changed and self.is_recorded
        return "the same: the model's turns are recorded" if is_given else "the same"

    @property
    def not_recorded(self) -> tuple[str, ...]:
        return self.comparison.right.not_recorded

    def sentences(self) -> Iterator[str]:
        """For people, after the tables."""
        if self.changed and self.is_recorded:
            yield "Recorded turns stay the same whatever you change. A real model shows what a change leads to."
        if self.ran:
            yield f"Calls that ran: {_counted(self.ran)}."
        if self.not_recorded:
            yield f"Calls that are not in the recording: {_counted(self.not_recorded)}. --live-tools runs them."
        if self.afterwards:
            yield self.afterwards

    def as_json(self) -> JsonObject:
        return {
            "trace": self.trace,
            "at": self.at,
            "question": self.question,
            "strategy": self.strategy,
            "changed": list(self.changed),
            "model": self.model,
            "tools_that_ran": list(self.ran),
            "not_recorded": list(self.not_recorded),
            "recorded": self.comparison.left.as_json(),
            "fork": self.comparison.right.as_json(),
            "differences": self.comparison.as_json(),
        }


def _counted(calls: Iterable[str]) -> str:
    """By name."""
    counts = Counter(call.partition(" ")[0] for call in calls)
    return ", ".join(f"{count} × {name}" for name, count in sorted(counts.items()))


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


# A fork beside its origin as a self-contained HTML page, with the colours and fonts of a trace's page.

HERE = Path(__file__).parent


def render_fork(fork: ForkReport) -> str:
    return page_environment(HERE).get_template("fork.html.j2").render(fork=fork, comparison=fork.comparison)


# A comparison as objects that rich prints: facts in three columns, texts in two.
#
# Differences are marked by signs as well as by colours.

LEFT, RIGHT = "red", "green"
SIGNS = {"same": (" ", " "), "changed": ("−", "+"), "left": ("−", " "), "right": (" ", "+"), "gap": (" ", " ")}
GAP = "⋯"


def show_fork(fork: ForkReport, console: Console) -> None:
    for title, content in [*_changes(fork), *_sections(fork.comparison, fork.same_answer)]:
        console.line()
        console.print(Rule(Text(title, "bold cyan"), align="left", style="dim"))
        console.print(content)
    console.print(Rule(style="dim"))
    for sentence in fork.sentences():
        console.print(Text(printable(sentence), "yellow"))


def _changes(fork: ForkReport) -> Iterator[tuple[str, RenderableType]]:
    changed = Text("\n".join(map(printable, fork.changed)) or "no parameter", "" if fork.changed else "dim")
    yield f"changed after {fork.kept}", changed


def _sections(comparison: Comparison, same_answer: str) -> Iterator[tuple[str, RenderableType]]:
    names = (comparison.left.name, comparison.right.name)
    yield "side by side", facts_table(comparison.facts, names)
    if comparison.calls:
        yield "tool calls", rows_table(comparison.calls, names)
    for prompt in comparison.prompts:
        yield f"prompt of round {prompt.round}, what differs", rows_table(prompt.rows, names)
    if comparison.answer:
        yield "answer, what differs", rows_table(comparison.answer, names)
    else:
        yield "answer", Text(same_answer, "dim")


def facts_table(facts: Sequence[Fact], names: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("")
    for name in names:
        table.add_column(Text(printable(name)), overflow="fold")
    table.add_column("")
    for fact in facts:
        style = "yellow" if fact.differs else ""
        cells = [Text(printable(cell), style) for cell in (fact.name, fact.left, fact.right, fact.change)]
        table.add_row(Text("≠" if fact.differs else " ", "yellow bold"), *cells)
    return table


def rows_table(rows: Sequence[Row], names: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name in names:
        table.add_column("", width=1)
        table.add_column(Text(printable(name)), ratio=1, overflow="fold")
    for row in rows:
        if row.kind == "gap":
            table.add_row("", Text(GAP, "dim"), "", Text(GAP, "dim"))
            continue
        minus, plus = SIGNS[row.kind]
        left, right = ("", "") if row.kind == "same" else (LEFT, RIGHT)
        cells = (
            Text(minus, LEFT),
            Text(printable(row.left), left),
            Text(plus, RIGHT),
            Text(printable(row.right), right),
        )
        table.add_row(*cells)
    return table
