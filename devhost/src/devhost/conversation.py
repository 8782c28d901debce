"""A conversation with a strategy or a flow: the input of each turn, and what it passes on to the next turn."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from devhost.case import ANY_QUESTION, Case, Memory, PlayContext, Show
from devhost.files import LocalFile, local_files
from devhost.host.host import ToolHost
from devhost.models.backend import ModelBackend
from devhost.models.scripted.script import gist
from devhost.models.spending import PriceLimit, limited
from devhost.process.session import Stop, Watcher
from devhost.protocol.wire import JsonObject
from devhost.script import Ask, ModelOfNode, ScriptedModels, TurnScript
from devhost.text import Secrets
from devhost.trace.flow import FlowEvent, FlowNode
from devhost.trace.played import PlayedTurn


@runtime_checkable
class CountingModel(ModelBackend, Protocol):
    """A model that counts its usage."""

    @property
    def afterwards(self) -> str:
        """A sentence to show after the run. It may be empty."""
        ...

    def spent(self) -> JsonObject | None:
        """Return the usage that a provider counted."""
        ...


@dataclass
class _AskedModels:
    """The models of a turn. Models that were called are kept by node."""

    choose: ModelOfNode
    limit: PriceLimit | None = None
    asked: dict[str, ModelBackend] = field(default_factory=dict)

    def __call__(self, node: FlowNode) -> ModelBackend:
        model = self.choose(node)
        self.asked[node.id] = model
        return limited(model, self.limit)

    @property
    def counting(self) -> Iterator[CountingModel]:
        return (model for model in self.asked.values() if isinstance(model, CountingModel))


def _unseen(_event: FlowEvent, _turn: PlayedTurn) -> None:
    """Show nothing."""


@dataclass
class Conversation:
    case: Case
    show: Show = _unseen
    secrets: Secrets | None = None
    """Secrets that are replaced in everything that is shown or kept of a flow; by default the flow's own secrets."""
    ask: Ask | None = None
    """Asks a person to fill in the forms for which no answer was given."""
    trace: Watcher | None = None
    """The trace for a flow's events. A strategy's messages are written by its host."""
    id: str = ""
    """The conversation's id; by default the script's, or a new id."""
    added: tuple[LocalFile, ...] = field(default=(), init=False)
    """Files that are sent with the next question."""
    models: _AskedModels = field(init=False, repr=False)
    """The models of the last turn."""

    def __post_init__(self) -> None:
        self.id = self.id or self.case.script.conversation_id or str(uuid.uuid4())
        self.memory = Memory(self.id)
        self._limit = self.case.price_limit
        self.case.api_fails  # noqa: B018 - raises for a tool that is not offered

    def afresh(self) -> Self:
        """Return a new conversation. Only the files that were attached to the next question are carried over."""
        begun = replace(self, id=str(uuid.uuid4()))
        begun.added = self.added
        return begun

    @property
    def variables(self) -> JsonObject:
        hidden = self.secrets or Secrets(self.case.played.secrets)
        return hidden.masked(dict(self.case.played.variables(self.memory)))

    def attach(self, path: Path) -> LocalFile:
        """Attach a file to the next question.

        Raises ParameterError for a file that Dify or the strategy does not accept.
        """
        added = local_files([*(file.path for file in self.added), path], self.case.limits)
        said = TurnScript(query=ANY_QUESTION, files=tuple(file.path for file in added))
        self.case.played.check(self.case, [said])
        self.added = added
        return added[-1]

    def typed(self, question: str) -> TurnScript:
        return self.case.typed(question, self.memory)

    def files_of(self, said: TurnScript) -> list[JsonObject]:
        """Describe the files that are sent with a turn. They have no URL yet."""
        return [file.described("") for file in (*local_files(said.files, self.case.limits), *self.added)]

    def play(self, said: TurnScript, host: ToolHost | None, stop: Stop | None = None) -> PlayedTurn:
        files = (*local_files(said.files, self.case.limits), *self.added)
        self.added = ()
        self.memory.asked[gist(said.query)] += 1
        played = self.case.played
        if self.memory.tools is None:
            self.memory.tools = played.tools(self.case, host)
        self.models = _AskedModels(self.case.models or ScriptedModels(self.case.script, said), self._limit)
        hidden = self.secrets or Secrets(played.secrets)
        around = PlayContext(self.case, host, self.models, self.show, hidden, self.ask, stop, self.trace)
        return played.play(said, files, self.memory, around)
