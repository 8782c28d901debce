"""The events of a flow, for its view and its trace."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, GetPydanticSchema, PlainSerializer
from pydantic_core import core_schema

from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import Run
from devhost.protocol.wire import JsonObject

BEFORE_ONE_NODE = "devhost-start"
"""The id of the Start node of a flow that has only one other node. Its events are not reported."""

type NodeStatus = Literal["succeeded", "failed", "exception"]
"""`exception` means that the node failed, and the flow continues on its error branch or with its default value."""
type FlowStatus = Literal["succeeded", "partial-succeeded", "failed", "stopped", "paused"]
_ANYTHING = GetPydanticSchema(lambda _type, _handler: core_schema.any_schema())


@dataclass(frozen=True, kw_only=True)
class TimedLine:
    """A line of a trace, except the first one."""

    at: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Seconds since the trace began, which the writer sets."""


@dataclass(frozen=True)
class GraphNode:
    id: str
    type: str
    title: str
    container: str | None = None
    """The iteration or loop that contains the node."""


@dataclass(frozen=True)
class GraphEdge:
    source: str
    target: str
    handle: str = "source"
    """The handle of the source node from which the edge starts."""


@dataclass(frozen=True)
class FlowGraph:
    """The graph of a flow, including the nodes that do not run."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True, kw_only=True)
class FlowLine(TimedLine):
    """The beginning of a turn."""

    event: Literal["flow"] = "flow"
    file: str
    """The full path of the flow's file."""
    name: str
    kind: str
    """`chatflow` or `workflow`."""
    nodes: int
    """The number of nodes in the file."""
    turn: int
    """The number of the turn in its conversation, from 1."""
    conversation_id: str = ""
    query: str
    inputs: dict[str, Any]
    """The values of the Start node's fields. A file is written as `{"file": NAME}`."""
    files: tuple[str, ...]
    """The names of the files that are sent with the question."""
    graph: FlowGraph | None = None
    """The graph of the flow; None in older traces."""
    node: str = ""
    """The id of the one node that is played, whose variables are the inputs; empty for a whole flow."""


@dataclass(frozen=True)
class FlowNode:
    id: str
    type: str
    title: str
    data: Annotated[
        JsonObject, PlainSerializer(lambda data: {key: data[key] for key in data if key == "error_strategy"})
    ]
    """The node's data as in the DSL. A trace keeps only `error_strategy`."""
    container: str | None = None
    """The iteration or loop that contains the node."""

    def __str__(self) -> str:
        """Return the node's name in errors."""
        if self.title:
            return f"node {self.title!r} ({self.id})"
        return f"node {self.id}"


@dataclass(frozen=True)
class TurnEvent(TimedLine):
    """An event of a turn. The same objects are shown in a flow's view and written to its trace."""


@dataclass(frozen=True)
class NodeStarted(TurnEvent):
    execution: str
    """The id of this run of the node. A node in a loop may run several times."""
    node: FlowNode
    round: int | None = None
    """The round of the loop or iteration that the node is in, from 1."""
    event: Literal["node_start"] = "node_start"


@dataclass(frozen=True)
class NodeEnded(TurnEvent):
    execution: str
    node: FlowNode
    status: NodeStatus
    inputs: JsonObject
    outputs: JsonObject
    seconds: float
    error: str = ""
    metadata: JsonObject = field(default_factory=dict)
    process: JsonObject = field(default_factory=dict)
    """What Dify shows as process data, such as the prompts of a model node."""
    run: Annotated[Run | None, _ANYTHING, PlainSerializer(lambda run: None if run is None else run.session_id)] = None
    """The strategy's run, if the node is an Agent node. A trace has the id of its session instead."""
    model: Annotated[ModelDescription | None, _ANYTHING, Field(exclude=True)] = None
    """The model of the run."""
    round: int | None = None
    """The round of the loop or iteration that the node is in, from 1."""
    retries: tuple[str, ...] = ()
    """The errors of earlier attempts that failed."""
    event: Literal["node_end"] = "node_end"

    @property
    def went_on(self) -> Literal["", "error branch", "default value"]:
        """Where the flow continued after the node's error."""
        if self.status != "exception":
            return ""
        if self.node.data.get("error_strategy") == "default-value":
            return "default value"
        return "error branch"


@dataclass(frozen=True)
class AgentLogLine:
    """A log message of an Agent node's strategy, as `Host.run` reports it. In a trace, it is one of the messages."""

    execution: str
    node: FlowNode
    message: JsonObject


