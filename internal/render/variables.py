"""The variables of a run, each so small that its line can be written.

In: the RunSummary. Out: the variables by name, and how much of each list had to be left out. The optional variables are
made in extra_variables.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from internal.render.extra_variables import extra_variables
from internal.render.outgoing import Outgoing, size_on_the_wire
from internal.report.events import RunSummary
from internal.report.files import MAX_NAME_LENGTH
from internal.report.sources import cited_numbers
from internal.text.fairness import in_turns

MAX_VALUE_BYTES = 1024 * 1024
"""Bytes of one variable, of one list in the last JSON, of the resources of a message: lines far below the longest."""


@dataclass(frozen=True)
class RunVariables:
    """The variables of a run, bounded in size."""

    values: Mapping[str, Any]
    cited: frozenset[int]
    """Numbers of the sources that the answer cites."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Entries by the variable that lacks them; 1 for a variable that is not a list."""

    @classmethod
    def of(cls, summary: RunSummary, out: Outgoing) -> "RunVariables":
        cited, structured = _cited(summary), summary.structured_output
        whole = {
            "stop_reason": summary.stop_reason.value,
            "sources": _sources(summary, cited),
            "tool_runs": _tool_runs(summary),
            **({"structured_output": structured.variable} if structured else {}),
            **summary.variables,
        }
        values = {name: _bounded(value) for name, value in whole.items()}
        counts = {name: _count(value) - _count(values[name]) for name, value in whole.items()}
        extra = extra_variables(summary, out)
        left_out = {name: count for name, count in {**counts, **extra.left_out}.items() if count}
        return cls({**values, **extra.values}, cited, left_out)


def leading[T](items: list[T]) -> list[T]:
    """The beginning of a list that fits into one line, or the whole list."""
    if size_on_the_wire(items) <= MAX_VALUE_BYTES:
        return items
    kept, size = list[T](), 0
    for item in in_turns(items):
        size += size_on_the_wire(item)
        if size > MAX_VALUE_BYTES:
            break
        kept.append(item)
    return kept


def _bounded(value: object) -> object:
    """The beginning of a list; of any other value all or nothing."""
    if isinstance(value, list):
        return leading(value)
    return value if size_on_the_wire(value) <= MAX_VALUE_BYTES else None


def _count(value: object) -> int:
    return len(value) if isinstance(value, list) else int(value is not None)


def _cited(summary: RunSummary) -> frozenset[int]:
    """The sources that the answer cites; in JSON the brackets around a number are a list."""
    structured = summary.structured_output
    texts = structured.texts() if structured and structured.answer is not None else [summary.answer]
    return frozenset(number for text in in_turns(texts) for number in cited_numbers(text))


def _sources(summary: RunSummary, cited: frozenset[int]) -> list[dict[str, Any]]:
    """All sources of the run, and those of earlier runs that it cites, by number; if not all fit, the cited first."""
    listed = list(in_turns(_described(summary, cited)))
    fits = size_on_the_wire(listed) <= MAX_VALUE_BYTES
    return listed if fits else sorted(listed, key=lambda entry: not entry["cited"])


def _described(summary: RunSummary, cited: frozenset[int]) -> Iterator[dict[str, Any]]:
    cited_earlier = (each for each in summary.earlier_sources if each[0] in cited)
    for number, source in (*cited_earlier, *summary.sources):
        yield {
            "number": number,
            "title": source.label,
            "document_id": source.document_id and source.document_id[:MAX_NAME_LENGTH],
            "score": source.score,
            "cited": number in cited,
        }


def _tool_runs(summary: RunSummary) -> list[dict[str, Any]]:
    return [
        {
            "round": answered.round,
            "tool": ended.call.name[:MAX_NAME_LENGTH],
            "status": ended.status.value,
            "elapsed_seconds": round(ended.elapsed_seconds, 3),
        }
        for answered in summary.tool_rounds
        for ended in answered.calls
    ]
