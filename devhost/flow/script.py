"""A flow's script: what a user says, turn by turn, and how the scripted models of the flow's nodes answer.

In: a YAML file, whose keys are the fields of `FlowScript`. Out: a `FlowScript`, and a `ModelOfNode` for each turn.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError

from devhost.errors import DeclarationError, ParameterError, ScriptError
from devhost.flow.document import FlowNode
from devhost.flow.expectations.expected import FlowExpected
from devhost.flow.knowledge import Knowledge
from devhost.models.scripted.file import ScriptedModelCard, mistakes
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.recorded import BesideTheScript
from devhost.models.scripted.script import gist
from devhost.models.scripted.turn import Scripted, SomeTurns, Words
from devhost.text.yaml_file import load_yaml


class TurnScript(Scripted):
    """One turn: what the user says, and what the models answer."""

    query: str = ""
    files: tuple[BesideTheScript, ...] = ()
    """What the user sends with it; paths are relative to the script's folder."""
    answers: Mapping[str, Words] = Field(default_factory=dict)
    """To the forms of Human Input nodes: by NODE the button, by NODE.FIELD a value."""
    models: Mapping[str, SomeTurns] = Field(default_factory=dict)
    """The turns of each node's model, by the node's id or title."""
    knowledge: Knowledge = Field(default_factory=dict)
    """What each Knowledge Retrieval node finds."""
    expect: FlowExpected | None = None
    """Without it, the turn has to succeed."""


class FlowScript(TurnScript):
    """A case if it names its flow."""

    description: str = ""
    flow: BesideTheScript | None = None
    """The DSL file."""
    example: str | None = None
    """One whose tools the flow gets."""
    tools: tuple[BesideTheScript, ...] = ()
    """Folders of tool plugins."""
    inputs: dict[str, Any] = Field(default_factory=dict)
    """The fields of the Start node. Dify takes those of a conversation's first message for all that follow."""
    model: ScriptedModelCard = ScriptedModelCard()
    then: tuple[TurnScript, ...] = ()
    """The rest of the conversation, in order."""

    @property
    def turns(self) -> tuple[TurnScript, ...]:
        return (self, *self.then)

    def turn_for(self, question: str, number: int, asked: int) -> TurnScript:
        """The turn that says this; of several the one for this time. If none does, the turn with this number.

        `number`: of the turn in the conversation, from 1. `asked`: how often the question was asked before.
        """
        written = [turn for turn in self.turns if turn.query and gist(turn.query) == gist(question)]
        if written:
            return written[min(asked, len(written) - 1)]
        return self.turns[min(number, len(self.turns)) - 1]

    @classmethod
    def read(cls, file: Path) -> Self:
        try:
            return cls.model_validate(load_yaml(file), context=file.parent)
        except DeclarationError as error:
            raise ScriptError(str(error)) from error
        except ValidationError as error:
            raise ScriptError(f"{file}: {mistakes(error)}") from error


class ScriptedModels:
    """The models of one turn: a node that runs several times in it goes on in its turns."""

    def __init__(self, turn: TurnScript, card: ScriptedModelCard, place: str) -> None:
        self._turn = turn
        self._card = card
        self._place = place
        self._models: dict[str, ScriptedModel] = {}

    def __call__(self, node: FlowNode, question: str) -> ScriptedModel:
        for name in (node.id, node.title):
            if name in self._turn.models:
                made = ScriptedModel(self._turn.models[name], question, self._card, place=self._place)
                return self._models.setdefault(node.id, made)
        raise ParameterError(f"the script has no turns for {node}: write them in models, under {node.id!r}")
