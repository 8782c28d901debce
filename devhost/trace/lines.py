"""The lines of a trace. The first is a `Header`; each of the others has the seconds since then as `at`.

A message is what crossed between the host and a plugin; an end is the result of one session of the strategy;
a notice is a text about the plugins before a run, a remark a sentence about the model after one.
A printed line is what a plugin printed.
A serving line says which backwards call the session of a tool answers.
The lines of `flow/lines.py` say what a flow did, between the messages of its agents.
"""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from devhost.process.watcher import Side
from devhost.trace.flow.lines import FlowTraceLine, Line, Timed

VERSION = 1


class TracedModel(Line):
    name: str
    provider: str
    scripted: bool
    notice: str


class Header(Line):
    trace: Literal["devhost"] = "devhost"
    version: Literal[1] = 1
    started: AwareDatetime
    command: Literal["run", "chat", "tool", "flow"]
    example: str
    description: str
    strategy: str
    transport: str
    model: TracedModel
    query: str | None
    """None in a conversation: each request says what was asked."""
    tool: str = ""
    """With its provider: the one that the command `tool` called."""


class MessageLine(Timed):
    event: Literal["message"] = "message"
    side: Side = Field(alias="from")
    plugin: str
    message: dict[str, Any]


class Fact(Line):
    """A finding."""

    rule: str
    sentence: str


class AtNode(Line):
    """What the node shows for an error."""

    shows: str
    type: str
    inputs_kept: bool


class Failure(Line):
    kind: str
    message: str
    traceback: str | None = None
    node: AtNode | None = None


class Lookups(Line):
    list_plugins: int = 0
    list_builtin_tools: int = 0


class Log(Line):
    id: str
    parent_id: str | None = None
    label: str
    status: Literal["start", "success", "error"]
    error: str | None = None
    data: dict[str, Any]
    metadata: dict[str, Any]
    children: tuple["Log", ...] = ()


class Outcome(Line):
    """A run as `--json` prints it."""

    text: str
    files: list[dict[str, Any]]
    json_: list[Any] = Field(alias="json")
    usage: Any
    variables: dict[str, Any]
    logs: tuple[Log, ...]
    dropped_retriever_resources: int
    workflow_totals: dict[str, Any] = Field(default_factory=dict)
    icon_lookups: Lookups = Lookups()
    findings: tuple[Fact, ...]
    error: Failure | None
    strategy: str
    elapsed_seconds: float


class EndLine(Timed):
    event: Literal["end"] = "end"
    session_id: str
    asked: dict[str, int]
    outcome: Outcome


class NoticeLine(Timed):
    event: Literal["notice"] = "notice"
    sentence: str


class PrintedLine(Timed):
    event: Literal["printed"] = "printed"
    plugin: str
    text: str
    exact: bool = False
    """It came after all messages of the plugin that are before it; else it may have been printed a moment earlier."""


class RemarkLine(Timed):
    event: Literal["remark"] = "remark"
    sentence: str


class ServingLine(Timed):
    event: Literal["serving"] = "serving"
    session_id: str
    request_id: str


type TraceLine = Annotated[
    MessageLine | PrintedLine | ServingLine | EndLine | NoticeLine | RemarkLine | FlowTraceLine,
    Field(discriminator="event"),
]
