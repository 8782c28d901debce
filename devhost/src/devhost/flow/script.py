"""A flow's script: what the user says, how the models answer, which segments are found, and what is expected."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field

from devhost.errors import DeclarationError, ParameterError, ScriptError
from devhost.expected import BoundsOrMost, CallsExpected, ValueOrEqual
from devhost.models.scripted import script
from devhost.models.scripted.model import ScriptedModel
from devhost.protocol.wire import JsonObject
from devhost.text import load_yaml, worded
from devhost.trace.flow import FlowNode, FlowStatus, NodeStatus

NODE_TYPE = "knowledge-retrieval"


class Segment(script.Scripted):
    """Its fields stand at the same names in the item; `metadata` goes before what devhost fills in."""

    content: str | None
    """None as in Dify, where a segment may have nothing but files."""
    title: str = ""
    """The document's name."""
    score: float | None = None
    summary: str | None = None
    files: tuple[dict[str, Any], ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)

    def item(self, position: int) -> JsonObject:
        """`position`: from 1, in the order of the node's result. Two runs are alike in their ids."""
        title = self.title or f"Document {position}"
        metadata = {
            "_source": "knowledge",
            "dataset_id": "knowledge",
            "dataset_name": "Knowledge",
            "document_id": title,
            "document_name": title,
            "data_source_type": "upload_file",
            "segment_id": f"{title}, {position}",
            "retriever_from": "workflow",
            "score": self.score,
            "child_chunks": [],
            "segment_hit_count": 1,
            "segment_word_count": len(self.content or ""),
            "segment_position": position,
            "segment_index_node_hash": "",
            "doc_metadata": None,
            "position": position,
            **self.metadata,
        }
        own = {"files": list(self.files), "content": self.content, "summary": self.summary}
        return {"metadata": metadata, "title": title, **own}


def recorded_segment(item: JsonObject, position: int) -> JsonObject:
    """As a script has it: what `Segment.item` fills in is left out."""
    metadata = item.get("metadata") or {}
    usual = {"title": f"Document {position}"}
    known = {**item, "score": metadata.get("score")}
    given = {name: known.get(name) for name in ("title", "score", "summary", "files")}
    given = {name: value for name, value in given.items() if value and value != usual.get(name)}
    given = {"content": item.get("content"), **given}
    made = Segment.model_validate(given).item(position)["metadata"]
    own = {name: value for name, value in metadata.items() if name not in made or made[name] != value}
    return {**given, **({"metadata": own} if own else {})}


def _text_alone(value: object) -> object:
    if isinstance(value, str):
        return {"content": value}
    return value


type Segments = tuple[Annotated[Segment, BeforeValidator(_text_alone)], ...]
"""A text is short for `{content: TEXT}`."""
type Knowledge = Mapping[str, Segments]
"""By a node's id or title."""


def retrieved(knowledge: Knowledge, node: FlowNode) -> Sequence[JsonObject]:
    """What the node finds, whatever is asked; ParameterError if nothing is given for it."""
    for name in (node.id, node.title):
        if name in knowledge:
            return [segment.item(position) for position, segment in enumerate(knowledge[name], 1)]
    raise ParameterError(
        f"no segments are given for {node}: write them in the script's knowledge, under {node.id!r}; an empty list "
        "stands for nothing found"
    )


# What a turn is expected to be, in the words of `devhost.evaluation`.

type _Values = Mapping[str, ValueOrEqual]


class NodeExpected(script.Scripted):
    """Of several runs of the node in one turn, the last; the calls are those of all its runs."""

    status: Annotated[tuple[NodeStatus, ...], BeforeValidator(script.listed)] = ()
    """Any of these."""
    error: ValueOrEqual | None = None
    outputs: _Values = Field(default_factory=dict)
    """By name; `plan.0` and `structured_output.topic` name what is inside one."""
    calls: CallsExpected | None = None
    """The tool calls of an Agent node."""
    failed_calls: BoundsOrMost | None = None


