"""Reports an evaluation as JSON, as a page, as JUnit XML and in the terminal."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from devhost.errors import SuiteError
from devhost.evaluation.figures import Interval, Mean, Share
from devhost.evaluation.history import EvaluationHistory, no_history
from devhost.evaluation.table import Cell, ColumnTotal, Evaluation
from devhost.evaluation.versus import CaseChange, ColumnChange, Comparison, figures_beyond_chance
from devhost.page.page import page_environment
from devhost.protocol.wire import JsonObject
from devhost.terminal.tables import clipped, printable
from devhost.text import worded
from devhost.words import counted, in_a_line, price_text


def json_report(evaluation: Evaluation, threshold: float, comparison: Comparison | None) -> JsonObject:
    header = evaluation.header
    report: JsonObject = {
        "file": header.file,
        "scripted": header.scripted,
        "threshold": threshold,
        "finished": evaluation.is_finished,
        "columns": [
            {
                "column": total.column,
                "passed": total.passed,
                "cases": total.cases,
                "tokens": total.figures["tokens"].value,
                "seconds": total.figures["seconds"].value,
                "price": str(total.price),
                "currency": total.currency,
                **_share_facts(total.passing),
                "figures": _figures(total),
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
                **_share_facts(cell.passing),
                "figures": _figures(cell),
                "results": [result.model_dump(mode="json", exclude={"case", "column"}) for result in cell.results],
            }
            for cell in evaluation.cells.values()
        ],
    }
    if comparison is not None:
        report["comparison"] = list(map(_change, comparison))
    return report


def _share_facts(share: Share) -> JsonObject:
    return {"share": share.value, "standard_error": share.error, "interval": _interval(share.interval)}


def _interval(interval: Interval | None) -> list[float] | None:
    if interval is None:
        return None
    return [interval.low, interval.high]


def _figures(shown: ColumnTotal | Cell) -> JsonObject:
    return {
        name: {
            "mean": mean.value,
            "standard_error": mean.error,
            "interval": _interval(mean.interval),
            "count": mean.count,
        }
        for name, mean in shown.figures.items()
    }


def _change(column: ColumnChange) -> JsonObject:
    def changed(change: CaseChange) -> JsonObject:
        return {
            "name": change.after.case.name,
            "share_before": change.before.share,
            "share_after": change.after.share,
            "reasons": list(change.reasons),
        }

    return {
        "column": column.column,
        "compared": len(column.changes),
        "verdict": VERDICTS[column.verdict],
        "better": list(map(changed, column.better)),
        "worse": list(map(changed, column.worse)),
        "within_chance": list(map(changed, column.unclear)),
        "figures": dict(column.figures),
        "changed_settings": list(column.settings),
    }


# Texts for numbers and shares, for the terminal and for the page.

VERDICTS = {"more": "better", "less": "worse", "same": "no difference beyond chance"}
NOTE = (
    "Ranges are 95 % intervals: Wilson's for shares, Student's t for means; ± is the standard error. "
    "A difference counts as better or worse if its own interval excludes zero (Newcombe's for shares)."
)
"""The note below a report, about its statistics."""


def share(part: int, whole: int, noun: str = "") -> str:
    """Returns a text such as `3 of 26`, or with a noun `3 of 26 cases`."""
    if noun:
        return f"{part:,} of {counted(whole, noun)}"
    return f"{part:,} of {whole:,}"


def percents(share: Share) -> str:
    """Returns the interval of a share, such as `44 to 100 %`."""
    interval = share.interval
    return f"{interval.low * 100:.0f} to {interval.high * 100:.0f} %"


def mark(cell: Cell | None) -> str:
    """Returns `passed` or `failed`, with the number of passed repeats and of failed tool calls if there are any.

    The text is a dash if there is no result.
    """
    if cell is None:
        return "–"
    word = "failed"
    if cell.passed:
        word = "passed"
    if len(cell.runs) > 1:
        word = f"{word} {cell.fitting}/{len(cell.runs)} ({percents(cell.passing)})"
    if cell.failed_calls:
        return f"{word}, {counted(cell.failed_calls, 'tool call')} failed"
    return word


def passed_of(total: ColumnTotal, evaluation: Evaluation) -> str:
    """Returns the passed cases, such as `23 of 26`, with the interval unless runs were scripted and not repeated."""
    said = share(total.passed, total.cases)
    if evaluation.header.scripted and not total.is_repeated:
        return said
    return f"{said} ({percents(total.passing)})"


def costs(total: ColumnTotal) -> str:
    """Returns the mean tokens, seconds and scores of a run, and the price of all runs."""
    said = f"{_mean(total, 'tokens', ',.0f')} tokens and {_mean(total, 'seconds', '.2f')} s a run"
    if total.price:
        said = f"{said} · {price_text(str(total.price))} {total.currency}"
    names = [name for name in total.figures if name not in {"tokens", "seconds", "price"}]
    return " · ".join((said, *(f"{name} {_mean(total, name, '.3g')}" for name in names)))


def _mean(total: ColumnTotal, name: str, form: str) -> str:
    mean = total.figures[name]
    said = format(mean.value, form)
    if total.is_repeated and mean.error is not None:
        return f"{said} ± {format(mean.error, form)}"
    return said


def mean_text(mean: Mean, form: str = ".4g") -> str:
    """Returns a mean with its error and interval, such as `0.82 ± 0.04 (0.73 to 0.91)`."""
    said = format(mean.value, form)
    interval = mean.interval
    if interval is None:
        return said
    return f"{said} ± {format(mean.error or 0.0, form)} ({format(interval.low, form)} to {format(interval.high, form)})"


def compared_words(column: ColumnChange) -> str:
    """Returns a text such as `3 of 26 cases got better, 0 got worse`, with the number of changes that may be chance."""
    better = share(len(column.better), len(column.changes), "case")
    said = f"{better} got better, {len(column.worse)} got worse"
    if column.unclear:
        return f"{said}, {len(column.unclear)} differ within chance"
    return said


def all_together(column: ColumnChange) -> str:
    """Returns a line such as `all cases together: better`, with the figures that differ beyond chance."""
    return "; ".join((f"all cases together: {VERDICTS[column.verdict]}", *figures_beyond_chance(column)))


def write_evaluation(
    file: Path,
    evaluation: Evaluation,
    threshold: float,
    comparison: Comparison | None = None,
    history: EvaluationHistory | None = None,
) -> None:
    """Writes the page of an evaluation piece by piece, because it may contain thousands of answers."""
    functions = (costs, mark, share, passed_of, compared_words, all_together, mean_text)
    template = page_environment(*functions).get_template("evaluation.html.j2")
    pieces = template.generate(
        evaluation=evaluation,
        threshold=threshold,
        comparison=comparison,
        history=history or no_history(),
        note=NOTE,
    )
    with (
        worded(lambda why: SuiteError(f"--report {file} cannot be written: {why}")),
        file.open("w", encoding="utf-8", errors="replace") as page,
    ):
        page.writelines(pieces)


_REFUSED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Matches characters that XML 1.0 does not allow, not even escaped."""


