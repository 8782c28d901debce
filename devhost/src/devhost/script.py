"""A script: what the user of a strategy or of a flow says, turn by turn, how models answer, and what is expected."""

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
"""What a script is for: one Agent node that is played alone, or a flow."""

# One turn.


def _parts(value: object) -> object:
    if isinstance(value, list | tuple):
        return value
    return [value]


def _part(value: object) -> object:
    if isinstance(value, str):
        return {"text": value}
    return value


type _ToolAnswers = Annotated[tuple[Annotated[RecordedPart, BeforeValidator(_part)], ...], BeforeValidator(_parts)]
"""A text is short for `{text: TEXT}`."""


class TurnScript(ScriptModel):
    """What the user says, and what answers: a strategy's model by `turns`, those of a flow's nodes by `models`."""

    query: Words = ""
    approval: Words | None = None
    """The answer to calls of a strategy that wait, if it is not the query."""
    files: tuple[SentFile, ...] = ()
    """What the user sends with it; paths are relative to the script's folder."""
    answers: Mapping[str, Words] = Field(default_factory=dict)
    """To the forms of Human Input nodes: by NODE the button, by NODE.FIELD a value."""
    turns: SomeTurns = ()
    """The turns of the model of a strategy, which is the only node of its turn."""
    models: Mapping[str, Turns] = Field(default_factory=dict)
    """The turns of each node's model, by the node's id or title."""
    knowledge: Knowledge = Field(default_factory=dict)
    """What each Knowledge Retrieval node finds."""
    expect: Expected | None = None
    """Without it, the turn has to succeed. What stands beside a strategy's question is for the whole conversation."""

    def turns_of(self, node: FlowNode) -> tuple[ScriptedTurn, ...]:
        """ParameterError if the script has none for the node."""
        for name in (node.id, node.title):
            if name in self.models:
                return self.models[name]
        if "turns" in self.model_fields_set:
            return self.turns
        raise ParameterError(f"the script has no turns for {node}: write them in models, under {node.id!r}")


# A file.


class PartScript(ScriptModel):
    """Turns for some strategies. `model_fields_set` says what the file sets."""

    strategy: Annotated[
        tuple[str, ...], one_sentence("should be a name, or a list of names"), BeforeValidator(listed)
    ] = ()
    """Those whose model calls the turns fit; empty for any."""
    params: _Object = Field(default_factory=dict)
    turns: SomeTurns = ()
    then: tuple[TurnScript, ...] = ()
    """The rest of the conversation, in order."""
    otherwise: Turns | None = None


class ScriptFile(TurnScript, PartScript):
    """A case of a flow if it names the flow."""

    extends: str | None = None
    """Another script, seen from this file's folder: what this one does not set is as there."""
    description: str = ""
    flow: BesideTheScript | None = None
    """The DSL file."""
    example: str | None = None
    """One whose tools are offered."""
    tools: tuple[BesideTheScript, ...] = ()
    """Folders of tool plugins."""
    mcp: Texts = ()
    """MCP servers, as `--mcp` takes them."""
    conversation_id: str = ""
    """By default a new one."""
    inputs: dict[str, Any] = Field(default_factory=dict)
    """The fields of the Start node. Dify takes those of a conversation's first message for all that follow."""
    variables: _Object = Field(default_factory=dict)
    """Variables of the workflow around a strategy, by `node.name`, to which `params` may refer."""
    panel: dict[str, dict[str, str]] = Field(default_factory=dict)
    """By tool, the parameters that the node's panel holds; a text may be a template."""
    model: ScriptedModelCard = ScriptedModelCard()
    api_fails: dict[str, Fault] = Field(default_factory=dict)
    """By tool, what Dify's API does each time it is called."""
    recorded: RecordedRequest = RecordedRequest()
    """Tools that answer from a recording."""
    limits: RunLimits = RunLimits()
    """Limits for all turns together."""
    tool_answers: Mapping[str, _ToolAnswers] = Field(default_factory=dict)
    """Answers of tools that no plugin has, by NAME or PROVIDER/NAME: one for each call, the last for all others."""
    variants: tuple[PartScript, ...] = ()

    @property
    def parts(self) -> tuple[PartScript, ...]:
        """The later ones go before the earlier ones."""
        return (self, *self.variants)


ONLY: Mapping[Kind, frozenset[str]] = {
    "flow": frozenset({"flow", "inputs", "answers", "models", "knowledge", "tool_answers"}),
    "strategy": frozenset(
        {"strategy", "params", "turns", "otherwise", "approval", "variables", "panel", "api_fails", "variants"}
    ),
}
"""Keys that only a script of this kind has."""
INSTEAD: Mapping[Kind, str] = {
    "flow": "play a flow with devhost flow",
    "strategy": "a flow has models by node, and its settings stand in its own file",
}