class FlowExpected(script.Scripted):
    status: Annotated[tuple[FlowStatus, ...], BeforeValidator(script.listed)] = ("succeeded", "partial-succeeded")
    """Any of these."""
    error: ValueOrEqual | None = None
    answer: ValueOrEqual | None = None
    """Of a chatflow."""
    outputs: _Values = Field(default_factory=dict)
    """Of the flow: what its End node lists."""
    conversation: _Values = Field(default_factory=dict)
    """The conversation variables after the turn."""
    ran: script.Texts = ()
    """Nodes, by id or title."""
    not_run: script.Texts = ()
    nodes: Mapping[str, NodeExpected] = Field(default_factory=dict)
    """By id or title; a node that is expected something of must have run."""

    def named(self) -> Iterator[tuple[str, str]]:
        """The nodes, each with the key that names it."""
        for key, names in (("ran", self.ran), ("not_run", self.not_run), ("nodes", self.nodes)):
            yield from ((key, name) for name in names)


def _parts(value: object) -> object:
    if isinstance(value, list | tuple):
        return value
    return [value]


def _part(value: object) -> object:
    if isinstance(value, str):
        return {"text": value}
    return value


type _ToolAnswers = Annotated[
    tuple[Annotated[script.RecordedPart, BeforeValidator(_part)], ...], BeforeValidator(_parts)
]
"""A text is short for `{text: TEXT}`."""


# A flow's script: what a user says, turn by turn, and how the scripted models of the flow's nodes answer.


class TurnScript(script.Scripted):
    """One turn: what the user says, and what the models answer."""

    query: str = ""
    files: tuple[script.SentFile, ...] = ()
    """What the user sends with it; paths are relative to the script's folder."""
    answers: Mapping[str, script.Words] = Field(default_factory=dict)
    """To the forms of Human Input nodes: by NODE the button, by NODE.FIELD a value."""
    models: Mapping[str, script.Turns] = Field(default_factory=dict)
    """The turns of each node's model, by the node's id or title."""
    knowledge: Knowledge = Field(default_factory=dict)
    """What each Knowledge Retrieval node finds."""
    expect: FlowExpected | None = None
    """Without it, the turn has to succeed."""


class FlowScript(TurnScript):
    """A case if it names its flow."""

    description: str = ""
    flow: script.BesideTheScript | None = None
    """The DSL file."""
    example: str | None = None
    """One whose tools the flow gets."""
    tools: tuple[script.BesideTheScript, ...] = ()
    """Folders of tool plugins."""
    mcp: script.Texts = ()
    """MCP servers, as `--mcp` takes them."""
    conversation_id: str = ""
    """By default a new one."""
    inputs: dict[str, Any] = Field(default_factory=dict)
    """The fields of the Start node. Dify takes those of a conversation's first message for all that follow."""
    model: script.ScriptedModelCard = script.ScriptedModelCard()
    recorded: script.Recorded = script.Recorded()
    """Tools that answer from a recording."""
    limits: script.RunLimits = script.RunLimits()
    """Of all turns together."""
    tool_answers: Mapping[str, _ToolAnswers] = Field(default_factory=dict)
    """Answers of tools that no plugin has, by NAME or PROVIDER/NAME: one for each call, the last for all others."""
    then: tuple[TurnScript, ...] = ()
    """The rest of the conversation, in order."""

    @property
    def turns(self) -> tuple[TurnScript, ...]:
        return (self, *self.then)

    def turn_for(self, question: str, number: int, asked: int) -> TurnScript:
        """The turn that says this; of several the one for this time. If none does, the turn with this number.

        `number`: of the turn in the conversation, from 1. `asked`: how often the question was asked before.
        """
        written = [turn for turn in self.turns if turn.query and script.gist(turn.query) == script.gist(question)]
        if written:
            return written[min(asked, len(written) - 1)]
        return self.turns[min(number, len(self.turns)) - 1]

    @classmethod
    def read(cls, file: Path) -> Self:
        try:
            data = load_yaml(file)
        except DeclarationError as error:
            raise ScriptError(str(error)) from error
        with worded(lambda why: ScriptError(f"{file}: {why}")):
            return cls.model_validate(data, context=file.parent)


def names_flow(file: Path) -> bool:
    """Whether a script is of a flow."""
    return "flow" in load_yaml(file)


@dataclass
class ScriptedModels:
    """The models of one turn: a node that runs several times in it goes on in its turns."""

    turn: TurnScript
    card: script.ScriptedModelCard
    place: str
    made: dict[str, ScriptedModel] = field(default_factory=dict)

    def __call__(self, node: FlowNode) -> ScriptedModel:
        for name in (node.id, node.title):
            if name in self.turn.models:
                model = ScriptedModel(self.turn.models[name], self.turn.query, self.card, place=self.place)
                return self.made.setdefault(node.id, model)
        raise ParameterError(f"the script has no turns for {node}: write them in models, under {node.id!r}")
