"""An evaluation in each of its forms: JSON, a page, JUnit's XML, the terminal."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import asdict

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from devhost.evaluation.results import Cell, Change, ColumnChange, Comparison, Summary, Total
from devhost.expected import Check
from devhost.page.page import page_environment
from devhost.protocol.wire import JsonObject
from devhost.terminal.tables import clipped, printable
from devhost.words import counted, price_text


def json_report(summary: Summary, threshold: float, comparison: Comparison | None) -> JsonObject:
    header = summary.evaluation.header
    return {
        "file": header.file,
        "scripted": header.scripted,
        "threshold": threshold,
        "finished": summary.evaluation.is_finished,
        "columns": [
            {
                **asdict(total),
                "price": str(total.price),
                "share": total.share,
                "reaches_threshold": total.reaches(threshold),
                "settings": header.columns[total.column],
            }
            for total in summary.totals
        ],
        "cells": [
            {
                **asdict(cell.case),
                "column": cell.column,
                "passed": cell.passed,
                "share": cell.share,
                "results": [result.model_dump(mode="json", exclude={"case", "column"}) for result in cell.results],
            }
            for cell in summary.cells
        ],
        **({} if comparison is None else {"comparison": list(map(_change, comparison))}),
    }


def _change(column: ColumnChange) -> JsonObject:
    def changed(changes: tuple[Change, ...]) -> list[JsonObject]:
        return [
            {
                "name": change.after.case.name,
                "share_before": change.before.share,
                "share_after": change.after.share,
                "reasons": list(change.reasons),
            }
            for change in changes
        ]

    return {
        "column": column.column,
        "compared": column.compared,
        "better": changed(column.better),
        "worse": changed(column.worse),
        "changed_settings": list(column.settings),
    }


# Numbers and shares in words, the same in the terminal and on the page.


def share(part: int, whole: int, noun: str = "") -> str:
    """`3 of 26`, or with a noun `3 of 26 cases`."""
    return f"{part:,} of {counted(whole, noun) if noun else f'{whole:,}'}"


def mark(cell: Cell | None) -> str:
    """`passed`, `failed`, or with repeats how many fitted; then the failed tool calls. A dash for no result."""
    if cell is None:
        return "–"
    word = "passed" if cell.passed else "failed"
    word = word if len(cell.results) == 1 else f"{word} {cell.fitting}/{len(cell.results)}"
    return f"{word}, {counted(cell.failed_calls, 'tool call')} failed" if cell.failed_calls else word


def costs(total: Total) -> str:
    price = f" · {price_text(str(total.price))} {total.currency}" if total.price else ""
    return f"{total.tokens:,.0f} tokens and {total.seconds:.2f} s a run{price}"


# An evaluation as one self-contained page, with the look of a run's report.


def render_evaluation(summary: Summary, threshold: float, comparison: Comparison | None = None) -> str:
    environment = page_environment()
    environment.globals.update(costs=costs, mark=mark, share=share)
    return environment.get_template("evaluation.html.j2").render(
        summary=summary, header=summary.evaluation.header, threshold=threshold, comparison=comparison
    )


# An evaluation as JUnit's XML, which CI systems read: a column is a test suite, a case a test case.

_REFUSED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""By XML 1.0, even if it is escaped."""


def junit_xml(summary: Summary) -> bytes:
    root = ET.Element("testsuites")
    for total in summary.totals:
        counts = {"tests": str(total.cases), "failures": str(total.cases - total.passed)}
        suite = ET.SubElement(root, "testsuite", {"name": _REFUSED.sub("�", total.column), **counts})
        for cell in (cell for cell in summary.cells if cell.column == total.column):
            seconds = sum(result.observed.seconds for result in cell.results)
            names = {"classname": cell.column, "name": _REFUSED.sub("�", cell.case.name)}
            tested = ET.SubElement(suite, "testcase", {**names, "time": f"{seconds:.3f}"})
            if not cell.passed:
                sentences = "\n".join(check.sentence for check in cell.failures)
                ET.SubElement(tested, "failure", message=mark(cell)).text = _REFUSED.sub("�", sentences)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


# An evaluation in the terminal.

LONGEST = 300
"""Characters of an answer or an expectation."""


def show_evaluation(summary: Summary, comparison: Comparison | None, console: Console) -> None:
    failed = [part for cell in summary.cells if not cell.passed for part in _failed(cell)]
    changed = [part for column in comparison or () for part in _compared(column)]
    for parts in ([_cases_table(summary)], failed, [_columns_table(summary)], changed):
        if parts:
            console.line()
            console.print(Group(*parts))
    console.line()


def _cases_table(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("case", overflow="fold")
    for column in summary.columns:
        table.add_column(column, overflow="fold")
    for case in summary.evaluation.header.cases:
        cells = [summary.cell(case.name, column) for column in summary.columns]
        if any(cells):
            table.add_row(Text(printable(case.name)), *map(_marked, cells))
    return table


def _marked(cell: Cell | None) -> Text:
    if cell is None:
        return Text("–", "dim")
    return Text(f"✓ {mark(cell)}", "green") if cell.passed else Text(f"✗ {mark(cell)}", "red")


def _failed(cell: Cell) -> Iterator[RenderableType]:
    yield Text(f"✗ {printable(cell.case.name)} · {printable(cell.column)}", "red")
    for check in cell.failures:
        yield _indented(_words(check))
    for trace in filter(None, (result.trace for result in cell.results)):
        yield _indented(f"trace: {printable(trace)}")


def _words(check: Check) -> str:
    expected, found = (clipped(printable(" ".join(text.split())), LONGEST) for text in (check.expected, check.found))
    return f"{check.name}: expected {expected}\n  found {found}"


def _columns_table(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for total in summary.totals:
        table.add_row(Text(printable(total.column), "bold"), share(total.passed, total.cases), costs(total))
    return table


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
    style, sign = ("green", "+") if change.is_better else ("red", "-")
    yield _indented(f"{sign} {printable(change.after.case.name)}: {was} → {is_now}", style)
    for reason in change.reasons:
        yield _indented(clipped(printable(" ".join(reason.split())), LONGEST), "dim", levels=2)


def _indented(text: str, style: str = "", levels: int = 1) -> RenderableType:
    return Padding(Text(text, style), (0, 0, 0, 2 * levels), expand=False)
