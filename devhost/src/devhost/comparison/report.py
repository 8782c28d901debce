"""A fork next to its origin: on a page and in the terminal."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from devhost.comparison.comparison import Comparison, Row
from devhost.fork import Fork, ForkedModel
from devhost.page.page import page_environment
from devhost.protocol.wire import JsonObject
from devhost.terminal.tables import printable
from devhost.words import counted


@dataclass(frozen=True)
class ForkReport:
    comparison: Comparison
    fork: Fork
    model: ForkedModel

    @property
    def changed(self) -> list[str]:
        """The parameters, each as NAME=VALUE."""
        asked = {} if self.fork.question == self.fork.origin.run.question else {"query": self.fork.question}
        return [f"{name}={_plain(value)}" for name, value in {**asked, **self.fork.scenario.given}.items()]

    @property
    def kept(self) -> str:
        return f"round {self.fork.at}" if self.fork.at else "the question"

    @property
    def same_answer(self) -> str:
        if self.changed and self.model.is_recorded:
            return "the same: the model's turns are recorded. A real model shows what a change leads to."
        return "the same" if self.comparison.left.answer else "none on either side"

    def sentences(self) -> Iterator[str]:
        """For people, after the tables."""
        if missing := self.comparison.right.not_recorded:
            counts = Counter(call.partition(" ")[0] for call in missing)
            calls = ", ".join(f"{count} × {name}" for name, count in sorted(counts.items()))
            yield f"Calls that are not in the recording: {calls}. --live-tools runs them."
        at, answered, comparison = self.fork.at, self.fork.origin.answered, self.comparison
        if 0 < at == answered and comparison.right.model_calls <= comparison.left.model_calls:
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
            "not_recorded": list(self.comparison.right.not_recorded),
            "differences": self.comparison.as_json(),
        }


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


# A fork beside its origin as a self-contained HTML page, with the colours and fonts of a trace's page.


def render_fork(fork: ForkReport) -> str:
    template = page_environment().get_template("fork.html.j2")
    return template.render(fork=fork, comparison=fork.comparison, origin=fork.fork.origin)


# A comparison as objects that rich prints. Differences are marked by signs as well as by colours.

LEFT, RIGHT = "red", "green"
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
    comparison = fork.comparison
    yield f"changed after {fork.kept}", Text(printable("\n".join(fork.changed)) or "no parameter")
    yield "side by side", _facts_table(comparison)
    if comparison.calls:
        yield "tool calls", _rows_table(comparison.calls, comparison.names)
    for prompt in comparison.prompts:
        yield f"prompt of round {prompt.round}, what differs", _rows_table(prompt.rows, comparison.names)
    differs = comparison.answer
    yield "answer", _rows_table(differs, comparison.names) if differs else Text(fork.same_answer)


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
        mine, its = Text(printable(row.left), left), Text(printable(row.right), right)
        table.add_row(Text(minus, LEFT), mine, Text(plus, RIGHT), its)
    return table
