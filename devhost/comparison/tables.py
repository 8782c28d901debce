"""A comparison as objects that rich prints: facts in three columns, texts in two.

Differences are marked by signs as well as by colours.
"""

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from devhost.comparison.comparison import Comparison, Fact
from devhost.comparison.fork_report import ForkReport
from devhost.comparison.lines import Piece, Row, is_part
from devhost.terminal.tables.text import printable

LEFT, RIGHT = "red", "green"
SIGNS = {"same": (" ", " "), "changed": ("−", "+"), "left": ("−", " "), "right": (" ", "+"), "gap": (" ", " ")}
GAP = "⋯"


def show_fork(fork: ForkReport, console: Console) -> None:
    for title, content in [*_changes(fork), *_sections(fork.comparison)]:
        console.line()
        console.print(Rule(Text(title, "bold cyan"), align="left", style="dim"))
        console.print(content)
    console.print(Rule(style="dim"))
    for sentence in fork.sentences():
        console.print(Text(printable(sentence), "yellow"))


def _changes(fork: ForkReport) -> Iterator[tuple[str, RenderableType]]:
    changed = Text("\n".join(map(printable, fork.changed)) or "no parameter", "" if fork.changed else "dim")
    yield f"changed after {fork.kept}", changed


def _sections(comparison: Comparison) -> Iterator[tuple[str, RenderableType]]:
    names = (comparison.left.name, comparison.right.name)
    yield "side by side", facts_table(comparison.facts, names)
    if comparison.calls:
        yield "tool calls", rows_table(comparison.calls, names)
    for prompt in comparison.prompts:
        yield f"prompt of round {prompt.round}, what differs", rows_table(prompt.rows, names)
    if comparison.answer:
        yield "answer, what differs", rows_table(comparison.answer, names)
    else:
        yield "answer", Text("the same", "dim")


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
        table.add_row(Text(minus, LEFT), _text(row.left, LEFT), Text(plus, RIGHT), _text(row.right, RIGHT))
    return table


def _text(pieces: Sequence[Piece], style: str) -> Text:
    other = f"{style} bold" if is_part(pieces) else style
    return Text.assemble(*((printable(piece.text), other if piece.is_other else "") for piece in pieces))
