"""The turns in a trace. A turn has the nodes of a flow, or the Agent node of a strategy that is played alone."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from math import inf

from devhost.node.outputs.run import Run
from devhost.node.parameters import files_among
from devhost.trace import flow
from devhost.trace.lines import Trace
from devhost.trace.played import AGENT, PlayedTurn, agent_node, ends
from devhost.trace.runs import AnswerPiece, Call, TracedRun, run_of, traced_runs

STRATEGY = "strategy"
"""The kind of a turn without a flow, in addition to `chatflow` and `workflow`."""


@dataclass
class TracedTurn(PlayedTurn):
    """A turn in a trace. Times are seconds since the trace began."""

    facts: flow.FlowLine
    strategy: str = ""
    """The strategy of the turn's agents, if the first line of the trace names it."""
    events: list[flow.FlowTold] = field(default_factory=list)
    """All events in the trace of a flow. A strategy's turn has only events for its beginning and its end."""
    agents: dict[str, list[TracedRun]] = field(default_factory=dict)
    """The runs of strategies, by the execution of the Agent node. There are several if the engine retried the node."""
    calls: dict[str, list[Call]] = field(default_factory=dict)
    """The model calls and tool calls of other nodes, by node, in the order in which they were answered."""

    @property
    def question(self) -> str:
        """The question of the user. For a node that was played alone, the node's name comes first."""
        facts = self.facts
        if not facts.node:
            return facts.query
        return f"{facts.name}, node {facts.node}: {facts.query}".rstrip(": ")

    @property
    def traced(self) -> Iterator[TracedRun]:
        """The runs of the turn's agents, in the order in which their nodes began."""
        for execution in self.rows:
            yield from self.agents.get(execution, ())

    @property
    def outcomes(self) -> list[Run]:
        """The outcomes of the agents' runs, including runs without an end."""
        return [run_of(run, self.strategy) for run in self.traced]

    def tell(self, event: flow.FlowTold) -> None:
        self.events.append(event)
        self.add(event, event.at)

    def place(self, run: TracedRun) -> None:
        """Assign a run to a node by its time, if the engine retried it or the trace ended before the run did."""
        for row in self.rows.values():
            if row.node.type == AGENT and row.began <= run.began < (row.finished or inf):
                self.agents.setdefault(row.execution, []).insert(0, run)
                return


def traced_turns(trace: Trace) -> list[TracedTurn]:
    if trace.header.command == "flow":
        return _of_flow(trace)
    asked = Counter[str | None]()
    turns = []
    for run in traced_runs(trace):
        asked[run.conversation_id] += 1
        turns.append(turn_with(run, trace.header.strategy, asked[run.conversation_id]))
    return turns


def last_conversation(trace: Trace) -> list[TracedTurn]:
    """Return the turns of the last conversation, or the last turn of a workflow."""
    turns = traced_turns(trace)
    if not turns:
        return []
    last = [turn for turn in turns if turn.facts.conversation_id == turns[-1].facts.conversation_id]
    begins = max((number for number, turn in enumerate(last) if turn.facts.turn == 1), default=0)
    return last[begins:]


def turn_with(run: TracedRun, strategy: str, number: int = 1) -> TracedTurn:
    """Return the turn of a strategy's run that is played alone. `number` is its place in its conversation."""
    outcome = run_of(run, strategy)
    name = strategy or outcome.strategy
    facts = flow.FlowLine(
        at=run.began,
        file="",
        name=name,
        kind=STRATEGY,
        nodes=1,
        turn=number,
        conversation_id=run.conversation_id or "",
        query=run.question,
        inputs={},
        files=tuple(str(file.get("filename")) for file in files_among(run.parameters)),
    )
    turn = TracedTurn(facts, name, began=run.began, is_direct=True, said=outcome.outputs.text)
    turn.agents[AGENT] = [run]
    turn.tell(flow.NodeStarted(AGENT, agent_node(name), at=run.began))
    if run.end is not None:
        for event in ends(outcome, run.parameters):
            turn.tell(replace(event, at=run.finished))
    turn.finished = run.finished
    return turn


def _of_flow(trace: Trace) -> list[TracedTurn]:
    turns: list[TracedTurn] = []
    strategy = trace.header.strategy
    runs = traced_runs(trace)
    by_session = {run.end.session_id: run for run in runs if run.end is not None}
    # An edited trace may have other events of a flow before its first turn.
    for line in dropwhile(lambda line: not isinstance(line, flow.FlowLine), trace.lines):
        match line:
            case flow.FlowLine():
                turns.append(TracedTurn(line, strategy, began=line.at, finished=line.at))
            case flow.NodeCalled():
                pieces = [AnswerPiece(line.at, piece) for piece in line.pieces]
                call = Call("", line.kind, line.request, line.at, line.at, line.error, pieces)
                turns[-1].calls.setdefault(line.node.id, []).append(call)
            case flow.FlowJudged():
                turns[-1].failures.extend(line.failures)
            case flow.NodeEnded():
                run = by_session.pop(str(line.run), None)
                if run is not None:
                    runs.remove(run)
                    turns[-1].agents.setdefault(line.execution, []).append(run)
                turns[-1].tell(replace(line, run=None if run is None else run_of(run, strategy)))
            case flow.TurnEvent():
                turns[-1].tell(line)
    for turn in turns:
        for run in reversed(runs):
            turn.place(run)
        turn.finished = max([turn.finished, *(run.finished for found in turn.agents.values() for run in found)])
    return turns
