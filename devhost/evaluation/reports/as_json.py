"""An evaluation as one JSON object, for programs. In: a summary, the threshold. Out: a dictionary."""

from typing import Any

from devhost.evaluation.comparison import Change, Comparison
from devhost.evaluation.summary import Cell, Summary


def json_report(summary: Summary, threshold: float, comparison: Comparison | None) -> dict[str, Any]:
    header = summary.evaluation.header
    report: dict[str, Any] = {
        "file": header.file,
        "scripted": header.scripted,
        "threshold": threshold,
        "columns": [
            {
                "name": total.column,
                "settings": header.columns[total.column],
                "passed": total.passed,
                "cases": total.cases,
                "share": total.share,
                "reaches_threshold": total.reaches(threshold),
                "tokens_per_run": total.tokens,
                "seconds_per_run": total.seconds,
                "price": str(total.price),
                "currency": total.currency,
            }
            for total in summary.totals
        ],
        "cells": [_cell(cell) for cell in summary.cells],
    }
    return report if comparison is None else {**report, "comparison": _comparison(comparison)}


def _cell(cell: Cell) -> dict[str, Any]:
    results = [result.model_dump(mode="json", exclude={"case", "column"}) for result in cell.results]
    return {
        "case": cell.case.name,
        "column": cell.column,
        "question": cell.case.question,
        "passed": cell.passed,
        "rate": cell.share,
        "results": results,
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "columns": [
            {
                "name": column.column,
                "compared": column.compared,
                "better": [_change(change) for change in column.better],
                "worse": [_change(change) for change in column.worse],
                "changed_settings": list(column.settings),
            }
            for column in comparison.columns
        ],
        "only_before": comparison.only_before,
        "only_after": comparison.only_after,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "case": change.after.case.name,
        "rate_before": change.before.share,
        "rate_after": change.after.share,
        "reasons": list(change.reasons),
        "case_changed": change.is_another_case,
    }
