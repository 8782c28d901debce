"""Fills the page of a flow: for each turn its nodes on a time axis, what it answered, and the runs of its agents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from devhost.flow.played import Row
from devhost.flow.traces import TracedTurn, traced_turns
from devhost.node.outputs.run import Ending
from devhost.page.calls import Source, retrieved
from devhost.page.contents import Axis, Passage, passages
from devhost.page.page import page_environment
from devhost.page.section import ShownRun, shown_run
from devhost.trace.lines import PrintedLine, Trace

HERE = Path(__file__).parent
COLOURS = {
    "agent": "group",
    "llm": "model",
    "question-classifier": "model",
    "parameter-extractor": "model",
    "tool": "tool",
}
"""By the type of a node, the kind of row that has its colour; every other node is a step."""


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
        """A few words beside the name."""
        number = self.row.round
        return self.row.node.type if number is None else f"{self.row.node.type}, round {number}"

    @property
    def kind(self) -> str:
        return COLOURS.get(self.row.node.type, "step")


@dataclass(frozen=True)
class ShownTurn:
    number: int
    traced: TracedTurn
    nodes: Sequence[ShownNode]
    goes_on: bool
    """Whether a process still writes what follows."""

    @property
    def ending(self) -> Ending:
        return self.traced.ending

    @property
    def axis(self) -> Axis:
        return Axis(self.traced.began, self.traced.finished)

    @property
    def sources(self) -> Sequence[Source]:
        return retrieved(self.traced.sources)

    @property
    def answer(self) -> list[Passage]:
        """Before the end, as far as it was said."""
        ended = self.traced.ended
        return passages(self.traced.said if ended is None else str(ended.outputs.get("answer") or ""), set(), "")


def render_flow_page(trace: Trace, folder: Path | None = None) -> str:
    """`folder`: where the page will be, if that is known."""
    return (
        page_environment(HERE)
        .get_template("flow.html.j2")
        .render(
            header=trace.header,
            notices=trace.notices,
            cut_off=trace.cut_off,
            printed=[line for line in trace.lines if isinstance(line, PrintedLine)],
            turns=shown_turns(trace, folder),
        )
    )


def shown_turns(trace: Trace, folder: Path | None = None, *, is_written: bool = False) -> list[ShownTurn]:
    """`is_written`: whether a process still writes the trace."""
    numbers, turns, shown = count(1), traced_turns(trace), list[ShownTurn]()
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
