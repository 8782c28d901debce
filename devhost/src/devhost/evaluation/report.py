"""An evaluation in each of its forms: JSON, a page, JUnit's XML, the terminal."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import asdict

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from devhost.evaluation.results import Cell, Change, ColumnChange, Comparison, Evaluation, Total
from devhost.page.page import page_environment
from devhost.protocol.wire import JsonObject
from devhost.terminal.tables import clipped, printable
from devhost.words import counted, in_a_line, price_text


def json_report(evaluation: Evaluation, threshold: float, comparison: Comparison | None) -> JsonObject:
    header = evaluation.header
    return {
        "file": header.file,
        "scripted": header.scripted,
        "threshold": threshold,
        "finished": evaluation.is_finished,
        "columns": [
            {
                **asdict(total),
                "price": str(total.price),
                "share": total.share,
                "reaches_threshold": total.reaches(threshold),
                "settings": header.columns[total.column],
            }
            for total in evaluation.totals
        ],
        "cells": [
            {
                **asdict(cell.case),
                "column": cell.column,
                "passed": cell.passed,
                "share": cell.share,
                "results": [result.model_dump(mode="json", exclude={"case", "column"}) for result in cell.results],
            }
            for cell in evaluation.cells.values()
        ],
        **({} if comparison is None else {"comparison": list(map(_change, comparison))}),
    }


def _change(column: ColumnChange) -> JsonObject:
    def changed(change: Change) -> JsonObject:
        return {
            "name": change.after.case.name,
            "share_before": change.before.share,
            "share_after": change.after.share,
            "reasons": list(change.reasons),
        }

    return {
        "column": column.column,
        "compared": len(column.changes),
        "better": list(map(changed, column.better)),
        "worse": list(map(changed, column.worse)),
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
    if cell.failed_calls:
        return f"{word}, {counted(cell.failed_calls, 'tool call')} failed"
    return word


def costs(total: Total) -> str:
    price = f" · {price_text(str(total.price))} {total.currency}" if total.price else ""
    return f"{total.tokens:,.0f} tokens and {total.seconds:.2f} s a run{price}"


def render_evaluation(evaluation: Evaluation, threshold: float, comparison: Comparison | None = None) -> str:
    template = page_environment(costs, mark, share).get_template("evaluation.html.j2")
    return template.render(evaluation=evaluation, threshold=threshold, comparison=comparison)


_REFUSED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""By XML 1.0, even if it is escaped."""


def junit_xml(evaluation: Evaluation) -> bytes:
    """For CI systems: a column is a test suite, a case a test case."""
    root = ET.Element("testsuites")
    for total in evaluation.totals:
        counts = {"tests": str(total.cases), "failures": str(total.cases - total.passed)}
        suite = ET.SubElement(root, "testsuite", {"name": _REFUSED.sub("�", total.column), **counts})
        for cell in (cell for cell in evaluation.cells.values() if cell.column == total.column):
            seconds = sum(result.observed.seconds for result in cell.results)
            names = {"classname": cell.column, "name": _REFUSED.sub("�", cell.case.name)}
            tested = ET.SubElement(suite, "testcase", {**names, "time": f"{seconds:.3f}"})
            if not cell.passed:
                sentences = "\n".join(check.sentence for check in cell.failures)
                ET.SubElement(tested, "failure", message=mark(cell)).text = _REFUSED.sub("�", sentences)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


LONGEST = 300
"""Characters of an answer or an expectation."""


def show_evaluation(evaluation: Evaluation, comparison: Comparison | None, console: Console) -> None:
    failed = [part for cell in evaluation.cells.values() if not cell.passed for part in _failed(cell)]
    totals = Table(box=None, pad_edge=False, show_header=False)
    for total in evaluation.totals:
        totals.add_row(Text(printable(total.column), "bold"), share(total.passed, total.cases), costs(total))
    changed = [part for column in comparison or () for part in _compared(column)]
    for parts in ([_cases_table(evaluation)], failed, [totals], changed):
        if parts:
            console.line()
            console.print(Group(*parts))
    console.line()


def _cases_table(evaluation: Evaluation) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("case", overflow="fold")
    for total in evaluation.totals:
        table.add_column(total.column, overflow="fold")
    for case in evaluation.header.cases:
        cells = [evaluation.cells.get((case.name, total.column)) for total in evaluation.totals]
        if any(cells):
            table.add_row(Text(printable(case.name)), *map(_marked, cells))
    return table


def _marked(cell: Cell | None) -> Text:
    if cell is None:
        return Text("–", "dim")
    if cell.passed:
        return Text(f"✓ {mark(cell)}", "green")
    return Text(f"✗ {mark(cell)}", "red")


def _failed(cell: Cell) -> Iterator[RenderableType]:
    yield Text(f"✗ {printable(cell.case.name)} · {printable(cell.column)}", "red")
    for check in cell.failures:
        yield _indented(f"{check.name}: expected {_short(check.expected)}\n  found {_short(check.found)}")
    for result in cell.results:
        if result.trace:
            yield _indented(f"trace: {printable(result.trace)}")


def _compared(column: ColumnChange) -> Iterator[RenderableType]:
    better = len(column.better)
    worse = len(column.worse)
    yield Text.assemble(
        (f"{printable(column.column)}: ", "bold"),
        (f"{share(better, len(column.changes), 'case')} got better", "green" if better else ""),
        ", ",
        (f"{worse} got worse", "red" if worse else ""),
    )
    for setting in column.settings:
        yield _indented(f"changed: {clipped(printable(setting), LONGEST)}", "yellow")
    for change in (*column.better, *column.worse):
        style, sign = ("green", "+") if change.is_better else ("red", "-")
        name = printable(change.after.case.name)
        yield _indented(f"{sign} {name}: {mark(change.before)} → {mark(change.after)}", style)
        yield from (_indented(_short(reason), "dim", levels=2) for reason in change.reasons)
    yield _indented(f"before: {costs(column.before)}\nafter:  {costs(column.after)}", "dim")


def _short(text: str) -> str:
    return clipped(printable(in_a_line(text)), LONGEST)


def _indented(text: str, style: str = "", levels: int = 1) -> RenderableType:
    return Padding(Text(text, style), (0, 0, 0, 2 * levels), expand=False)