def junit_xml(evaluation: Evaluation) -> bytes:
    """Returns JUnit XML for CI systems. Each column is a test suite, and each case is a test case."""
    root = ET.Element("testsuites")
    for total in evaluation.totals:
        counts = {"tests": str(total.cases), "failures": str(total.cases - total.passed)}
        suite = ET.SubElement(root, "testsuite", {"name": _REFUSED.sub("�", total.column), **counts})
        for cell in (cell for cell in evaluation.cells.values() if cell.column == total.column):
            seconds = sum(run.seconds for run in cell.runs)
            names = {"classname": cell.column, "name": _REFUSED.sub("�", cell.case.name)}
            tested = ET.SubElement(suite, "testcase", {**names, "time": f"{seconds:.3f}"})
            if not cell.passed:
                sentences = "\n".join(check.sentence for check in cell.failures)
                ET.SubElement(tested, "failure", message=mark(cell)).text = _REFUSED.sub("�", sentences)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


LONGEST = 300
"""How many characters of an answer or an expectation are shown."""


def show_evaluation(
    evaluation: Evaluation, comparison: Comparison | None, console: Console, history: EvaluationHistory | None = None
) -> None:
    """Prints an evaluation in the terminal: the cases, the failures, the totals, and comparisons."""
    failed = [part for cell in evaluation.cells.values() for part in _failed(cell)]
    totals = Table(box=None, pad_edge=False, show_header=False)
    for total in evaluation.totals:
        totals.add_row(Text(printable(total.column), "bold"), passed_of(total, evaluation), costs(total))
    changed = [part for column in comparison or () for part in _compared(column)]
    drawn = []
    if history is not None:
        drawn.append(_history_table(history))
    note = []
    if any(total.is_repeated for total in evaluation.totals) or comparison:
        note.append(Text(NOTE, "dim"))
    for parts in ([_cases_table(evaluation)], failed, [totals], changed, drawn, note):
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
    """Yields the failed checks and calls of a case, or only the failed calls if the case passed."""
    errors = cell.errors_of_calls
    name = f"{printable(cell.case.name)} · {printable(cell.column)}"
    if cell.passed:
        if errors:
            yield Text(f"{name}: it passes, but calls failed", "yellow")
    else:
        yield Text(f"✗ {name}", "red")
        failures = cell.failures
        for check in failures:
            yield _indented(f"{check.name}: expected {_short(check.expected)}\n  found {_short(check.found)}")
        if any(check.name == "failed_calls" for check in failures):
            errors = ()
    for error in errors:
        yield _indented(f"call failed: {_short(error)}")
    for result in cell.results:
        if result.trace and not cell.passed:
            yield _indented(f"trace: {printable(result.trace)}")


def _compared(column: ColumnChange) -> Iterator[RenderableType]:
    style = {"more": "green", "less": "red", "same": ""}
    yield Text.assemble((f"{printable(column.column)}: ", "bold"), compared_words(column))
    yield _indented(all_together(column), style[column.verdict])
    for setting in column.settings:
        yield _indented(f"changed: {clipped(printable(setting), LONGEST)}", "yellow")
    changes = [("+", each) for each in column.better]
    changes += [("-", each) for each in column.worse]
    changes += [("~", each) for each in column.unclear]
    for sign, change in changes:
        name = printable(change.after.case.name)
        yield _indented(f"{sign} {name}: {mark(change.before)} → {mark(change.after)}", style[change.verdict])
        yield from (_indented(_short(reason), "dim", levels=2) for reason in change.reasons)
    yield _indented(f"before: {costs(column.before)}\nafter:  {costs(column.after)}", "dim")


def _history_table(history: EvaluationHistory) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("evaluation")
    for column in history.columns:
        table.add_column(printable(column), overflow="fold")
    for point in history.points:
        words = []
        for column in history.columns:
            total = point.totals.get(column)
            words.append("–" if total is None else share(total.passed, total.cases))
        table.add_row(printable(point.label), *words)
    return table


def _short(text: str) -> str:
    return clipped(printable(in_a_line(text)), LONGEST)


def _indented(text: str, style: str = "", levels: int = 1) -> RenderableType:
    return Padding(Text(text, style), (0, 0, 0, 2 * levels), expand=False)
