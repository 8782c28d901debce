"""A script: what the user of a strategy or a flow says, turn by turn, how models answer, and what is expected."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field

from devhost.errors import DeclarationError, ParameterError, ScriptError, about
from devhost.expected import Expected
from devhost.models.backend import ModelBackend
from devhost.models.scripted.knowledge import Knowledge
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.script import (
    WRITTEN_HERE,
    BesideTheScript,
    RecordedPart,
    RecordedRequest,
    RunLimits,
    ScriptedModelCard,
    ScriptedTurn,
    ScriptModel,
    SentFile,
    SomeTurns,
    Texts,
    Turns,
    Words,
    gist,
    listed,
    one_sentence,
)
from devhost.protocol.failures import Fault
from devhost.protocol.wire import JsonObject
from devhost.text import json_value, load_yaml, real_path, worded
from devhost.trace.flow import AnsweredBy, FlowNode, FormAsked
from devhost.trace.played import agent_node

type _Object = Annotated[dict[str, Any], BeforeValidator(json_value)]
type Kind = Literal["strategy", "flow"]
"""What a script is written for: one Agent node that is played alone, or a flow."""

# The script of one turn.


def _parts(value: object) -> object:
    if isinstance(value, list | tuple):
        return value
    return [value]


def _part(value: object) -> object:
    if isinstance(value, str):
        return {"text": value}
    return value


type _ToolAnswers = Annotated[tuple[Annotated[RecordedPart, BeforeValidator(_part)], ...], BeforeValidator(_parts)]
"""The answers of a tool. A bare text is short for `{text: TEXT}`."""


class TurnScript(ScriptModel):
    """What the user says, and how models answer: a strategy's model by `turns`, or the models of a flow by `models`."""

    query: Words = ""
    approval: Words | None = None
    """The answer to a strategy's pending calls, if it is not the query."""
    files: tuple[SentFile, ...] = ()
    """The files that the user sends with the query. Paths are relative to the script's folder."""
    answers: Mapping[str, Words] = Field(default_factory=dict)
    """The answers to forms of Human Input nodes. NODE gives the button, and NODE.FIELD gives the value of a field."""
    turns: SomeTurns = ()
    """The turns of a strategy's model. The strategy is the only node of the user's turn."""
    models: Mapping[str, Turns] = Field(default_factory=dict)
    """The turns of each node's model, by the node's id or title."""
    knowledge: Knowledge = Field(default_factory=dict)
    """What each Knowledge Retrieval node finds."""
    expect: Expected | None = None
    """What is expected of the turn, which has to succeed by default.

    In a strategy's script, the expectation of the first turn is for the whole conversation.
    """

    def turns_of(self, node: FlowNode) -> tuple[ScriptedTurn, ...]:
        """Return the turns of a node's model. Raises ParameterError if the script has none for the node."""
        for name in (node.id, node.title):
            if name in self.models:
                return self.models[name]
        if "turns" in self.model_fields_set:
            return self.turns
        raise ParameterError(f"the script has no turns for {node}: write them in models, under {node.id!r}")


# A script file.


class PartScript(ScriptModel):
    """Turns for some strategies. `model_fields_set` contains the fields that the file sets."""

    strategy: Annotated[
        tuple[str, ...], one_sentence("should be a name, or a list of names"), BeforeValidator(listed)
    ] = ()
    """The strategies that the turns are written for; empty for any strategy."""
    params: _Object = Field(default_factory=dict)
    turns: SomeTurns = ()
    then: tuple[TurnScript, ...] = ()
    """The rest of the conversation, in order."""
    otherwise: Turns | None = None


class ScriptFile(TurnScript, PartScript):
    """The content of a script file. The script is for a flow if it names the flow."""

    extends: str | None = None
    """Another script, relative to this file's folder. It provides what this script does not set."""
    description: str = ""
    flow: BesideTheScript | None = None
    """The DSL file of the flow."""
    example: str | None = None
    """An example whose tools are offered."""
    tools: tuple[BesideTheScript, ...] = ()
    """Folders of tool plugins."""
    mcp: Texts = ()
    """MCP servers, as `--mcp` takes them."""
    conversation_id: str = ""
    """The id of the conversation; by default a new id."""
    inputs: dict[str, Any] = Field(default_factory=dict)
    """The fields of the Start node. Dify uses the inputs of a conversation's first message for all later messages."""
    variables: _Object = Field(default_factory=dict)
    """Variables of the workflow around a strategy, by `node.name`, to which `params` may refer."""
    panel: dict[str, dict[str, str]] = Field(default_factory=dict)
    """The parameters that the node's panel holds, by tool. A text may be a template."""
    model: ScriptedModelCard = ScriptedModelCard()
    api_fails: dict[str, Fault] = Field(default_factory=dict)
    """How Dify's API fails each time a tool is called, by tool."""
    recorded: RecordedRequest = RecordedRequest()
    """Tools that answer from a recording."""
    limits: RunLimits = RunLimits()
    """Limits for all turns together."""
    tool_answers: Mapping[str, _ToolAnswers] = Field(default_factory=dict)
    """The answers of tools that no plugin has, by NAME or PROVIDER/NAME.

    Calls beyond the last answer get the last one.
    """
    variants: tuple[PartScript, ...] = ()

    @property
    def parts(self) -> tuple[PartScript, ...]:
        """The parts of the file. Later parts override earlier ones."""
        return (self, *self.variants)


