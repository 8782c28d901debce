"""The rows as a table for the terminal, and every problem as a sentence below it."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .rows import Row

_HEADS = ("example", "scenario", "strategy")
_NUMBERS = ("rounds", "tool calls")


def show(rows: Sequence[Row], console: Console) -> None:
    table = Table(*_HEADS, box=None, pad_edge=False)
    for head in _NUMBERS:
        table.add_column(head, justify="right")
    table.add_column("ok")
    for row in rows:
        numbers = (str(number) for number in (row.rounds, row.tool_calls))
        ok = Text("no", "bold red") if row.problems else Text("yes", "green")
        table.add_row(row.example, row.scenario, row.strategy, *numbers, ok)
    console.print(table)
    for row in rows:
        for problem in row.problems:
            console.print(f"{row.example}/{row.scenario} under {row.strategy}: {problem}", markup=False, soft_wrap=True)
