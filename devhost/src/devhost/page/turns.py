"""The turns of a trace as a page shows them: the nodes on a time axis, the answer, and the runs of agents."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path

from devhost.node.outputs.outputs import OPEN
from devhost.node.outputs.run import RunEnd, ToolCalls
from devhost.page.calls import ShownSource, retrieved
from devhost.page.contents import Axis, Passage, counts, passages
from devhost.page.graph import Drawing, drawing
from devhost.page.section import ShownRun, shown_run
from devhost.trace.lines import Trace
from devhost.trace.played import WAITS, NodeRow
from devhost.trace.turns import TracedTurn, traced_turns

COLOURS = {
    "agent": "model",
    "llm": "model",
    "question-classifier": "model",
    "parameter-extractor": "model",
    "tool": "tool",
    "human-input": "person",
}
"""The kind of row, and so the color, for each type of node. Nodes of all other types are steps."""
LEGEND = {
    "model": "agent or model",
    "tool": "tool",
    "person": "waiting for a person",
    "step": "other node",
    "error": "failed",
}
"""What the color of each kind of row means."""


@dataclass(frozen=True)
class ShownNode:
    """One row of a turn: a node of the flow and its runs of strategies."""

    row: NodeRow
    depth: int
    finished: float
    """The time when the node ended, or the end of the turn if the node has not ended."""
    runs: Sequence[ShownRun]
    """The runs of an Agent node, one for each attempt of the engine."""

    @property
    def beside(self) -> str:
        """A short text beside the name: the type of the node, its round, and the calls of an agent."""
        words = [self.row.node.type]
        if self.row.round is not None:
            words.append(f"round {self.row.round}")
        words += [called for run in self.runs[-1:] if (called := counts(run.spans))]
        return ", ".join(words)

    @property
    def kind(self) -> str:
        return COLOURS.get(self.row.node.type, "step")

    @property
    def has_failed(self) -> bool:
        return self.row.status in {"failed", "exception"}


@dataclass(frozen=True)
class ShownTurn:
    """One turn of a trace with everything that a page shows about it."""

    number: int
    traced: TracedTurn
    nodes: Sequence[ShownNode]
    goes_on: bool
    """Whether a process is still writing this part of the trace."""

    @property
    def run(self) -> ShownRun | None:
        """The run of a strategy that is the whole turn, or `None` for a turn of a flow."""
        if self.traced.is_direct:
            return self.nodes[0].runs[0]
        return None

    @property
    def runs(self) -> list[ShownRun]:
        return [run for node in self.nodes for run in node.runs]

    @property
    def question(self) -> str:
        return self.traced.question

    @property
    def title(self) -> str:
        """The question, or the name of a workflow that takes no question."""
        return self.question or self.traced.facts.name

    @property
    def ending(self) -> RunEnd:
        if self.goes_on and self.traced.form:
            return WAITS
        return self.traced.ending

    @property
    def error(self) -> str:
        if self.goes_on:
            return ""
        return self.traced.end.error

    @cached_property
    def graph(self) -> Drawing | None:
        """The drawing of the flow, or `None` for a strategy and for a trace by an older version of devhost."""
        graph = self.traced.facts.graph
        if graph is None:
            return None
        places = enumerate(self.nodes, start=1)
        anchors = {node.row.execution: f"node-{self.number}-{position}" for position, node in places}
        return drawing(graph, anchors, [node.row for node in self.nodes])

    @property
    def axis(self) -> Axis:
        return Axis(self.traced.began, self.traced.finished)

    @property
    def sources(self) -> Sequence[ShownSource]:
        """The sources that the model nodes and the agents of the turn retrieved."""
        of_agents = (source for node in self.nodes for run in node.runs[-1:] for source in run.sources)
        return list(dict.fromkeys([*retrieved(self.traced.sources), *of_agents]))

    @property
    def source_anchor(self) -> str:
        """The fragment that links to a source, without the number at its end."""
        if self.run is not None:
            return self.run.source_anchor
        return f"turn-{self.number}-source-"

    @property
    def answer(self) -> list[Passage]:
        return passages(self.traced.answer, self.sources, self.source_anchor)

    @property
    def legend(self) -> Mapping[str, str]:
        """The meaning of each color that occurs in the turn, by the kind of row."""
        kinds = {node.kind for node in self.nodes if not node.has_failed}
        if any(node.has_failed for node in self.nodes):
            kinds.add("error")
        return {kind: words for kind, words in LEGEND.items() if kind in kinds}

    @property
    def tool_calls(self) -> ToolCalls:
        """The tool calls of all agents of the turn."""
        return ToolCalls.sum_of(shown.run for shown in self.runs)

    @property
    def open(self) -> Iterator[tuple[str, float]]:
        """The name of each node or call that has not ended, and when it began, in seconds since the trace began."""
        if self.run is None:
            yield from ((node.row.label, node.row.began) for node in self.nodes if node.row.ended is None)
        yield from ((span.label, span.began) for run in self.runs for span in run.rows if span.status == OPEN)


def shown_turns(trace: Trace, folder: Path | None = None, *, is_written: bool = False) -> list[ShownTurn]:
    """Returns the turns of a trace as a page shows them.

    `folder` is the folder of the page, if that is known. `is_written` says whether a process still writes the trace.
    """
    numbers = count(1)
    turns = traced_turns(trace)
    shown = list[ShownTurn]()
    for number, turn in enumerate(turns, start=1):
        goes_on = is_written and turn is turns[-1]
        agents = {
            execution: [shown_run(next(numbers), each, turn.strategy, folder, is_written=goes_on) for each in found]
            for execution, found in turn.agents.items()
        }
        nodes = [
            ShownNode(row, depth, row.finished or turn.finished, agents.get(row.execution, ()))
            for depth, row in turn.flat
        ]
        shown.append(ShownTurn(number, turn, nodes, goes_on and turn.ended is None))
    return shown
