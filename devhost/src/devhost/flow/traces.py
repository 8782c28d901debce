"""A flow in a trace."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from math import inf
from typing import Literal

from rich.console import Console

from devhost.flow.document import FlowFile
from devhost.flow.played import PlayedTurn
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


@dataclass
class TracedTurn(PlayedTurn):
    """Times are seconds since the trace began."""

    facts: flow.FlowLine
    events: list[flow.FlowTold] = field(default_factory=list)
    agents: dict[str, list[TracedRun]] = field(default_factory=dict)
    """Runs of strategies, by the execution of the Agent node; several where the engine tried again."""
    calls: dict[str, list[Call]] = field(default_factory=dict)
    """By node, what other nodes asked of models and tools, in the order in which it was answered."""

    def tell(self, event: flow.FlowTold) -> None:
        self.events.append(event)
        self.add(event, event.at)

    def place(self, run: TracedRun) -> None:
        """By its time: one that the engine tried again, or that the end of the trace cut off."""
        for row in self.rows.values():
            if row.node.type == "agent" and row.began <= run.began < (row.finished or inf):
                self.agents.setdefault(row.execution, []).insert(0, run)
                return


def traced_turns(trace: Trace) -> list[TracedTurn]:
    turns: list[TracedTurn] = []
    runs = traced_runs(trace)
    by_session = {run.end.session_id: run for run in runs if run.end is not None}
    # An edited trace may have other events of a flow before its first turn.
    for line in dropwhile(lambda line: not isinstance(line, flow.FlowLine), trace.lines):
        match line:
            case flow.FlowLine():
                turns.append(TracedTurn(line, began=line.at, finished=line.at))
            case flow.NodeCalled():
                pieces = [Piece(line.at, piece) for piece in line.pieces]
                call = Call("", line.kind, line.request, line.at, line.at, line.error, pieces)
                turns[-1].calls.setdefault(line.node.id, []).append(call)
            case flow.FlowJudged():
                turns[-1].failures.extend(line.failures)
            case flow.NodeEnded():
                run = by_session.pop(str(line.run), None)
                if run is not None:
                    runs.remove(run)
                    turns[-1].agents.setdefault(line.execution, []).append(run)
                turns[-1].tell(replace(line, run=None if run is None else run_of(run, trace.header.strategy)))
            case flow.Told():
                turns[-1].tell(line)
    for turn in turns:
        for run in reversed(runs):
            turn.place(run)
        turn.finished = max([turn.finished, *(run.finished for found in turn.agents.values() for run in found)])
    return turns


# The events of a flow as lines of a trace.
#
# The log of an agent is not written twice: it stands in the messages of its run.


class FlowTrace:
    """Writes each turn into a trace; without a watcher that writes one it does nothing."""

    def __init__(self, watcher: Watcher | None) -> None:
        self._writer = watcher if isinstance(watcher, TraceWriter) else None

    def _write(self, line: flow.FlowTraceLine) -> None:
        if self._writer is not None:
            self._writer.flow(line)

    def written(self, engine: FlowEngine) -> FlowEngine:
        """An engine whose turns are written."""

        def play(file: FlowFile, turn: FlowTurn, around: Surroundings, /) -> Iterator[flow.FlowEvent]:
            return self.of_turn(facts_of(file, turn), engine(file, turn, replace(around, heard=self._heard)))

        return play

    def _heard(
        self, node: flow.FlowNode, kind: Literal["llm", "tool"], request: JsonObject, answer: Iterator[JsonObject], /
    ) -> Iterator[JsonObject]:
        pieces = list[JsonObject]()
        error = ""
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


def replay_flow(trace: Trace, console: Console, options: ViewOptions) -> bool:
    """Whether there is a turn in it."""
    view = FlowView(console, options)
    turns = traced_turns(trace)
    for number, turn in enumerate(turns):
        if number == 0:
            view.open(turn.facts, trace.notices, trace.header.model.notice)
            view.begin_answer()
        else:
            view.go_on(turn.facts.query)
        for event in turn.events:
            view.show(event, turn)
        view.close(turn)
        if turn.failures:
            view.judge(turn.failures)
    return bool(turns)
