"""Prints two runs side by side with rich. Differences are marked by signs as well as by colors."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from devhost.comparison.comparison import (
    AlignedRow,
    ComparedFact,
    ComparedPart,
    Comparison,
    ForkReport,
    RunComparison,
    rows,
)
from devhost.terminal.tables import printable

LEFT = "red"
RIGHT = "green"
SIGNS = {"same": (" ", " "), "changed": ("−", "+"), "left": ("−", " "), "right": (" ", "+")}


# A fork next to its origin.


def show_fork(fork: ForkReport, console: Console) -> None:
    _show(_sections(fork), console)
    console.print(Rule(style="dim"))
    for sentence in fork.sentences():
        console.print(Text(printable(sentence), "yellow"))


def _sections(fork: ForkReport) -> Iterator[tuple[str, RenderableType]]:
    yield f"changed after {fork.kept}", Text(printable("\n".join(fork.changed)) or "no parameter")
    yield "side by side", _facts_table(fork.facts, fork.names)
    if fork.calls:
        yield "tool calls", _rows_table(fork.calls, fork.names)
    yield from _prompts(fork)
    yield "answer", _rows_table(fork.answer, fork.names) if fork.answer else Text(fork.same_answer)


# Two traced runs.


def show_runs(runs: RunComparison, console: Console) -> None:
    """Print what differs in each turn, and only the names of parts that are the same."""
    console.print(Text(printable(runs.of), "" if runs.is_alike else "yellow"))
    for number, turn in enumerate(runs.turns, start=1):
        if len(runs.turns) > 1:
            console.line()
            console.print(Text(printable(f"turn {number}: {turn.left.turn.question}"), "bold"))
        console.print(Text(f"different: {', '.join(turn.different) or 'nothing'}"))
        console.print(Text(f"the same: {', '.join(turn.same) or 'nothing'}"))
        _show(_differing(turn), console)
    for name, question in runs.unpaired:
        console.print(Text(printable(f"a turn of one run alone ({name}): {question or 'no words'}"), "yellow"))


def _differing(turn: Comparison) -> Iterator[tuple[str, RenderableType]]:
    for part in turn.parts:
        if part.differs and part.rows:
            yield part.name, _rows_table(_without_far_lines(part), turn.names)
        elif part.differs:
            yield part.name, _facts_table([fact for fact in part.facts if fact.differs], turn.names)
        for name, lines in part.texts:
            yield f"{part.name}: {name}", _rows_table(lines, turn.names)
    yield from _prompts(turn)


def _without_far_lines(part: ComparedPart) -> list[AlignedRow]:
    """Return the rows of a part, in which equal lines are kept only around a difference."""
    left = [row.left for row in part.rows if row.kind != "right"]
    right = [row.right for row in part.rows if row.kind != "left"]
    return rows(left, right)


# Sections that both views have.


def _show(sections: Iterable[tuple[str, RenderableType]], console: Console) -> None:
    for title, content in sections:
        console.line()
        console.print(Rule(Text(printable(title), "bold cyan"), align="left", style="dim"))
        console.print(content)


def _prompts(comparison: Comparison) -> Iterator[tuple[str, RenderableType]]:
    for prompt in comparison.prompts:
        whose = ""
        if comparison.has_askers:
            whose = f"{prompt.asker}, "
        yield f"{whose}prompt of round {prompt.round}, what differs", _rows_table(prompt.rows, comparison.names)


def _facts_table(facts: Iterable[ComparedFact], names: tuple[str, str]) -> Table:
    table = Table("", "", box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(Text(printable(name)), overflow="fold")
    for fact in facts:
        style = ""
        if fact.differs:
            style = "yellow"
        cells = [Text(printable(cell), style) for cell in (fact.name, fact.left, fact.right)]
        table.add_row(Text("≠" if fact.differs else " ", "yellow bold"), *cells)
    return table


def _rows_table(lines: Sequence[AlignedRow], names: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name in names:
        table.add_column("", width=1)
        table.add_column(Text(printable(name)), ratio=1, overflow="fold")
    for row in lines:
        if row.kind == "gap":
            table.add_row("", Text("⋯", "dim"), "", Text("⋯", "dim"))
            continue
        minus, plus = SIGNS[row.kind]
        left, right = ("", "") if row.kind == "same" else (LEFT, RIGHT)
        mine = Text(printable(row.left), left)
        its = Text(printable(row.right), right)
        table.add_row(Text(minus, LEFT), mine, Text(plus, RIGHT), its)
    return table
