"""What happened when: the strategy's log tree, with the times at which its messages came, and the calls in it.

In: a `TracedRun`. Out: spans, each with its children. A call belongs to the entry that was open at the same time, that
bears its name and, of several such, has its arguments; a call that the log does not mention is a span of its own. What
a tool itself asks for stands under the call of the tool.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from devhost.node.outputs.log import AgentLog, LogEntry
from devhost.protocol.wire import JsonObject
from devhost.trace.calls import Call
from devhost.trace.runs import Arrival, TracedRun

type SpanKind = Literal["model", "tool", "group", "step", "moment"]
OPEN = "start"
NEAR = 0.1
"""Seconds: of calls side by side, some are asked and even answered before the log says of all that they begin."""


@dataclass
class Span:
    label: str
    status: str
    began: float
    ended: float
    error: str = ""
    data: JsonObject = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    children: list["Span"] = field(default_factory=list)
    is_moment: bool = False
    """It came finished, so that it has no duration."""

    @property
    def kind(self) -> SpanKind:
        for call in self.calls:
            return "model" if call.kind == "llm" else "tool"
        if self.children:
            return "group"
        return "moment" if self.is_moment else "step"


def timeline(run: TracedRun) -> list[Span]:
    log = AgentLog()
    arrivals: dict[str, list[float]] = {}
    for arrival in run.streamed:
        body = _log_entry(arrival)
        if body is not None:
            log.add(body)
            arrivals.setdefault(body["id"], []).append(arrival.at)
    roots = [_span(entry, arrivals, run.finished) for entry in log.roots()]
    entries = list(_leaves(roots, run.began, run.finished))
    of_calls: dict[str, Span] = {}
    for call in run.calls:
        asker = of_calls.get(call.parent)
        best = None if asker else _entry_of(call, entries, run.finished)
        if best is None:
            best = _own_span(call, run.finished)
            (asker.children if asker else _siblings(call, roots)).append(best)
        else:
            best.calls.append(call)
        of_calls[call.id] = best
    _in_order(roots)
    return roots


def _log_entry(arrival: Arrival) -> JsonObject | None:
    """None also for messages that the host refused as malformed."""
    match arrival.message:
        case {
            "type": "log",
            "message": {"id": str(), "label": str(), "status": "start" | "success" | "error", "data": dict()} as body,
        }:
            return dict(body)
        case _:
            return None


def _span(entry: LogEntry, arrivals: dict[str, list[float]], finished: float) -> Span:
    times = arrivals[entry.id]
    is_open = entry.status == OPEN
    return Span(
        label=entry.label,
        status=entry.status,
        began=times[0],
        ended=finished if is_open else times[-1],
        error=entry.error or "",
        data=entry.data,
        children=[_span(child, arrivals, finished) for child in entry.children],
        is_moment=not is_open and len(times) == 1,
    )


@dataclass(frozen=True)
class _Leaf:
    """An entry that a call can belong to, and the time in which its group was open."""

    span: Span
    from_: float
    until: float


def _leaves(spans: Iterable[Span], began: float, ended: float) -> Iterator[_Leaf]:
    for span in spans:
        if span.children:
            yield from _leaves(span.children, span.began, span.ended)
        elif not span.is_moment:
            yield _Leaf(span, began, ended)


def _entry_of(call: Call, leaves: Iterable[_Leaf], finished: float) -> Span | None:
    """One with the same arguments; else one at the same time, best one that has no call yet."""

    def merits(span: Span) -> tuple[bool, bool, bool, float]:
        apart = max(span.began - _end(call, finished), call.began - span.ended, 0.0)
        return not _is_about(span, call), apart > NEAR, bool(span.calls), apart

    named = [leaf.span for leaf in leaves if leaf.from_ <= call.began <= leaf.until and call.name in leaf.span.label]
    best = min(named, key=merits, default=None)
    return None if best is None or merits(best)[:2] == (True, True) else best


def _own_span(call: Call, finished: float) -> Span:
    status = OPEN if call.ended is None else "error" if call.error else "success"
    return Span(call.name, status, call.began, _end(call, finished), calls=[call])


def _siblings(call: Call, roots: list[Span]) -> list[Span]:
    """The entries of the innermost group that was open at the time."""
    for span in roots:
        if span.children and not span.calls and span.began <= call.began <= span.ended:
            return _siblings(call, span.children)
    return roots


def _end(call: Call, finished: float) -> float:
    return finished if call.ended is None else call.ended


def _is_about(span: Span, call: Call) -> bool:
    arguments = span.data.get("arguments")
    given = call.request.get("tool_parameters")
    return isinstance(arguments, dict) and isinstance(given, dict) and arguments.items() <= given.items()


def _in_order(spans: list[Span]) -> None:
    spans.sort(key=lambda span: span.began)
    for span in spans:
        _in_order(span.children)
