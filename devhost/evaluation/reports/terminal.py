"""An evaluation in the terminal. In: a summary. Out: objects that rich prints."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from devhost.evaluation.checks.check import Check
from devhost.evaluation.comparison import Change, ColumnChange, Comparison
from devhost.evaluation.reports.wording import costs, mark, share
from devhost.evaluation.summary import Cell, Summary
from devhost.terminal.tables.text import clipped, printable

LONGEST = 300
"""Characters of an answer or an expectation."""


def cases_table(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("case", overflow="fold")
    for column in summary.columns:
        table.add_column(column, overflow="fold")
    for case in summary.evaluation.header.cases:
        cells = [summary.cell(case.name, column) for column in summary.columns]
        if any(cells):
            table.add_row(Text(printable(case.name)), *map(_marked, cells))
    table.add_section()
    table.add_row(Text("passed", "bold"), *(Text(share(each.passed, each.cases), "bold") for each in summary.totals))
    return table


def _marked(cell: Cell | None) -> Text:
    if cell is None:
        return Text("–", "dim")
    return Text(f"✓ {mark(cell)}", "green") if cell.passed else Text(f"✗ {mark(cell)}", "red")


def failures(summary: Summary) -> RenderableType | None:
    parts = [part for cell in summary.cells if not cell.passed for part in _failed(cell)]
    return Group(*parts) if parts else None


def _failed(cell: Cell) -> Iterator[RenderableType]:
    yield Text(f"✗ {printable(cell.case.name)} · {printable(cell.column)}", "red")
    for check in cell.failures:
        yield _indented(_words(check))


def _words(check: Check) -> str:
    expected, found = (clipped(printable(" ".join(text.split())), LONGEST) for text in (check.expected, check.found))
    return f"{check.name}: expected {expected}\n  found {found}"


def columns_table(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for total in summary.totals:
        table.add_row(Text(printable(total.column), "bold"), share(total.passed, total.cases), costs(total))
    return table


def comparison_view(comparison: Comparison) -> RenderableType:
    parts = [part for column in comparison.columns for part in _compared(column)]
    for count, words in ((comparison.only_after, "new here"), (comparison.only_before, "only in the other evaluation")):
        if count:
            parts.append(Text(f"not compared: {count} {words}", "dim"))
    return Group(*parts)


def _compared(column: ColumnChange) -> Iterator[RenderableType]:
    better, worse = len(column.better), len(column.worse)
    yield Text.assemble(
        (f"{printable(column.column)}: ", "bold"),
        (f"{share(better, column.compared, 'case')} got better", "green" if better else ""),
        ", ",
        (f"{worse} got worse", "red" if worse else ""),
    )
    for setting in column.settings:
        yield _indented(f"changed: {clipped(printable(setting), LONGEST)}", "yellow")
    for change in (*column.better, *column.worse):
        yield from _changed(change)
    yield _indented(f"before: {costs(column.before)}\nafter:  {costs(column.after)}", "dim")


def _changed(change: Change) -> Iterator[RenderableType]:
    was, is_now = mark(change.before), mark(change.after)
    also = " (the case itself changed, too)" if change.is_another_case else ""
    style, sign = ("green", "+") if change.is_better else ("red", "-")
    yield _indented(f"{sign} {printable(change.after.case.name)}: {was} → {is_now}{also}", style)
    for reason in change.reasons:
        yield _indented(clipped(printable(" ".join(reason.split())), LONGEST), "dim", levels=2)


def _indented(text: str, style: str = "", levels: int = 1) -> RenderableType:
    return Padding(Text(text, style), (0, 0, 0, 2 * levels), expand=False)
