"""The runs in a trace, with their questions, calls and results."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from devhost.errors import InvocationError, NodeFailedError, WireError
from devhost.limits import HostLimits
from devhost.node.messages import ToolFileStore
from devhost.node.outputs.outputs import NodeOutputs, OutputsFold, spent
from devhost.node.outputs.run import UNFINISHED, CallsMade, Run, SentToolCall, error_line
from devhost.protocol.structs import agent_message
from devhost.protocol.wire import Invoked, JsonObject, Streamed, read_session_event
from devhost.text import json_or
from devhost.trace.lines import EndLine, MessageLine, PrintedLine, SentenceLine, ServingLine, Trace, TraceLine

# Parts of messages in which a plugin can send any value.


def mapping(value: object) -> JsonObject:
    """Return a value that is a dict, or else an empty dict."""
    if isinstance(value, dict):
        return value
    return {}


def items(value: object) -> list[JsonObject]:
    """Return the dicts in a value that is a list, or else an empty list."""
    if isinstance(value, list):
        return [item for item in value if isinstance(item, dict)]
    return []


@dataclass(frozen=True)
class AnswerPiece:
    """A message of an answer, and when it arrived."""

    at: float
    data: JsonObject


@dataclass
class Call:
    """A backwards call in a trace."""

    plugin: str
    """The plugin that made the call."""
    kind: str
    """`llm`, `tool`, or another type, which the host does not answer."""
    request: JsonObject
    began: float
    ended: float | None = None
    """The end of the call; None if the run ended first."""
    error: str = ""
    pieces: list[AnswerPiece] = field(default_factory=list)
    id: str = ""
    parent: str = ""
    """The id of the tool call from which this call was made; empty for the strategy's own calls."""

    @property
    def name(self) -> str:
        """The name of the model or the tool."""
        return str(self.request.get("model" if self.kind == "llm" else "tool") or self.kind)

    @property
    def provider(self) -> str:
        return str(self.request.get("provider"))

    @property
    def arguments(self) -> JsonObject:
        """The arguments of a tool call."""
        return mapping(self.request.get("tool_parameters"))

    @property
    def prompt(self) -> list[JsonObject]:
        """The messages in a request to a model."""
        return items(self.request.get("prompt_messages"))

    @property
    def deltas(self) -> list[JsonObject]:
        """The deltas of a model's answer."""
        return [mapping(piece.data.get("delta")) for piece in self.pieces]

    @property
    def messages(self) -> list[JsonObject]:
        """The messages of a model's answer."""
        return [mapping(delta.get("message")) for delta in self.deltas]

    @property
    def texts(self) -> Iterator[str]:
        """The texts of a model's answer, piece by piece."""
        for message in self.messages:
            content = message.get("content")
            if isinstance(content, str) and content:
                yield content
            yield from (str(part["data"]) for part in items(content) if part.get("data"))

    @property
    def reason(self) -> str:
        """The reason for the failure, on one line."""
        return error_line(self.error)

    @property
    def usage(self) -> JsonObject:
        """The last usage that arrived for a model call; empty if none arrived."""
        return next((delta["usage"] for delta in reversed(self.deltas) if delta.get("usage")), {})

    @property
    def finish_reason(self) -> str:
        return next((str(delta["finish_reason"]) for delta in reversed(self.deltas) if delta.get("finish_reason")), "")


@dataclass
class TracedRun:
    """A run in a trace. Times are seconds since the trace began. A run without an end was killed, or is in progress."""

    question: str
    parameters: JsonObject
    began: float
    finished: float
    """The time of the run's end, or of the last line of the trace."""
    streamed: list[AnswerPiece] = field(default_factory=list)
    """The messages of the strategy's answer."""
    calls: list[Call] = field(default_factory=list)
    """The calls that the strategy made, and those of the tools that it called."""
    end: EndLine | None = None
    conversation_id: str | None = None
    """The conversation's id; None outside a conversation."""
    remark: str = ""
    printed: list[PrintedLine] = field(default_factory=list)
    """Lines that all plugins printed until the next run. The first run also has the lines from the plugins' start."""


def traced_runs(trace: Trace) -> list[TracedRun]:
    """Return the runs of the strategy, in the order in which they began."""
    return _Reader(trace).runs


