"""What happened when: the strategy's log tree, with the times at which its messages came, and the calls in it.

A call belongs to the entry that has its id among its `request_ids`. Any other call is a span of its own, in the
innermost group that was open when it began. What a tool asks for, and what that asks for, stands under the strategy's
call of the tool.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from devhost.node.outputs.outputs import OPEN, AgentLog, LogEntry
from devhost.protocol.wire import JsonObject
from devhost.trace.runs import Call, TracedRun

type SpanKind = Literal["model", "tool", "group", "step", "moment"]
FAILED = "error"


@dataclass
class Span:
    id: str
    """Of its log entry, or of its call; it stays the same while the run goes on."""
    label: str
    status: str
    began: float
    ended: float
    error: str = ""
    """Why it failed, in a line."""
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
    for piece in run.streamed:
        body = _log_entry(piece.data)
        if body is not None:
            log.add(body)
            arrivals.setdefault(body["id"], []).append(piece.at)
    spans = {entry.id: _span(entry, arrivals[entry.id], run.finished) for entry in log.entries.values()}
    roots = _tree(log.roots(), spans)
    named = {request_id: spans[entry.id] for entry in log.entries.values() for request_id in _request_ids(entry)}
    of_calls: dict[str, Span] = {}
    for call in run.calls:
        placed = _placed(call, named, of_calls, roots, run.finished)
        of_calls[call.id] = of_calls.get(call.parent, placed)
    _in_order(roots)
    return roots


def _log_entry(message: JsonObject) -> JsonObject | None:
    """None also for messages that the host refused as malformed."""
    match message:
        case {
            "type": "log",
            "message": {"id": str(), "label": str(), "status": "start" | "success" | "error", "data": dict()} as body,
        }:
            return dict(body)
        case _:
            return None


def _request_ids(entry: LogEntry) -> list[str]:
    """The ids of its requests on the wire, as this repository's strategies write them."""
    ids = entry.data.get("request_ids")
    return [each for each in ids if isinstance(each, str)] if isinstance(ids, list) else []


def _span(entry: LogEntry, times: list[float], finished: float) -> Span:
    is_open = entry.status == OPEN
    return Span(
        id=entry.id,
        label=entry.label,
        status=entry.status,
        began=times[0],
        ended=finished if is_open else times[-1],
        error=entry.reason,
        data=entry.unsaid,
        is_moment=not is_open and len(times) == 1,
    )


def _tree(entries: Iterable[LogEntry], spans: Mapping[str, Span]) -> list[Span]:
    placed = []
    for entry in entries:
        spans[entry.id].children = _tree(entry.children, spans)
        placed.append(spans[entry.id])
    return placed


def _placed(
    call: Call, named: Mapping[str, Span], of_calls: Mapping[str, Span], roots: list[Span], finished: float
) -> Span:
    """The span of a call: the entry that bears its id, else one of its own."""
    if span := named.get(call.id):
        span.calls.append(call)
        if span.status == FAILED and call.error:
            span.error = call.reason
        return span
    own = _own_span(call, finished)
    asker = of_calls.get(call.parent)
    (asker.children if asker else _siblings(call, roots)).append(own)
    return own


def _own_span(call: Call, finished: float) -> Span:
    status = OPEN if call.ended is None else FAILED if call.error else "success"
    ended = finished if call.ended is None else call.ended
    return Span(call.id, call.name, status, call.began, ended, call.reason, calls=[call])


def _siblings(call: Call, roots: list[Span]) -> list[Span]:
    """The entries of the innermost group that was open at the time; of several groups side by side none is chosen."""
    opened = [span for span in roots if span.children and not span.calls and span.began <= call.began <= span.ended]
    return _siblings(call, opened[0].children) if len(opened) == 1 else roots


def _in_order(spans: list[Span]) -> None:
    spans.sort(key=lambda span: span.began)
    for span in spans:
        _in_order(span.children)
