"""The runs in a trace: what was asked, what the strategy streamed when, which calls were made, and what came of it.

In: a `Trace`. Out: a `TracedRun` for each session of the strategy. A run without an end was killed, or goes on.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from devhost.errors import InvocationError
from devhost.protocol.run_messages import agent_message
from devhost.protocol.wire import JsonObject
from devhost.trace.calls import Call, CallLog
from devhost.trace.lines import EndLine, MessageLine, PrintedLine, RemarkLine, ServingLine
from devhost.trace.reader import Trace


@dataclass(frozen=True)
class Arrival:
    """One message of the strategy's answer, and when it came."""

    at: float
    message: JsonObject


@dataclass(frozen=True)
class TracedRun:
    """One run in a trace. Times are seconds since the trace began."""

    question: str
    parameters: JsonObject
    began: float
    finished: float
    """The time of its end, or of the last line of the trace."""
    streamed: tuple[Arrival, ...]
    calls: tuple[Call, ...]
    """Of the strategy, and of the tools that it had called."""
    end: EndLine | None
    conversation_id: str | None = None
    """None outside a conversation."""
    remark: str = ""
    printed: tuple[PrintedLine, ...] = ()
    """By all plugins, from before it began (the first run: since the plugins started) until the next run."""


def traced_runs(trace: Trace) -> list[TracedRun]:
    """The runs of the strategy, in the order in which they began."""
    messages = [line for line in trace.lines if isinstance(line, MessageLine)]
    ends = {line.session_id: line for line in trace.lines if isinstance(line, EndLine)}
    requests = {line.message["session_id"]: line for line in messages if _invokes_strategy(line)}
    served = {line.session_id: line.request_id for line in trace.lines if isinstance(line, ServingLine)}
    last = trace.lines[-1].at if trace.lines else 0.0
    printed = _printed_by_run(trace, [request.at for request in requests.values()])
    runs = []
    for number, (session_id, request) in enumerate(requests.items()):
        end = ends.get(session_id)
        finished = last if end is None else end.at
        given = request.message["data"].get("agent_strategy_params")
        parameters = given if isinstance(given, dict) else {}
        others = requests.keys() - {session_id}
        meanwhile = [line for line in messages if request.at <= line.at <= finished]
        runs.append(
            TracedRun(
                question=str(parameters.get("query") or trace.header.query or ""),
                parameters=parameters,
                began=request.at,
                finished=finished,
                streamed=tuple(_streamed(meanwhile, session_id)),
                calls=_calls((line for line in meanwhile if str(line.message.get("session_id")) not in others), served),
                end=end,
                conversation_id=request.message.get("conversation_id"),
                remark=_remark_after(trace, finished),
                printed=printed[number],
            )
        )
    return runs


def _printed_by_run(trace: Trace, began: Sequence[float]) -> list[tuple[PrintedLine, ...]]:
    """A line after a run is that run's, because it may be read a moment after it was printed."""
    printed = [line for line in trace.lines if isinstance(line, PrintedLine)]
    borders = [0.0, *began[1:], float("inf")]
    return [tuple(line for line in printed if start <= line.at < end) for start, end in pairwise(borders)]


def _invokes_strategy(line: MessageLine) -> bool:
    match line.message:
        case {"event": "request", "session_id": str(), "data": {"action": "invoke_agent_strategy"}}:
            return line.side == "host"
        case _:
            return False


def _streamed(lines: Iterable[MessageLine], session_id: str) -> Iterable[Arrival]:
    for line in lines:
        match line.message:
            case {"event": "session", "session_id": str(sent), "data": {"type": "stream", "data": dict(message)}}:
                if sent == session_id:
                    with contextlib.suppress(InvocationError):  # the daemon passed nothing on
                        yield Arrival(line.at, agent_message(message))


def _calls(lines: Iterable[MessageLine], served: Mapping[str, str]) -> tuple[Call, ...]:
    log = CallLog(served)
    for line in lines:
        log.add(line)
    return log.calls()


def _remark_after(trace: Trace, finished: float) -> str:
    """The remark that follows this end before another run begins."""
    for line in trace.lines:
        if line.at >= finished and isinstance(line, RemarkLine):
            return line.sentence
        if line.at > finished and isinstance(line, MessageLine) and _invokes_strategy(line):
            break
    return ""