ONLY: Mapping[Kind, frozenset[str]] = {
    "flow": frozenset({"flow", "inputs", "answers", "models", "knowledge", "tool_answers"}),
    "strategy": frozenset(
        {"strategy", "params", "turns", "otherwise", "approval", "variables", "panel", "api_fails", "variants"}
    ),
}
"""Keys that are valid only in a script of this kind."""
INSTEAD: Mapping[Kind, str] = {
    "flow": "play a flow with devhost flow",
    "strategy": "a flow has models by node, and its settings stand in its own file",
}


def read_script_file(file: Path, kind: Kind) -> ScriptFile:
    """Read a script file. Raises ScriptError for a key that a script of this kind does not have."""
    with worded(lambda why: ScriptError(f"{file}: {why}")):
        read = ScriptFile.model_validate(_yaml(file), context=file.parent)
    other: Kind = "flow" if kind == "strategy" else "strategy"
    places = {"": read, **{f"then[{number}].": said for number, said in enumerate(read.then)}}
    for place, written in places.items():
        for key in sorted(written.model_fields_set & ONLY[other]):
            raise ScriptError(f"{file}: {place}{key}: only the script of a {other} has this key: {INSTEAD[other]}")
    return read


def _yaml(file: Path) -> object:
    try:
        return load_yaml(file)
    except DeclarationError as error:
        raise ScriptError(str(error)) from error


def names_flow(file: Path) -> bool:
    """Return whether a script is for a flow."""
    return "flow" in load_yaml(file)


def read_files(file: Path, kind: Kind) -> tuple[ScriptFile, ...]:
    """Read a script after the scripts that it extends. Each script overrides those before it."""
    files: dict[Path, ScriptFile] = {}
    following: Path | None = file
    while following is not None:
        read = files[real_path(following)] = read_script_file(following, kind)
        if read.extends is None:
            following = None
        else:
            following = following.parent / read.extends
        if following is not None and real_path(following) in files:
            raise ScriptError(f"{file}: extends: {following} leads back to itself")
    return tuple(reversed(files.values()))


def _refuse_incomplete(file: Path, files: Sequence[ScriptFile], *, asks: bool) -> None:
    """Raise ScriptError if a strategy's script is incomplete.

    `asks` means that it needs a question, or turns for any question.
    """
    parts = [part for each in files for part in each.parts]
    answers_any = any(part.otherwise for part in parts)
    if asks and not answers_any and not any("query" in each.model_fields_set for each in files):
        raise ScriptError(f"{file}: query: Field required")
    if not answers_any and not any(part.turns for part in parts) and not any(each.model.plugin for each in files):
        raise ScriptError(f"{file}: turns: Field required")
    for part in parts:
        for number, said in enumerate(part.then):
            for key in ("query", "turns"):
                if key not in said.model_fields_set:
                    raise ScriptError(f"{file}: then[{number}].{key}: Field required")


# A script for one strategy, or for a flow.

SHARED = ScriptFile.model_fields.keys() - PartScript.model_fields.keys() - {"extends", "variables", "variants"}
"""Fields that apply to every strategy."""
CONVERSATION = frozenset({"turns", "then", "otherwise"})


class Script(ScriptFile):
    """A script merged with the scripts that it extends. It has the turns for one strategy, if `fits` is true."""

    place: str = WRITTEN_HERE
    """The file as it is shown to the user, relative to the current folder if possible."""
    first_strategy: str | None = None
    """The strategy that is run if none is named."""
    written_for: tuple[str, ...] = ()
    """All strategies that the script has turns for; empty for any strategy."""

    @classmethod
    def read(cls, file: Path, strategy: str | None = None, *, asks: bool = True) -> Self:
        """Read the script for a strategy, by default for the first one that the file names.

        `asks` means that the script needs a question.
        """
        with about("script"):
            files = read_files(file, "strategy")
            _refuse_incomplete(file, files, asks=asks)
        return cls.model_construct(**chosen(files, strategy), place=_place(file))

    @classmethod
    def of_flow(cls, file: Path) -> Self:
        with about("script"):
            files = read_files(file, "flow")
        fields = chosen(files, None)
        del fields["turns"]  # a node without turns in models is a mistake
        return cls.model_construct(**fields, place=_place(file))

    @classmethod
    def of(cls, data: object, strategy: str | None = None, folder: Path | None = None) -> Self:
        """Make a script from data in the form of a script file.

        Files are in `folder`, by default the current folder.
        """
        with worded(ScriptError):
            read = ScriptFile.model_validate(data, context=folder)
        return cls.model_construct(**chosen([read], strategy))

    @property
    def fits(self) -> bool:
        return bool(self.turns or (self.otherwise and not self.written_for))

    @property
    def said(self) -> tuple[TurnScript, ...]:
        """What the user says, in order."""
        return (self, *self.then)

    @property
    def questions(self) -> tuple[str, ...]:
        """The questions that the scripted model has answers for."""
        return tuple(dict.fromkeys(each.query for each in self.said))

    def turn_for(self, question: str, asked: int = 0, number: int | None = None) -> TurnScript:
        """Return the turn with this question, or else with this number, or else a turn made of `otherwise`.

        `asked` says how many times the question was asked before. It selects one of several turns with the same
        question, because the user may say yes twice. `number` is the turn in a conversation with a flow, from 1.
        """
        written = [turn for turn in self.said if gist(turn.query) == gist(question)]
        if written:
            return written[min(asked, len(written) - 1)]
        if number is not None:
            return self.said[min(number, len(self.said)) - 1]
        return TurnScript.model_construct(query=question, turns=self.otherwise or ())

    def knows(self, query: str) -> bool:
        return gist(query) in map(gist, self.questions)

    def begins_with(self, query: str) -> bool:
        """Return whether the query is the script's own question."""
        return gist(query) == gist(self.query)

    def as_model(self, query: str | None = None, asked: int = 0) -> ScriptedModel:
        """Return the model for a strategy. `asked` says how many times this question was asked before."""
        question = self.query if query is None else query
        said = self.turn_for(question, asked).model_copy(update={"query": question})
        return ScriptedModels(self, said)(agent_node(""))


