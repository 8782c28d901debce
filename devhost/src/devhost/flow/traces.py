"""A flow in a trace."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from rich.console import Console
from rich.text import Text

from devhost.flow.document import FlowFile
from devhost.flow.played import LOST, PlayedTurn
from devhost.flow.turn import FlowEngine, FlowTurn, Surroundings
from devhost.flow.view import FlowView, facts_of
from devhost.models.backend import ModelCallError
from devhost.process.session import Watcher
from devhost.protocol.wire import JsonObject
from devhost.terminal.screen import ViewOptions
from devhost.trace import flow
from devhost.trace.lines import Trace, TraceWriter
from devhost.trace.runs import Call, Piece, TracedRun, run_of, traced_runs

# The turns of a flow in a trace, as the events that were written.

AGENT = "agent"


@dataclass
class TracedTurn(PlayedTurn):
    """Times are seconds since the trace began."""

    facts: flow.FlowLine
    events: list[tuple[float, flow.FlowEvent]] = field(default_factory=list)
    agents: dict[str, list[TracedRun]] = field(default_factory=dict)
    """Runs of strategies, by the execution of the Agent node; several where the engine tried again."""
    calls: dict[str, list[Call]] = field(default_factory=dict)
    """By node, what other nodes asked of models and tools, in the order in which it was answered."""


def traced_turns(trace: Trace) -> list[TracedTurn]:
    turns: list[TracedTurn] = []
    for line in trace.lines:
        if isinstance(line, flow.FlowLine):
            turns.append(TracedTurn(line, began=line.at))
        elif not turns:
            continue
        elif isinstance(line, flow.NodeCalled):
            turns[-1].calls.setdefault(line.node.id, []).append(_call(line))
        elif isinstance(line, flow.FlowJudged):
            turns[-1].failures.extend(line.failures)
        elif isinstance(line, flow.Told):
            turns[-1].events.append((line.at, line))
    _place_runs(turns, trace)
    for turn in turns:
        turn.events.sort(key=lambda told: told[0])
        for at, event in turn.events:
            turn.add(event, at)
        ends = [run.finished for found in turn.agents.values() for run in found]
        turn.finished = max([turn.began, turn.finished, *ends])
    return turns


def _place_runs(turns: Sequence[TracedTurn], trace: Trace) -> None:
    """By their sessions, which stand in the lines of the nodes.

    Those that the engine tried again, and those that the end of the trace cut off, by their time.
    """
    unplaced = list(traced_runs(trace))
    for turn in turns:
        for number, (at, event) in enumerate(turn.events):
            if isinstance(event, flow.NodeEnded):
                sessions = (run for run in unplaced if run.end is not None and run.end.session_id == str(event.run))
                found = next(sessions, None)
                run = None if found is None else run_of(found, trace.header.strategy)
                turn.events[number] = at, replace(event, run=run)
                if found is not None:
                    turn.agents.setdefault(event.execution, []).append(found)
                    unplaced.remove(found)
    for traced in unplaced:
        for turn in turns:
            if (execution := _agent_at(turn, traced.began)) is not None:
                turn.agents.setdefault(execution, []).insert(0, traced)


def _call(line: flow.NodeCalled) -> Call:
    pieces = [Piece(line.at, piece) for piece in line.pieces]
    return Call("", line.kind, line.request, line.at, line.at, line.error, pieces)


def _agent_at(turn: TracedTurn, at: float) -> str | None:
    """The execution of the Agent node that ran at that time."""
    running: dict[str, None] = {}
    for told, event in turn.events:
        if told > at:
            break
        match event:
            case flow.NodeStarted() if event.node.type == AGENT:
                running[event.execution] = None
            case flow.NodeEnded():
                running.pop(event.execution, None)
    return next(iter(running), None)


# The events of a flow as lines of a trace.
#
# The log of an agent is not written twice: it stands in the messages of its run.


class FlowTrace:
    """Writes each turn into a trace; without a writer it does nothing."""

    def __init__(self, writer: TraceWriter | None = None) -> None:
        self.watcher: Watcher = writer or Watcher()
        """For the host."""
        self._write: Callable[[flow.FlowTraceLine], None] = (lambda _: None) if writer is None else writer.flow

    def written(self, engine: FlowEngine) -> FlowEngine:
        """An engine whose turns are written."""

        def play(file: FlowFile, turn: FlowTurn, around: Surroundings, /) -> Iterator[flow.FlowEvent]:
            return self.of_turn(facts_of(file, turn), engine(file, turn, replace(around, heard=self._heard)))

        return play

    def _heard(
        self, node: flow.FlowNode, kind: Literal["llm", "tool"], request: JsonObject, answer: Iterator[JsonObject], /
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
            self._write(flow.NodeCalled(node, kind, request, tuple(pieces), error))

    def judged(self, failures: Sequence[str]) -> None:
        """After a turn; `failures`: a sentence for each of its expectations that failed."""
        if failures:
            self._write(flow.FlowJudged(tuple(failures)))

    def of_turn(self, facts: flow.FlowLine, events: Iterable[flow.FlowEvent]) -> Generator[flow.FlowEvent]:
        """The events, each once it is written."""
        self._write(facts)
        for event in events:
            if not isinstance(event, flow.AgentLog):
                self._write(event)
            yield event


# Shows the trace of a flow in the terminal as the flow was shown.


def replay_flow(trace: Trace, console: Console, options: ViewOptions) -> None:
    view = FlowView(console, options)
    turns = traced_turns(trace)
    for number, turn in enumerate(turns):
        if number == 0:
            view.open(turn.facts, trace.notices, trace.header.model.notice)
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
