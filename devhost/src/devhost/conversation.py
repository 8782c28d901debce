"""A conversation with a strategy or a flow: what each turn is given, and what it leaves to the next."""

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
    @property
    def afterwards(self) -> str:
        """A sentence after the run; often empty."""
        ...

    def spent(self) -> JsonObject | None:
        """The tokens that a provider counted."""
        ...


@dataclass
class _AskedModels:
    """The models of a turn: those that were asked are kept, by node."""

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
    """Shows nothing."""


@dataclass
class Conversation:
    case: Case
    show: Show = _unseen
    secrets: Secrets | None = None
    """What is replaced in all that is shown and kept of a flow; by default the flow's own secrets."""
    ask: Ask | None = None
    """For forms without a given answer."""
    trace: Watcher | None = None
    """Where a flow's events are written; a strategy's messages are written by its host."""
    id: str = ""
    """By default the script's, or a new one."""
    added: tuple[LocalFile, ...] = field(default=(), init=False)
    """The files that go with the next question."""
    models: _AskedModels = field(init=False, repr=False)
    """The models of the last turn."""

    def __post_init__(self) -> None:
        self.id = self.id or self.case.script.conversation_id or str(uuid.uuid4())
        self.memory = Memory(self.id)
        self._limit = self.case.price_limit
        self.case.api_fails  # noqa: B018 - raises for a tool that is not offered

    def afresh(self) -> Self:
        """A new conversation: of what is kept, only the files go on, which were told to go with the next question."""
        begun = replace(self, id=str(uuid.uuid4()))
        begun.added = self.added
        return begun

    @property
    def variables(self) -> JsonObject:
        hidden = self.secrets or Secrets(self.case.played.secrets)
        return hidden.masked(dict(self.case.played.variables(self.memory)))

    def attach(self, path: Path) -> LocalFile:
        """To the next question; ParameterError for what Dify or the strategy does not take."""
        added = local_files([*(file.path for file in self.added), path], self.case.limits)
        said = TurnScript(query=ANY_QUESTION, files=tuple(file.path for file in added))
        self.case.played.check(self.case, [said])
        self.added = added
        return added[-1]

    def typed(self, question: str) -> TurnScript:
        return self.case.typed(question, self.memory)

    def files_of(self, said: TurnScript) -> list[JsonObject]:
        """Those that go with it, without a URL."""
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
