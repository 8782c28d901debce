"""Fills the page of a flow: for each turn its nodes on a time axis, what it answered, and the runs of its agents."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from devhost.flow.played import WAITS, Row
from devhost.flow.traces import TracedTurn, traced_turns
from devhost.node.outputs.run import Ending, ToolCalls
from devhost.page.calls import Source, retrieved
from devhost.page.contents import Axis, Passage, counts, passages
from devhost.page.page import render_trace
from devhost.page.section import ShownRun, shown_run
from devhost.trace.lines import Trace

COLOURS = {
    "agent": "model",
    "llm": "model",
    "question-classifier": "model",
    "parameter-extractor": "model",
    "tool": "tool",
    "human-input": "person",
}
"""By the type of a node, the kind of row that has its colour; every other node is a step."""
LEGEND = {
    "model": "agent or model",
    "tool": "tool",
    "person": "waiting for a person",
    "step": "other node",
    "error": "failed",
}
"""By the kind of row, what its colour means."""


@dataclass(frozen=True)
class ShownNode:
    row: Row
    depth: int
    finished: float
    """When it ended, or when the trace does."""
    runs: Sequence[ShownRun]
    """Of an Agent node; several where the engine tried again."""

    @property
    def beside(self) -> str:
        """A few words beside the name: its type, its round, and what an agent called."""
        number = "" if self.row.round is None else f"round {self.row.round}"
        called = counts(self.runs[-1].spans) if self.runs else ""
        return ", ".join(filter(None, (self.row.node.type, number, called)))

    @property
    def kind(self) -> str:
        return COLOURS.get(self.row.node.type, "step")

    @property
    def has_failed(self) -> bool:
        return self.row.status in {"failed", "exception"}


@dataclass(frozen=True)
class ShownTurn:
    number: int
    traced: TracedTurn
    nodes: Sequence[ShownNode]
    goes_on: bool
    """Whether a process still writes what follows."""

    @property
    def ending(self) -> Ending:
        if self.goes_on and self.traced.form:
            return WAITS
        return self.traced.ending

    @property
    def error(self) -> str:
        if self.goes_on:
            return ""
        return self.traced.end.error

    @property
    def axis(self) -> Axis:
        return Axis(self.traced.began, self.traced.finished)

    @property
    def sources(self) -> Sequence[Source]:
        """Those of its model nodes, and of its agents."""
        of_agents = (source for node in self.nodes for run in node.runs[-1:] for source in run.sources)
        return list(dict.fromkeys([*retrieved(self.traced.sources), *of_agents]))

    @property
    def source_anchor(self) -> str:
        """The fragment of the page's address that leads to a source, without its number."""
        return f"turn-{self.number}-source-"

    @property
    def answer(self) -> list[Passage]:
        return passages(self.traced.answer, self.sources, self.source_anchor)

    @property
    def legend(self) -> Mapping[str, str]:
        """By the kind of row, what its colour means; only of the rows that there are."""
        kinds = {"error" if node.has_failed else node.kind for node in self.nodes}
        return {kind: words for kind, words in LEGEND.items() if kind in kinds}

    @property
    def tool_calls(self) -> ToolCalls:
        """Of its agents."""
        return ToolCalls.sum_of(shown.run for node in self.nodes for shown in node.runs)


def render_flow_page(trace: Trace, folder: Path | None = None) -> str:
    """`folder`: where the page will be, if that is known."""
    return render_trace("flow.html.j2", trace, turns=shown_turns(trace, folder))


def shown_turns(trace: Trace, folder: Path | None = None, *, is_written: bool = False) -> list[ShownTurn]:
    """`is_written`: whether a process still writes the trace."""
    numbers = count(1)
    turns = traced_turns(trace)
    shown = list[ShownTurn]()
    for number, turn in enumerate(turns, start=1):
        goes_on = is_written and turn is turns[-1]
        agents = {
            execution: [shown_run(next(numbers), each, trace, folder, is_written=goes_on) for each in found]
            for execution, found in turn.agents.items()
        }
        nodes = [
            ShownNode(row, depth, row.finished or turn.finished, agents.get(row.execution, ()))
            for depth, row in _flat(turn.roots)
        ]
        shown.append(ShownTurn(number, turn, nodes, goes_on and turn.ended is None))
    return shown


def _flat(rows: Sequence[Row], depth: int = 0) -> Iterator[tuple[int, Row]]:
    for row in rows:
        yield depth, row
        for _, inner in sorted(row.rounds.items()):
            yield from _flat(inner, depth + 1)
