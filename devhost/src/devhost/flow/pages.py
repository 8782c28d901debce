"""Fills the page of a flow: for each turn its nodes on a time axis, what it answered, and the runs of its agents."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from devhost.flow.traces import TracedTurn, traced_turns
from devhost.flow.view import Row, Rows
from devhost.node.outputs.run import Ending
from devhost.page.calls import Source, retrieved
from devhost.page.contents import Axis, Passage, passages
from devhost.page.page import page_environment
from devhost.page.section import ShownRun, shown_run
from devhost.protocol.wire import JsonObject
from devhost.trace.flow import AnswerText, FlowEnded, FlowLine, NodeEnded, SourcesRead, flow_ending
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
    def label(self) -> str:
        return self.row.node.title or self.row.node.id

    @property
    def beside(self) -> str:
        """A few words beside the name."""
        number = self.row.round
        return self.row.node.type if number is None else f"{self.row.node.type}, round {number}"

    @property
    def kind(self) -> str:
        return COLOURS.get(self.row.node.type, "step")

    @property
    def failed(self) -> bool:
        return self.row.status in {"failed", "exception"}


@dataclass(frozen=True)
class ShownTurn:
    number: int
    traced: TracedTurn
    nodes: Sequence[ShownNode]
    sources: Sequence[Source]
    goes_on: bool = False
    """Whether a process still writes what follows."""

    @property
    def facts(self) -> FlowLine:
        return self.traced.facts

    @property
    def ended(self) -> FlowEnded | None:
        return self.traced.ended

    @property
    def ending(self) -> Ending:
        return (
            Ending("not ended", "bad")
            if self.ended is None
            else flow_ending(
                self.ended.status,
                (node.row.ended.run for node in self.nodes if node.row.ended and node.row.ended.run),
                self.traced.failures,
            )
        )

    @property
    def axis(self) -> Axis:
        return Axis(self.traced.began, self.traced.finished)

    @property
    def tokens(self) -> int:
        ends = (node.row.ended for node in self.nodes)
        found = (ended.metadata.get("total_tokens") for ended in ends if ended is not None)
        return sum(tokens for tokens in found if isinstance(tokens, int))

    @property
    def answer(self) -> list[Passage]:
        """Before the end, as far as it was said."""
        said = (event.text for _, event in self.traced.events if isinstance(event, AnswerText))
        return passages(str(self._outputs.get("answer") or "") if self.ended else "".join(said), set(), "")

    @property
    def outputs(self) -> Mapping[str, object]:
        """Those of a workflow."""
        return {name: value for name, value in self._outputs.items() if name not in {"answer", "files"}}

    @property
    def conversation(self) -> Mapping[str, object]:
        return {} if self.ended is None else self.ended.conversation

    @property
    def _outputs(self) -> JsonObject:
        return {} if self.ended is None else self.ended.outputs


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
    numbers, turns = count(1), traced_turns(trace)
    return [
        _shown(number, turn, trace, folder, numbers, goes_on=is_written and turn is turns[-1])
        for number, turn in enumerate(turns, start=1)
    ]


def _shown(  # noqa: PLR0913 - what a turn is made of
    number: int,
    turn: TracedTurn,
    trace: Trace,
    folder: Path | None,
    numbers: Iterator[int],
    *,
    goes_on: bool,
) -> ShownTurn:
    rows, ends, sources = Rows(), dict[str, float](), list[JsonObject]()
    for at, event in turn.events:
        rows.add(event, at)
        match event:
            case NodeEnded():
                ends[event.execution] = at
            case SourcesRead():
                sources += event.sources
    runs = {
        execution: [shown_run(next(numbers), each, trace, folder, is_written=goes_on) for each in found]
        for execution, found in turn.runs.items()
    }
    nodes = [
        ShownNode(row, depth, ends.get(row.execution, turn.finished), runs.get(row.execution, ()))
        for depth, row in _flat(rows.roots)
    ]
    shown = ShownTurn(number, turn, nodes, retrieved(sources))
    return replace(shown, goes_on=goes_on and shown.ended is None)


def _flat(rows: Sequence[Row], depth: int = 0) -> Iterator[tuple[int, Row]]:
    for row in rows:
        yield depth, row
        for _, inner in sorted(row.rounds.items()):
            yield from _flat(inner, depth + 1)