class _Reader:
    def __init__(self, trace: Trace) -> None:
        self.runs: list[TracedRun] = []
        self._asked = trace.header.query or ""
        """The question of a run whose parameters have none."""
        if trace.lines:
            self._last = trace.lines[-1].at
        else:
            self._last = 0.0
        self._early: list[PrintedLine] = []
        self._sessions: dict[str, tuple[TracedRun, str]] = {}
        """The run of each session, and the id of the call that it answers; empty for the strategy's own session."""
        self._calls: dict[str, tuple[TracedRun, Call]] = {}
        for line in trace.lines:
            self._add(line)

    def _add(self, line: TraceLine) -> None:
        match line:
            case MessageLine():
                self._crossed(line, line.message)
            case ServingLine() if line.request_id in self._calls:
                self._sessions[line.session_id] = (self._calls[line.request_id][0], line.request_id)
            case EndLine() if line.session_id in self._sessions:
                run, _ = self._sessions[line.session_id]
                run.end = line
                run.finished = line.at
            case SentenceLine(event="remark") if self.runs:
                self.runs[-1].remark = line.sentence
            case PrintedLine():
                (self.runs[-1].printed if self.runs else self._early).append(line)

    def _crossed(self, line: MessageLine, message: JsonObject) -> None:
        match message:
            case {"event": "request", "session_id": str(session), "data": {"action": "invoke_agent_strategy"} as data}:
                parameters = mapping(data.get("agent_strategy_params"))
                run = TracedRun(str(parameters.get("query") or self._asked), parameters, line.at, self._last)
                run.conversation_id = message.get("conversation_id")
                if self.runs:
                    run.printed = []
                else:
                    run.printed = self._early
                self.runs.append(run)
                self._sessions[session] = (run, "")
            case {"event": "session", "session_id": str(session), "data": data} if session in self._sessions:
                self._came(line, data, *self._sessions[session])
            case {"event": "backwards_response", "data": {"backwards_request_id": str(request)} as data}:
                if request in self._calls:
                    _answer(*self._calls[request], line.at, data)

    def _came(self, line: MessageLine, data: object, run: TracedRun, parent: str) -> None:
        """Add a message of a session. As in the host, invalid messages and messages after the end are left out."""
        if run.end is not None:
            return
        with contextlib.suppress(WireError, InvocationError):
            match read_session_event(data):
                case Streamed(dict(message)) if not parent:
                    run.streamed.append(AnswerPiece(line.at, agent_message(message)))
                case Invoked(request_id, kind, request):
                    call = Call(line.plugin, kind, request, line.at, id=request_id, parent=parent)
                    run.calls.append(call)
                    self._calls[call.id] = (run, call)


def _answer(run: TracedRun, call: Call, at: float, data: JsonObject) -> None:
    if run.end is not None:
        return
    if data.get("event") == "response":
        call.pieces.append(AnswerPiece(at, mapping(data.get("data"))))
        return
    call.ended = at
    if data.get("event") == "error":
        call.error = str(data.get("message") or "error")


# The tool calls that a model wrote, joined from the chunks of its answer.
#
# A call arrives whole, in fragments, or as snapshots that grow. Its later pieces repeat its id, or have neither id nor
# name. Entries of one chunk with the same id are different calls.


@dataclass
class WrittenCall:
    """A tool call that a model wrote."""

    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        """The arguments as the model wrote them: JSON, or text that should have been JSON.

        The pieces are snapshots if each piece begins with the previous one.
        """
        are_snapshots = all(after.startswith(before) for before, after in pairwise(self.pieces))
        if are_snapshots and self.pieces:
            return self.pieces[-1]
        return "".join(self.pieces)

    @property
    def values(self) -> object:
        """The arguments as JSON, or the text where it is not JSON."""
        return json_or(self.arguments, self.arguments)


def written_calls(call: Call) -> list[WrittenCall]:
    """Return the tool calls that a model wrote, in the order in which they began."""
    begun: list[WrittenCall] = []
    for message in call.messages:
        seen = Counter[str]()
        for entry in items(message.get("tool_calls")):
            call_id = str(entry.get("id") or "")
            function = mapping(entry.get("function"))
            written = _written(begun, call_id, str(function.get("name") or ""), seen[call_id])
            seen[call_id] += 1
            if function.get("arguments"):
                written.pieces.append(str(function["arguments"]))
    return begun


def _written(begun: list[WrittenCall], call_id: str, name: str, before: int) -> WrittenCall:
    """Return the call that an entry continues, or a new one. `before` earlier entries of the chunk have the same id."""
    known = []
    if call_id:
        known = [each for each in begun if each.id == call_id]
    if before < len(known):
        return known[before]
    if call_id or name or not begun:
        begun.append(WrittenCall(call_id, name))
    return begun[-1]


HARMLESS = frozenset({"text", "link", "json", "variable", "log", "retriever_resources"})
"""The types of messages that need neither a file nor the network."""


def run_of(traced: TracedRun, strategy: str) -> Run:
    """Return the `Run` as the host returned it.

    A run without an end has the text, log and variables that had arrived, an error, and no findings.
    """
    messages = [piece.data for piece in traced.streamed]
    if traced.end:
        failures = traced.end.failures
    else:
        failures = {call.id: call.reason for call in traced.calls if call.error}
    tools = {
        call.id: SentToolCall(str(call.request.get("tool")), call.arguments, failures.get(call.id, ""))
        for call in traced.calls
        if call.kind == "tool"
    }
    if traced.end:  # the list of runs reads the ends of runs, but not their calls
        tools |= {request: SentToolCall("", {}, why) for request, why in failures.items() if request not in tools}
    if traced.end:
        counts = traced.end.asked
    else:
        counts = Counter(call.kind for call in traced.calls)
    calls = CallsMade(counts, spent(call.usage for call in traced.calls), tools)
    if traced.end is None:
        return Run(strategy, _so_far(traced), UNFINISHED, [], messages, traced.finished - traced.began, calls)
    return replace(traced.end.outcome, messages=messages, calls=calls, session_id=traced.end.session_id)


def _so_far(traced: TracedRun) -> NodeOutputs:
    fold = OutputsFold(ToolFileStore(Path()), HostLimits())
    for piece in traced.streamed:
        if piece.data.get("type") in HARMLESS:
            with contextlib.suppress(NodeFailedError):
                list(fold.add(piece.data))
    return fold.outputs()
