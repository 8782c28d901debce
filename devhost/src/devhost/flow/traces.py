"""A flow in a trace."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from rich.console import Console
from rich.text import Text

from devhost.errors import TraceError
from devhost.flow.document import FlowFile
from devhost.flow.played import PlayedTurn
from devhost.flow.turn import FlowEngine, FlowTurn, Surroundings
from devhost.flow.view import FlowView, facts_of
from devhost.models.backend import ModelCallError
from devhost.process.session import Watcher
from devhost.protocol.wire import JsonObject
from devhost.terminal.screen import ViewOptions
from devhost.trace.flow import (
    AgentLog,
    FlowEnded,
    FlowEvent,
    FlowJudged,
    FlowLine,
    FlowNode,
    NodeCalled,
    NodeEnded,
    NodeStarted,
    Told,
)
from devhost.trace.lines import Trace, TraceWriter
from devhost.trace.runs import Call, Piece, TracedRun, run_of, traced_runs

# The turns of a flow in a trace, as the events that were written.

AGENT = "agent"


@dataclass
class TracedTurn(PlayedTurn):
    """Times are seconds since the trace began."""

    facts: FlowLine
    events: list[tuple[float, FlowEvent]] = field(default_factory=list)
    agents: dict[str, list[TracedRun]] = field(default_factory=dict)
    """Runs of strategies, by the execution of the Agent node; several where the engine tried again."""
    calls: dict[str, list[Call]] = field(default_factory=dict)
    """By node, what other nodes asked of models and tools, in the order in which it was answered."""


class _Reader:
    def __init__(self, trace: Trace) -> None:
        self.turns: list[TracedTurn] = []
        self._strategy = trace.header.strategy
        self._runs = traced_runs(trace)
        self._of_sessions = {run.end.session_id: run for run in self._runs if run.end is not None}

    def read(self, trace: Trace) -> None:
        for line in trace.lines:
            if isinstance(line, FlowLine):
                self.turns.append(TracedTurn(line, began=line.at))
            elif not self.turns:
                continue
            elif isinstance(line, NodeCalled):
                self.turns[-1].calls.setdefault(line.node.id, []).append(_call(line))
            elif isinstance(line, FlowJudged):
                self.turns[-1].failures.extend(line.failures)
            elif isinstance(line, NodeEnded):
                self.turns[-1].events.append((line.at, self._with_run(line)))
            elif isinstance(line, Told):
                self.turns[-1].events.append((line.at, line))
        self._place_the_other_runs()

    def _with_run(self, ended: NodeEnded) -> NodeEnded:
        """In the line stands the session of its run."""
        traced = self._of_sessions.get(str(ended.run))
        if traced is None:
            return replace(ended, run=None)
        if traced not in self._runs:
            raise TraceError(f"the trace is damaged: the run {ended.run} ends two nodes")
        self.turns[-1].agents.setdefault(ended.execution, []).append(traced)
        self._runs.remove(traced)
        return replace(ended, run=run_of(traced, self._strategy))

    def _place_the_other_runs(self) -> None:
        """Those that the engine tried again, and those that the end of the trace cut off: by their time."""
        for traced in self._runs:
            for turn in self.turns:
                if (started := _agent_at(turn, traced.began)) is not None:
                    turn.agents.setdefault(started.execution, []).insert(0, traced)
                    ends = (event for _, event in turn.events if isinstance(event, NodeEnded))
                    if not any(event.execution == started.execution for event in ends):
                        turn.events.extend(_logged(traced, started))


def _call(line: NodeCalled) -> Call:
    pieces = [Piece(line.at, piece) for piece in line.pieces]
    return Call("", line.kind, line.request, line.at, line.at, line.error, pieces)


def _agent_at(turn: TracedTurn, at: float) -> NodeStarted | None:
    """The Agent node that ran at that time."""
    running: dict[str, NodeStarted] = {}
    for told, event in turn.events:
        if told > at:
            break
        match event:
            case NodeStarted() if event.node.type == AGENT:
                running[event.execution] = event
            case NodeEnded():
                running.pop(event.execution, None)
    return next(iter(running.values()), None)


def _logged(traced: TracedRun, started: NodeStarted) -> Iterator[tuple[float, FlowEvent]]:
    for arrival in traced.streamed:
        match arrival.message:
            case {"type": "log", "message": {"id": str(), "label": str(), "status": str(), "data": dict()}}:
                yield arrival.at, AgentLog(started.execution, started.node, arrival.message)


def traced_turns(trace: Trace) -> list[TracedTurn]:
    reader = _Reader(trace)
    reader.read(trace)
    for turn in reader.turns:
        turn.events.sort(key=lambda told: told[0])
        for at, event in turn.events:
            turn.add(event, at)
        turn.finished = max(
            [turn.began, turn.finished, *(run.finished for runs in turn.agents.values() for run in runs)]
        )
    return reader.turns


# The events of a flow as lines of a trace.
#
# The log of an agent is not written twice: it stands in the messages of its run.


class FlowTrace:
    """Writes each turn into a trace; without a writer it does nothing."""

    def __init__(self, writer: TraceWriter | None = None) -> None:
        self._writer = writer

    @property
    def watcher(self) -> Watcher:
        """For the host."""
        return self._writer or Watcher()

    def written(self, engine: FlowEngine) -> FlowEngine:
        """An engine whose turns are written."""

        def play(file: FlowFile, turn: FlowTurn, around: Surroundings, /) -> Iterator[FlowEvent]:
            return self.of_turn(facts_of(file, turn), engine(file, turn, replace(around, heard=self._heard)))

        return play if self._writer is not None else engine

    def _heard(
        self, node: FlowNode, kind: Literal["llm", "tool"], request: JsonObject, answer: Iterator[JsonObject], /
    ) -> Iterator[JsonObject]:
        pieces, error = list[JsonObject](), ""
        try:
            for piece in answer:
                pieces.append(piece)
                yield piece
        except ModelCallError as failure:
            error = f"invoke llm failed: {failure.as_dify_words_it()}"  # as a plugin reads it
            raise
        except Exception as failure:
            error = str(failure)
            raise
        finally:
            line = NodeCalled(node, kind, request, tuple(pieces), error)
            if self._writer is not None:
                self._writer.flow(line)

    def judged(self, failures: Sequence[str]) -> None:
        """After a turn; `failures`: a sentence for each of its expectations that failed."""
        if self._writer is not None and failures:
            self._writer.flow(FlowJudged(tuple(failures)))

    def of_turn(self, facts: FlowLine, events: Iterable[FlowEvent]) -> Generator[FlowEvent]:
        """The events, each once it is written."""
        if self._writer is None:
            yield from events
            return
        self._writer.flow(facts)
        for event in events:
            if not isinstance(event, AgentLog):
                self._writer.flow(event)
            yield event


# Shows the trace of a flow in the terminal as the flow was shown.

LOST = FlowEnded("failed", {}, "the trace ends before the flow does: it was killed, or it is still going on")


def replay_flow(trace: Trace, console: Console, options: ViewOptions) -> None:
    view = FlowView(console, options)
    turns = traced_turns(trace)
    for number, turn in enumerate(turns):
        if number == 0:
            view.open(turn.facts, trace.notices)
            view.begin_answer()
        else:
            view.go_on(turn.facts.query)
        turn.ended = turn.ended or LOST
        for _, event in turn.events:
            view.show(event, turn)
        view.close(turn)
        if turn.failures:
            view.judge(turn.failures)
    if not turns:
        console.print(Text("The trace ends before the flow began.", "yellow"))
    if trace.cut_off:
        console.print(Text("The last line of the trace is cut off: the flow was killed.", "yellow"))