@dataclass(frozen=True)
class SourcesRead(TurnEvent):
    """A model node has put segments of knowledge into its prompt. The app shows them as sources of the answer."""

    execution: str
    node: FlowNode
    sources: tuple[JsonObject, ...]
    event: Literal["node_sources"] = "node_sources"


@dataclass(frozen=True)
class NodeCalled(TurnEvent):
    """A model call or tool call that a node makes itself. The calls of an agent are in the messages of its plugin."""

    node: FlowNode
    kind: Literal["llm", "tool"]
    request: JsonObject
    pieces: tuple[JsonObject, ...]
    """The messages of the answer."""
    error: str = ""
    event: Literal["node_call"] = "node_call"


@dataclass(frozen=True)
class AnswerText(TurnEvent):
    """A piece of the text that the user of the app sees, from an Answer node or from an End node's first text."""

    node: FlowNode
    text: str
    event: Literal["flow_text"] = "flow_text"


FIELD = re.compile(r"\{\{#\$output\.([a-zA-Z_][a-zA-Z0-9_]{0,29})#\}\}")
"""The placeholder for a field in the content of a form."""
TIMEOUT = "__timeout"
"""The button of a form that is not answered in time, and the handle of the edge that the flow then takes."""


@dataclass(frozen=True)
class AskedField:
    name: str
    type: Literal["paragraph", "select"]
    text: str = ""
    """The text in the field before a person types."""
    options: tuple[str, ...] = ()
    """The options of a select field."""


@dataclass(frozen=True)
class Button:
    id: str
    title: str
    button_style: str = "default"
    """Dify's style of the button. All styles except `primary` look the same in devhost."""


@dataclass(frozen=True)
class FormAsked(TurnEvent):
    """A form of a Human Input node waits for an answer. The node has started, and ends when the flow continues."""

    form: str
    """The id of this form. A node in an iteration shows its form several times."""
    node: FlowNode
    content: str
    """The content as Markdown. `{{#$output.NAME#}}` marks the place of a field."""
    fields: tuple[AskedField, ...]
    buttons: tuple[Button, ...]
    """The buttons. The last one is the timeout, if an edge starts from it."""
    event: Literal["form_asked"] = "form_asked"

    @property
    def values(self) -> dict[str, str]:
        return {each.name: each.text for each in self.fields}

    @property
    def parts(self) -> list[str | AskedField]:
        """The content with the fields in their places, followed by the fields without a place."""
        left = {each.name: each for each in self.fields}
        split = enumerate(FIELD.split(self.content))
        return [*filter(None, [left.pop(part, part) if at % 2 else part for at, part in split]), *left.values()]

    def refused(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return by field why Dify refuses its value: a paragraph is blank, or a select has none of its options.

        If fields are missing, Dify's API answers "Missing required inputs: …" with status 400. Dify's page (2026-08-20,
        `hasInvalidRequiredHumanInput`) does not send a form with a blank field.
        """
        refused = {}
        for each in self.fields:
            value = values.get(each.name, "")
            if each.type != "select":
                if not value.strip():
                    refused[each.name] = "Dify wants a text"
            elif value not in each.options:
                begins = "choose"
                if value:
                    begins = f"{value!r} is not"
                refused[each.name] = f"{begins} one of: {', '.join(each.options) or 'no options'}"
        return refused


type AnsweredBy = Literal["script", "terminal", "console", "timeout"]
"""Who answered a form. `timeout` means that the script or a person let its time run out."""


@dataclass(frozen=True)
class FormAnswered(TurnEvent):
    form: str
    button: str
    """The button's id, or `TIMEOUT`."""
    values: Mapping[str, str]
    by: AnsweredBy
    event: Literal["form_answered"] = "form_answered"


@dataclass(frozen=True)
class FlowEnded(TurnEvent):
    status: FlowStatus
    outputs: JsonObject
    """The outputs. A chatflow has `answer` and `files`, and a workflow has the outputs that its End node lists."""
    error: str = ""
    conversation: Mapping[str, Any] = field(default_factory=dict)
    """The conversation variables after the turn, by name."""
    event: Literal["flow_end"] = "flow_end"


@dataclass(frozen=True)
class FlowJudged(TurnEvent):
    """The failed expectations of a turn, which follow it in the trace."""

    failures: tuple[str, ...]
    """A sentence for each expectation that failed."""
    event: Literal["flow_judged"] = "flow_judged"


type FlowTold = NodeStarted | NodeEnded | SourcesRead | AnswerText | FormAsked | FormAnswered | FlowEnded
type FlowEvent = FlowTold | AgentLogLine
type FlowTraceLine = FlowLine | NodeCalled | FlowJudged | FlowTold
