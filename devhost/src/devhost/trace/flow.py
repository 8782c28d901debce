"""What a flow adds to a trace, as data."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from devhost.node.outputs.run import Ending, Run

type NodeStatus = Literal["succeeded", "failed", "exception"]
"""`exception`: it failed, and the flow goes on, on its error branch or with its default value."""
type FlowStatus = Literal["succeeded", "partial-succeeded", "failed", "stopped", "paused"]
_ENDINGS: Mapping[FlowStatus, Ending] = {
    "succeeded": Ending("finished", "good"),
    "partial-succeeded": Ending("finished with an error", "limited"),
    "failed": Ending("failed", "bad"),
    "stopped": Ending("stopped", "limited"),
    "paused": Ending("waits for an answer", "limited"),
}


def flow_ending(status: FlowStatus, agents: Iterable[Run]) -> Ending:
    """How a turn ended; one that succeeded, as the last of its agents that waits for the user or stopped early."""
    of_agents = [run.ending for run in agents if run.error is None]
    limited = [ending for ending in of_agents if ending.level != "good"]
    return limited[-1] if limited and status == "succeeded" else _ENDINGS[status]


class Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, defer_build=True)


class Timed(Line):
    at: Annotated[float, Field(ge=0, allow_inf_nan=False)]


UNTIMED = 0.0
"""Of a line that is written: the writer puts the time into it."""


class FlowLine(Timed):
    """A turn begins."""

    event: Literal["flow"] = "flow"
    file: str
    """The whole path."""
    name: str
    kind: str
    """`chatflow` or `workflow`."""
    nodes: int
    """How many the file has."""
    turn: int
    """In its conversation, from 1."""
    conversation_id: str = ""
    query: str
    inputs: dict[str, Any]
    """Of a file `{"file": NAME}`."""
    files: tuple[str, ...]
    """The names of those that go with the question."""


class TracedNode(Line):
    id: str
    type: str
    title: str
    container: str | None = None
    error_strategy: str | None = None
    """`fail-branch` or `default-value`, as in the DSL."""


class NodeStartLine(Timed):
    event: Literal["node_start"] = "node_start"
    execution: str
    node: TracedNode
    round: int | None = None


class NodeRetryLine(Timed):
    event: Literal["node_retry"] = "node_retry"
    execution: str
    attempt: int
    error: str


class NodeEndLine(Timed):
    event: Literal["node_end"] = "node_end"
    execution: str
    status: NodeStatus
    seconds: float
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    error: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)
    process: dict[str, Any] = Field(default_factory=dict)
    session_id: str = ""
    """Of the strategy's run; empty for every other node."""


class FlowTextLine(Timed):
    """A piece of the text that the user of the app sees."""

    event: Literal["flow_text"] = "flow_text"
    node: str
    text: str


class NodeSourcesLine(Timed):
    """Segments of knowledge that a model node has put into its prompt."""

    event: Literal["node_sources"] = "node_sources"
    execution: str
    sources: tuple[dict[str, Any], ...]


class NodeCallLine(Timed):
    """A node asked a model or called a tool itself. What an agent asks and calls is in the messages of its plugin."""

    event: Literal["node_call"] = "node_call"
    node: str
    kind: Literal["llm", "tool"]
    request: dict[str, Any]
    pieces: tuple[dict[str, Any], ...]
    """Of the answer."""
    error: str = ""


class FlowPauseLine(Timed):
    event: Literal["flow_pause"] = "flow_pause"
    nodes: tuple[str, ...]
    """Those whose forms wait for a person."""


class FlowEndLine(Timed):
    event: Literal["flow_end"] = "flow_end"
    status: FlowStatus
    outputs: dict[str, Any]
    error: str = ""
    conversation: dict[str, Any] = Field(default_factory=dict)


type FlowTraceLine = (
    FlowLine
    | NodeStartLine
    | NodeRetryLine
    | NodeEndLine
    | NodeSourcesLine
    | NodeCallLine
    | FlowTextLine
    | FlowPauseLine
    | FlowEndLine
)
