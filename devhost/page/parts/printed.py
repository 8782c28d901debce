"""Where on the page stands what plugins printed.

In: a run's printed lines, calls and spans. Out: the lines under a tool's call, if it is certain that they were printed
during it; else a moment on the timeline; and those from before and after the run in a list.
"""

from bisect import insort
from collections.abc import Mapping, Sequence

from devhost.trace.calls import Call
from devhost.trace.lines import PrintedLine
from devhost.trace.runs import TracedRun
from devhost.trace.timeline import Span

TOGETHER = 0.1
"""Seconds: lines of one plugin that come so soon after each other are one moment."""


def lines_of_calls(run: TracedRun) -> Mapping[str, list[PrintedLine]]:
    """By the id of the call: lines whose place among the messages is exact, while the plugin had one call only."""
    found: dict[str, list[PrintedLine]] = {}
    for line in run.printed:
        open_calls = [call for call in run.calls if _serves(line.plugin, call) and _is_open(call, line.at)]
        if line.exact and len(open_calls) == 1:
            found.setdefault(open_calls[0].id, []).append(line)
    return found


def add_moments(spans: list[Span], run: TracedRun) -> list[PrintedLine]:
    """Adds a moment to the timeline for what came during the run; returns what came before and after it."""
    under_calls = {id(line) for lines in lines_of_calls(run).values() for line in lines}
    rest: list[PrintedLine] = []
    together: list[PrintedLine] = []
    for line in run.printed:
        if id(line) in under_calls:
            continue
        if not run.began <= line.at <= run.finished:
            rest.append(line)
        elif together and together[-1].plugin == line.plugin and line.at - together[-1].at < TOGETHER:
            together.append(line)
        else:
            _add(spans, together)
            together = [line]
    _add(spans, together)
    return rest


def _add(spans: list[Span], lines: Sequence[PrintedLine]) -> None:
    if lines:
        at, texts = lines[0].at, tuple(line.text for line in lines)
        moment = Span(f"printed {at}", f"{lines[0].plugin} printed", "success", at, at, is_moment=True, printed=texts)
        insort(_innermost(spans, at), moment, key=lambda span: span.began)


def _innermost(spans: list[Span], at: float) -> list[Span]:
    for span in spans:
        if span.children and not span.calls and span.began <= at <= span.ended:
            return _innermost(span.children, at)
    return spans


def _serves(plugin: str, call: Call) -> bool:
    """A provider's id is author/plugin/provider."""
    return call.kind == "tool" and str(call.request.get("provider")).split("/")[1:2] == [plugin]


def _is_open(call: Call, at: float) -> bool:
    return call.began <= at and (call.ended is None or at <= call.ended)
