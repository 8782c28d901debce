"""The nodes of one turn in the order in which they began; rounds of a loop or an iteration stand in its row.

In: the events of a turn, each with its time. Out: a `Row` for each execution of a node.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from devhost.flow.document import FlowNode
from devhost.flow.events import AgentLog as AgentLogged
from devhost.flow.events import FlowEvent, FlowPaused, NodeEnded, NodeRetried, NodeStarted
from devhost.node.outputs.log import AgentLog, LogEntry
from devhost.protocol.wire import JsonObject

SYSTEM = ("sys.", "conversation.", "env.")
"""A Start node puts these out beside its fields."""


@dataclass
class Row:
    execution: str
    node: FlowNode
    began: float
    """In seconds, on the clock of whatever adds the events."""
    round: int | None = None
    """Of its container, from 1."""
    ended: NodeEnded | None = None
    """None while it runs, and if it never ended."""
    retries: list[NodeRetried] = field(default_factory=list)
    log: AgentLog = field(default_factory=AgentLog)
    """What the strategy of an Agent node has logged."""
    waited: bool = False
    """A person was asked for its form."""
    rounds: dict[int, list["Row"]] = field(default_factory=dict)

    @property
    def status(self) -> str:
        return "" if self.ended is None else self.ended.status

    @property
    def inputs(self) -> JsonObject:
        """A Variable Assigner of the engine gives its own data as its inputs."""
        return {} if self.ended is None or self.node.type == "assigner" else self.ended.inputs

    @property
    def outputs(self) -> JsonObject:
        outputs = {} if self.ended is None else self.ended.outputs
        return {name: value for name, value in outputs.items() if not name.startswith(SYSTEM)}

    @property
    def logs(self) -> Sequence[LogEntry]:
        """The agent's own tree."""
        run = None if self.ended is None else self.ended.run
        return self.log.roots() if run is None else run.outputs.logs

    @property
    def inner(self) -> Iterator["Row"]:
        return (row for rows in self.rounds.values() for row in rows)


class Rows:
    """Of one turn."""

    def __init__(self) -> None:
        self.roots: list[Row] = []
        self._by_execution: dict[str, Row] = {}

    def __iter__(self) -> Iterator[Row]:
        """Those in rounds too."""
        return iter(self._by_execution.values())

    def __len__(self) -> int:
        return len(self._by_execution)

    def add(self, event: FlowEvent, at: float) -> None:
        match event:
            case NodeStarted():
                self._start(Row(event.execution, event.node, at, event.round))
            case NodeEnded():
                row = self._by_execution.get(event.execution)
                row = row or self._start(Row(event.execution, event.node, at, event.round))
                row.ended = event
            case NodeRetried() if event.execution in self._by_execution:
                self._by_execution[event.execution].retries.append(event)
            case AgentLogged() if event.execution in self._by_execution:
                self._by_execution[event.execution].log.add({"data": {}, **event.message["message"]})
            case FlowPaused():
                for form in event.forms:
                    if row := self._open_row(form.node.id):
                        row.waited = True

    def _start(self, row: Row) -> Row:
        self._by_execution[row.execution] = row
        container = self._open_row(row.node.container) if row.node.container else None
        beside = self.roots if container is None else container.rounds.setdefault(row.round or 1, [])
        beside.append(row)
        return row

    def _open_row(self, node: str) -> Row | None:
        """The last that began."""
        rows = reversed(self._by_execution.values())
        return next((row for row in rows if row.node.id == node and row.ended is None), None)
