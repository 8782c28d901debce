"""The timeline of a run: the strategy's log tree, with the arrival times of its messages, and the calls in it.

A call belongs to the log entry that has the call's id among its `request_ids`. Any other call is a span of its own, in
the innermost group that was open when it began. Calls that a tool makes, even indirectly, are under the strategy's call
of the tool.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from devhost.node.outputs.outputs import OPEN, AgentLog, LogEntry
from devhost.protocol.wire import JsonObject
from devhost.trace.runs import Call, TracedRun

FAILED = "error"


@dataclass
class Span:
    """A part of a run with a beginning and an end."""

    id: str
    """The id of the log entry or of the call. It stays the same while the run continues."""
    label: str
    status: str
    began: float
    ended: float
    error: str = ""
    """The reason for the failure, on one line."""
    data: JsonObject = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    children: list["Span"] = field(default_factory=list)
    is_moment: bool = False
    """Whether the entry had already finished when it arrived, so that it has no duration."""

    @property
    def kind(self) -> Literal["model", "tool", "group", "step", "moment"]:
        for call in self.calls:
            if call.kind == "llm":
                return "model"
            return "tool"
        if self.children:
            return "group"
        if self.is_moment:
            return "moment"
        return "step"


def timeline(run: TracedRun) -> list[Span]:
    """Return the outermost spans of a run, in the order in which they began."""
    log = AgentLog()
    arrivals: dict[str, list[float]] = {}
    for piece in run.streamed:
        match piece.data:  # the host refused all other log messages
            case {
                "type": "log",
                "message": {
                    "id": str(),
                    "label": str(),
                    "status": "start" | "success" | "error",
                    "data": dict(),
                } as body,
            }:
                log.add(dict(body))
                arrivals.setdefault(body["id"], []).append(piece.at)
    named: dict[str, Span] = {}
    """The spans by the ids of their requests on the wire, which this repository's strategies write to the log."""

    def of_entry(entry: LogEntry) -> Span:
        times = arrivals[entry.id]
        is_open = entry.status == OPEN
        span = Span(
            id=entry.id,
            label=entry.label,
            status=entry.status,
            began=times[0],
            ended=run.finished if is_open else times[-1],
            error=entry.reason,
            data=entry.unsaid,
            children=list(map(of_entry, entry.children)),
            is_moment=not is_open and len(times) == 1,
        )
        ids = entry.data.get("request_ids")
        named.update({each: span for each in (ids if isinstance(ids, list) else ()) if isinstance(each, str)})
        return span

    roots = list(map(of_entry, log.roots()))
    of_calls: dict[str, Span] = {}
    for call in run.calls:
        placed = _placed(call, named, of_calls, roots, run.finished)
        of_calls[call.id] = of_calls.get(call.parent, placed)
    _in_order(roots)
    return roots


def _placed(
    call: Call, named: Mapping[str, Span], of_calls: Mapping[str, Span], roots: list[Span], finished: float
) -> Span:
    """Return the span of a call: the span of the entry that has the call's id, or else a new span."""
    if span := named.get(call.id):
        span.calls.append(call)
        if span.status == FAILED and call.error:
            span.error = call.reason
        return span
    if call.ended is None:
        status = OPEN
    elif call.error:
        status = FAILED
    else:
        status = "success"
    ended = finished if call.ended is None else call.ended
    own = Span(call.id, call.name, status, call.began, ended, call.reason, calls=[call])
    asker = of_calls.get(call.parent)
    (asker.children if asker else _siblings(call, roots)).append(own)
    return own


def _siblings(call: Call, roots: list[Span]) -> list[Span]:
    """Return the entries of the innermost group that was open at the time.

    If several groups were open, none is chosen.
    """
    opened = [span for span in roots if span.children and not span.calls and span.began <= call.began <= span.ended]
    if len(opened) == 1:
        return _siblings(call, opened[0].children)
    return roots


def _in_order(spans: list[Span]) -> None:
    spans.sort(key=lambda span: span.began)
    for span in spans:
        _in_order(span.children)