UNWRITTEN = Script(place="")
"""A placeholder where there is no script."""


def chosen(files: Sequence[ScriptFile], strategy: str | None) -> dict[str, Any]:
    """Return the fields of a `Script`, by default for the first strategy.

    Later files and parts override earlier ones.
    """
    first = next((file.strategy[0] for file in reversed(files) if file.strategy), None)
    given: dict[str, Any] = {"params": {}, "variables": {}, "turns": ()}
    for file in files:
        if file.models:
            given |= {"models": {}, "then": ()}
        given |= _given(file, SHARED)
        given["variables"] |= file.variables
        given["params"] |= file.params
        for part in file.parts:
            if not part.strategy or (strategy or first) in part.strategy:
                given["params"] |= part.params
                # A part with turns of its own has a conversation of its own, and does not inherit the later turns.
                given |= {**({"then": ()} if part.turns else {}), **_given(part, CONVERSATION)}
    return {**given, "first_strategy": first, "written_for": _written_for(files)}


def _given(part: PartScript, names: frozenset[str] | set[str]) -> dict[str, Any]:
    """Return the named fields that the file sets."""
    return {name: getattr(part, name) for name in part.model_fields_set & names}


def _written_for(files: Sequence[ScriptFile]) -> tuple[str, ...]:
    parts = [part for file in reversed(files) for part in file.parts if part.turns]
    if any(not part.strategy for part in parts):
        return ()
    return tuple(dict.fromkeys(name for part in parts for name in part.strategy))


def _place(file: Path) -> str:
    whole = real_path(file)
    here = Path.cwd()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else file)


# Who answers in a turn: a person or the script answers forms, and the script or real models answer nodes.


@dataclass(frozen=True)
class FormAnswer:
    button: str = ""
    """The button's id, or TIMEOUT. It is empty in a script's answer that has only fields."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The values by field name."""
    by: AnsweredBy = "script"


type GivenAnswers = Mapping[str, FormAnswer]
"""The answers by node id."""
type Ask = Callable[[FormAsked, FormAnswer], FormAnswer]
"""Asks a person for what is missing. Raises UnansweredFormError if the person leaves the form."""
type ModelOfNode = Callable[[FlowNode], ModelBackend]
"""Returns the model that answers this run of the node."""


@dataclass
class ScriptedModels:
    """The scripted models of one turn. A node that runs several times continues with its next turns."""

    script: Script
    said: TurnScript
    made: dict[str, ScriptedModel] = field(default_factory=dict)

    def __call__(self, node: FlowNode) -> ScriptedModel:
        turns = self.said.turns_of(node)
        if node.id not in self.made:
            place = self.script.place
            query = self.said.query
            self.made[node.id] = ScriptedModel(
                turns, query, self.script.model, place=place, standing=self._standing(query)
            )
        return self.made[node.id]

    def _standing(self, query: str) -> ScriptedTurn | None:
        """Return what a strategy's model says to a question that the script does not have."""
        if self.said.models or self.script.knows(query):
            return None
        listed = "\n".join(f"- {question}" for question in self.script.questions)
        return ScriptedTurn(
            text=f"I am a scripted model: I cannot think, I only say what is written in {self.script.place}. "
            f"There I have answers to:\n\n{listed}\n\nFor any other question, use a real model."
        )


def retrieved(knowledge: Knowledge, node: FlowNode) -> Sequence[JsonObject]:
    """Return what the node finds for any query. Raises ParameterError if the script gives nothing for the node."""
    for name in (node.id, node.title):
        if name in knowledge:
            return [segment.item(position) for position, segment in enumerate(knowledge[name], 1)]
    raise ParameterError(
        f"no segments are given for {node}: write them in the script's knowledge, under {node.id!r}; an empty list "
        "stands for nothing found"
    )
