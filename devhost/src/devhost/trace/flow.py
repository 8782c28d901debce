"""What happens in a flow, as its view and its trace have it."""

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
"""The id of the Start node of a flow that has one node beside it; what it does is not told."""

type NodeStatus = Literal["succeeded", "failed", "exception"]
"""`exception`: it failed, and the flow goes on, on its error branch or with its default value."""
type FlowStatus = Literal["succeeded", "partial-succeeded", "failed", "stopped", "paused"]
_ANYTHING = GetPydanticSchema(lambda _type, _handler: core_schema.any_schema())


@dataclass(frozen=True, kw_only=True)
class TimedLine:
    """A line of a trace, apart from its first one."""

    at: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Seconds since the trace began; the writer puts them in."""


@dataclass(frozen=True)
class GraphNode:
    id: str
    type: str
    title: str
    container: str | None = None
    """The iteration or loop that it is in."""


@dataclass(frozen=True)
class GraphEdge:
    source: str
    target: str
    handle: str = "source"
    """Which way on is meant, if the node has several."""


@dataclass(frozen=True)
class FlowGraph:
    """All nodes of a flow, also those that do not run."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True, kw_only=True)
class FlowLine(TimedLine):
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
    """The values of the fields. A file is written as `{"file": NAME}`."""
    files: tuple[str, ...]
    """The names of those that go with the question."""
    graph: FlowGraph | None = None
    """None in older traces."""
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
    """As in the DSL; a trace keeps little of it."""
    container: str | None = None
    """The iteration or loop that it is in."""

    def __str__(self) -> str:
        """As errors name it."""
        if self.title:
            return f"node {self.title!r} ({self.id})"
        return f"node {self.id}"


@dataclass(frozen=True)
class TurnEvent(TimedLine):
    """What happens in a turn. The same values go through a flow's view and are the lines of its trace."""


@dataclass(frozen=True)
class NodeStarted(TurnEvent):
    execution: str
    """The id of this run of the node: in a loop a node runs several times."""
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
    """The strategy's run, if the node is an Agent node; in a trace the id of its session."""
    model: Annotated[ModelDescription | None, _ANYTHING, Field(exclude=True)] = None
    """That of the run."""
    round: int | None = None
    """The round of the loop or iteration that the node is in, from 1."""
    retries: tuple[str, ...] = ()
    """The errors of the tries that failed before."""
    event: Literal["node_end"] = "node_end"

    @property
    def went_on(self) -> Literal["", "error branch", "default value"]:
        """Where the flow went on after the node's error."""
        if self.status != "exception":
            return ""
        if self.node.data.get("error_strategy") == "default-value":
            return "default value"
        return "error branch"


@dataclass(frozen=True)
class AgentLogLine:
    """A log message of an Agent node's strategy, as `Host.run` tells of it. It stands in the messages of a trace."""

    execution: str
    node: FlowNode
    message: JsonObject


@dataclass(frozen=True)
class SourcesRead(TurnEvent):
    """A model node has put segments of knowledge into its prompt: the app shows them as sources of the answer."""

    execution: str
    node: FlowNode
    sources: tuple[JsonObject, ...]
    event: Literal["node_sources"] = "node_sources"


@dataclass(frozen=True)
class NodeCalled(TurnEvent):
    """A node asked a model or called a tool itself. What an agent asks and calls is in the messages of its plugin."""

    node: FlowNode
    kind: Literal["llm", "tool"]
    request: JsonObject
    pieces: tuple[JsonObject, ...]
    """The messages of the answer."""
    error: str = ""
    event: Literal["node_call"] = "node_call"


@dataclass(frozen=True)
class AnswerText(TurnEvent):
    """A piece of the text that the user of the app sees: of an Answer node, or of an End node's first text."""

    node: FlowNode
    text: str
    event: Literal["flow_text"] = "flow_text"


FIELD = re.compile(r"\{\{#\$output\.([a-zA-Z_][a-zA-Z0-9_]{0,29})#\}\}")
"""Where the content of a form has a field."""
TIMEOUT = "__timeout"
"""A form that is not answered in time: its button, and the handle of the edge that the flow takes."""


@dataclass(frozen=True)
class AskedField:
    name: str
    type: Literal["paragraph", "select"]
    text: str = ""
    """What it holds before a person types."""
    options: tuple[str, ...] = ()
    """The options of a select field."""


@dataclass(frozen=True)
class Button:
    id: str
    title: str
    button_style: str = "default"
    """`primary`, or one that looks the same here."""


@dataclass(frozen=True)
class FormAsked(TurnEvent):
    """A form of a Human Input node waits for an answer. The node has started, and ends when the flow goes on."""

    form: str
    """The id of this question: in an iteration a node asks several times."""
    node: FlowNode
    content: str
    """Markdown; `{{#$output.NAME#}}` stands where a field is."""
    fields: tuple[AskedField, ...]
    buttons: tuple[Button, ...]
    """The last is the timeout, if an edge leads on from it."""
    event: Literal["form_asked"] = "form_asked"

    @property
    def values(self) -> dict[str, str]:
        return {each.name: each.text for each in self.fields}

    @property
    def parts(self) -> list[str | AskedField]:
        """The content with the fields in their places; those without a place follow."""
        left = {each.name: each for each in self.fields}
        split = enumerate(FIELD.split(self.content))
        return [*filter(None, [left.pop(part, part) if at % 2 else part for at, part in split]), *left.values()]

    def refused(self, values: Mapping[str, str]) -> dict[str, str]:
        """By field, why Dify does not take its value: a paragraph is not blank, and a select has one of its options.

        Of a form without all of its fields Dify's API says "Missing required inputs: …", with status 400, and Dify's
        page (2026-08-20, `hasInvalidRequiredHumanInput`) does not send one with a blank field.
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
"""Who answered a form; `timeout`: the script or a person let its time run out."""


@dataclass(frozen=True)
class FormAnswered(TurnEvent):
    form: str
    button: str
    """Its id, or `TIMEOUT`."""
    values: Mapping[str, str]
    by: AnsweredBy
    event: Literal["form_answered"] = "form_answered"


@dataclass(frozen=True)
class FlowEnded(TurnEvent):
    status: FlowStatus
    outputs: JsonObject
    """A chatflow has `answer` and `files`, a workflow what its End node lists."""
    error: str = ""
    conversation: Mapping[str, Any] = field(default_factory=dict)
    """The conversation variables after the turn, by name."""
    event: Literal["flow_end"] = "flow_end"


@dataclass(frozen=True)
class FlowJudged(TurnEvent):
    """After a turn that is not as its script expects it."""

    failures: tuple[str, ...]
    """A sentence for each expectation that failed."""
    event: Literal["flow_judged"] = "flow_judged"


type FlowTold = NodeStarted | NodeEnded | SourcesRead | AnswerText | FormAsked | FormAnswered | FlowEnded
type FlowEvent = FlowTold | AgentLogLine
type FlowTraceLine = FlowLine | NodeCalled | FlowJudged | FlowTold