def read_script_file(file: Path, kind: Kind) -> ScriptFile:
    """ScriptError for a key that a script of this kind does not have."""
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
    """Whether a script is of a flow."""
    return "flow" in load_yaml(file)


def read_files(file: Path, kind: Kind) -> tuple[ScriptFile, ...]:
    """The script behind those that it extends, of which each goes before the one in front of it."""
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
    """ScriptError for what a strategy's script needs. `asks`: it needs a question, or turns for any question."""
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
"""What holds for every strategy."""
CONVERSATION = frozenset({"turns", "then", "otherwise"})


class Script(ScriptFile):
    """A file behind those that it extends, with the turns for one strategy, or with none: then `fits` is False."""

    place: str = WRITTEN_HERE
    """The file for people, below the current folder if it can be."""
    first_strategy: str | None = None
    """The strategy that is run if none is named."""
    written_for: tuple[str, ...] = ()
    """All strategies that there are turns for; empty for any."""

    @classmethod
    def read(cls, file: Path, strategy: str | None = None, *, asks: bool = True) -> Self:
        """The script for a strategy, by default for the first one that the file names. `asks`: it needs a question."""
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
        """From plain data in the form of a script file; `folder` is where its files are, by default the current one."""
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
        """What the scripted model has answers for."""
        return tuple(dict.fromkeys(each.query for each in self.said))

    def turn_for(self, question: str, asked: int = 0, number: int | None = None) -> TurnScript:
        """The turn that says this; of several the one for this time. Else the turn with this number, or any other's.

        `asked`: how often the question was asked before, because the user may say yes twice. `number`: of the turn in
        the conversation with a flow, from 1.
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
        """Whether the query is the script's own question."""
        return gist(query) == gist(self.query)

    def as_model(self, query: str | None = None, asked: int = 0) -> ScriptedModel:
        """What answers a strategy. `asked`: how often the conversation had this question before."""
        question = self.query if query is None else query
        said = self.turn_for(question, asked).model_copy(update={"query": question})
        return ScriptedModels(self, said)(agent_node(""))


UNWRITTEN = Script(place="")
"""In place of a script where there is none."""


def chosen(files: Sequence[ScriptFile], strategy: str | None) -> dict[str, Any]:
    """The fields of a Script, by default for the first strategy. What stands later goes before what stands earlier."""
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
                # With turns of its own, a part has a conversation of its own: what follows in another is not inherited.
                given |= {**({"then": ()} if part.turns else {}), **_given(part, CONVERSATION)}
    return {**given, "first_strategy": first, "written_for": _written_for(files)}


def _given(part: PartScript, names: frozenset[str] | set[str]) -> dict[str, Any]:
    """Those of its fields that the file sets."""
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


# What answers in a turn: a person or the script the forms, the script or real models the nodes.


@dataclass(frozen=True)
class FormAnswer:
    button: str = ""
    """Its id, or TIMEOUT; empty in an answer of a script that has only fields."""
    values: Mapping[str, str] = field(default_factory=dict)
    """By the field's name."""
    by: AnsweredBy = "script"


type GivenAnswers = Mapping[str, FormAnswer]
"""By the node's id."""
type Ask = Callable[[FormAsked, FormAnswer], FormAnswer]
"""Asks a person for what is not given; UnansweredFormError if the person leaves the form."""
type ModelOfNode = Callable[[FlowNode], ModelBackend]
"""The model that answers this run of the node."""


@dataclass
class ScriptedModels:
    """The models of one turn: a node that runs several times in it goes on in its turns."""

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
        """What a strategy's model says to a question that the script does not have."""
        if self.said.models or self.script.knows(query):
            return None
        listed = "\n".join(f"- {question}" for question in self.script.questions)
        return ScriptedTurn(
            text=f"I am a scripted model: I cannot think, I only say what is written in {self.script.place}. "
            f"There I have answers to:\n\n{listed}\n\nFor any other question, use a real model."
        )


def retrieved(knowledge: Knowledge, node: FlowNode) -> Sequence[JsonObject]:
    """What the node finds, whatever is asked; ParameterError if nothing is given for it."""
    for name in (node.id, node.title):
        if name in knowledge:
            return [segment.item(position) for position, segment in enumerate(knowledge[name], 1)]
    raise ParameterError(
        f"no segments are given for {node}: write them in the script's knowledge, under {node.id!r}; an empty list "
        "stands for nothing found"
    )
