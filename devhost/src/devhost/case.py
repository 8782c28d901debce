"""A case: what is played, by which script, with which tools and models. It is read before anything starts."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from devhost.errors import FlowFileError, ParameterError, ScriptError, about
from devhost.expected import Expected
from devhost.files import LocalFile, local_files
from devhost.host.host import Host, ToolHost, start_tools
from devhost.hosting import HostOptions, secrets_of, started, trace_written
from devhost.limits import HostLimits
from devhost.models.backend import ModelDescription
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.script import gist
from devhost.models.spending import PriceLimit, refuse_unpriced
from devhost.node.parameters import PastTurn
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.session import Stop, Watcher
from devhost.protocol.failures import ApiFault
from devhost.protocol.wire import JsonObject
from devhost.script import UNWRITTEN, Ask, Kind, ModelOfNode, Script, ScriptedModels, TurnScript
from devhost.text import Secrets
from devhost.tools import mcp
from devhost.tools.mcp import McpServer
from devhost.tools.setup import ToolSetup
from devhost.tools.tool import Tool
from devhost.trace.flow import FlowEvent, FlowNode
from devhost.trace.played import PlayedTurn
from devhost.words import refuse_unknown

type Show = Callable[[FlowEvent, PlayedTurn], None]
ANY_QUESTION = "?"
"""In place of a question that is not typed yet, while the rest of a turn is checked."""


@dataclass
class Memory:
    """What a conversation keeps from turn to turn."""

    id: str
    past: list[PastTurn] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    """By the gist of a question, how often it was asked."""
    variables: Mapping[str, object] = field(default_factory=dict)
    """Conversation variables that a turn has set; a strategy's state is one."""
    waiting: tuple[object, ...] = ()
    """The calls of a strategy that wait for the user's answer, as the run put them out."""
    note: str = ""
    """What the person has to know of the state after the last turn."""
    tools: Sequence[Tool] | None = None
    """Those beside the host's; the same in all turns, which share recorded answers."""

    def times_asked(self, question: str) -> int:
        """How often it was asked before; capitals and the last full stop do not count."""
        return self.asked[gist(question)]


@dataclass(frozen=True)
class PlayContext:
    """What a turn is played with."""

    case: "Case"
    host: ToolHost | None
    models: ModelOfNode
    show: Show
    secrets: Secrets
    """What is replaced in all that is shown and kept of a flow."""
    ask: Ask | None = None
    """For forms without a given answer."""
    stop: Stop | None = None
    trace: Watcher | None = None


class Played(ABC):
    """What is played: a strategy's Agent node alone, or a flow. A turn of either is nodes."""

    kind: Kind
    secrets: Sequence[str] = ()
    """Values that no page, trace or terminal shows."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def node(self, name: str) -> FlowNode:
        """By id or title; FlowFileError if there is none."""

    @property
    @abstractmethod
    def asking(self) -> Sequence[FlowNode]:
        """The nodes that ask a model."""

    @property
    def takes_a_question(self) -> bool:
        return True

    @property
    def converses(self) -> bool:
        """Whether more than one turn can be played; a node alone has one, with a question of its own."""
        return True

    @property
    def own_question(self) -> str:
        return ""

    @property
    def notices(self) -> Sequence[str]:
        return ()

    @abstractmethod
    def check(self, case: "Case", turns: Sequence[TurnScript]) -> None:
        """ParameterError or ScriptError for what a turn cannot have, before anything starts."""

    @abstractmethod
    def tools(self, case: "Case", host: ToolHost | None) -> Sequence[Tool]:
        """Those beside the host's."""

    @abstractmethod
    def play(self, said: TurnScript, files: Sequence[LocalFile], memory: Memory, around: PlayContext) -> PlayedTurn:
        """Plays a turn, and leaves in the memory what the next one needs."""

    @abstractmethod
    def variables(self, memory: Memory) -> Mapping[str, object]:
        """Those of the conversation, with the values that they have now."""

    @abstractmethod
    def check_tools(self, case: "Case", host: ToolHost) -> None:
        """FlowFileError for a tool that is missing: what MCP servers have is known when they are connected."""

    @abstractmethod
    def facts(self, case: "Case") -> JsonObject:
        """The facts for the first line of a trace."""


@dataclass(frozen=True)
class Case:
    script: Script
    """`UNWRITTEN` if there is none: then only a real model can answer."""
    played: Played
    name: str = ""
    """The example's; empty without one."""
    plugins: tuple[PluginDeclaration, ...] = ()
    """The plugin of the strategy, or those of a flow's agents."""
    setups: tuple[ToolSetup, ...] = ()
    """The tool plugins with their settings."""
    servers: tuple[McpServer, ...] = ()
    limits: HostLimits = field(default_factory=HostLimits)
    files: tuple[Path, ...] = ()
    """Go with the first question, in place of the script's."""
    models: ModelOfNode | None = None
    """None if the script answers."""
    remarks: tuple[str, ...] = ()
    """What a person should know before it starts."""

    @property
    def has_script(self) -> bool:
        return self.script is not UNWRITTEN

    @property
    def secrets(self) -> list[str]:
        of_tools = [value for setup in self.setups for value in setup.secrets]
        return [*of_tools, *mcp.secrets_of(self.servers), *self.played.secrets]

    @cached_property
    def model(self) -> ModelDescription:
        """That of the first node that asks one; the scripted model if none does."""
        if self.models is None or not self.played.asking:
            return ScriptedModel((), card=self.script.model, place=self.script.place).description
        return self.models(self.played.asking[0]).description

    @property
    def price_limit(self) -> PriceLimit | None:
        """For one run with all its turns; the command line's goes before the script's."""
        most = self.limits.price or self.script.limits.price
        if most is None:
            return None
        return PriceLimit(most)

    def refuse_unpriced(self, *, always: bool = False) -> None:
        """ParameterError if there is a limit of price, and that of the model of one of the nodes is not known.

        `always`: the limit is that of an evaluation.
        """
        if self.price_limit is None and not always:
            return
        models = self.models or ScriptedModels(self.script, self.script)
        for node in self.played.asking:
            named = {node.id, node.title} & self.script.models.keys()
            if self.models is not None or named or self.played.kind == "strategy":
                refuse_unpriced(models(node).description)

    @property
    def recorded_names(self) -> tuple[str, ...]:
        """The names of the tools that answer from a recording."""
        return tuple(name for _, name in self.script.recorded.tool_names)

    @property
    def api_fails(self) -> Mapping[str, ApiFault]:
        """By tool; ParameterError for a tool that is not offered."""
        faults = self.script.api_fails
        names = {offered.name for setup in self.setups for offered in setup.tools}
        names |= set(self.recorded_names)
        for name in () if self.servers else faults:  # servers say what they have when they are asked
            refuse_unknown("tool for api_fails", name, sorted(names))
        return faults

    @property
    def notices(self) -> tuple[str, ...]:
        of_tools = (notice for setup in self.setups for notice in setup.notices)
        return tuple(filter(None, (*self.remarks, *self.played.notices, *of_tools)))

    def turns(self, query: str | None = None, *, alone: bool = False) -> list[TurnScript]:
        """What the user says: the script's question or another one, and what follows its question.

        What follows was written for the answers of the script. `alone`: without it.
        """
        script = self.script
        if query is not None and not self.played.takes_a_question:
            raise ParameterError(
                f"--query: {self.played.name} is a workflow and takes no question: give it --input KEY=VALUE"
            )
        if not self.played.converses:
            question = self.played.own_question or query or script.query
            return [script.model_copy(update={"query": question, "files": self.files or script.files})]
        question = script.query if query is None else query
        if self.played.takes_a_question and (not question if self.has_script else query is None):
            raise ParameterError("there is no question: give --query TEXT, or a script that has a query")
        is_asked = script.begins_with(question)
        changed: JsonObject = {"query": question, "files": self.files or script.files}
        if not is_asked or self.played.kind == "strategy":  # what it expects is for the whole conversation
            changed["expect"] = None
        first = script.turn_for(question, number=None if self.played.kind == "strategy" else 1)
        goes_on = is_asked and not alone and self.models is None
        turns = [first.model_copy(update=changed), *(script.then if goes_on else ())]
        with about("files"):
            for turn in turns:
                local_files(turn.files, self.limits)  # a mistake is told before anything starts
        self.played.check(self, turns)
        return turns

    def expected_of(self, turns: Sequence[TurnScript]) -> Expected | None:
        """What a strategy's script expects of its conversation, if these are all turns of it."""
        is_whole = self.script.begins_with(turns[0].query) and len(turns) == len(self.script.said)
        if self.played.kind == "flow" or not is_whole:
            return None
        return self.script.expect

    @property
    def first_files(self) -> tuple[Path, ...]:
        """Go with a strategy's first question, whatever it is."""
        if self.files or self.played.kind == "flow":
            return self.files
        return self.script.files

    def typed(self, question: str, memory: Memory) -> TurnScript:
        """What the script says of a message that a person types. The first one has the files that were given."""
        if self.played.kind == "strategy":
            number = None
        else:
            number = memory.asked.total() + 1
        said = self.script.turn_for(question, memory.times_asked(question), number)
        files = said.files if self.script.knows(question) else ()
        if not memory.asked:
            files = self.first_files or files
        return said.model_copy(update={"query": question, "files": files})

    # The plugins that run, and the trace.

    @contextmanager
    def host(
        self, options: HostOptions, watcher: Watcher, trace_file: Path | None = None, name: str = ""
    ) -> Iterator[ToolHost]:
        """A `Host` if there are strategies. Files and what plugins store stay beside the trace, if there is one."""
        begin: Callable[..., ToolHost] = partial(start_tools, self.setups)
        if self.plugins:
            first, *others = self.plugins
            begin = partial(Host.start, first, tools=self.setups, others=others, transport=options.transport)
        begin = partial(begin, servers=self.servers, watcher=watcher, storage=options.storage_beside(trace_file))
        with started(begin, name or self.name or "run", options, trace_file) as host:
            if self.servers:
                self.played.check_tools(self, host)
            yield host

    def traced(
        self, file: Path | None, options: HostOptions, command: str, turn: TurnScript | None = None
    ) -> AbstractContextManager[Watcher]:
        """A `TraceWriter`; without a file, a watcher that does nothing. It hides credentials, and the model's key.

        `turn`: the first one, as far as it is known.
        """
        facts: JsonObject = {
            "command": command if self.played.kind == "strategy" else "flow",
            "transport": options.transport,
            "query": None if turn is None else turn.query,
            **self.played.facts(self),
        }
        if self.played.kind == "strategy" or (self.models is None and self.played.asking):
            facts["model"] = self.model.facts
        notices = self.notices
        if self.played.kind == "strategy":
            notices = ()
        return trace_written(file, secrets_of((), others=self.secrets), facts, notices)


def refuse_unknown_nodes(case: Case) -> None:
    """ScriptError if a turn names a node that there is not, in its models, knowledge or expectations."""
    for number, said in enumerate(case.script.said, start=1):
        named = [*(("models", name) for name in said.models), *(("knowledge", name) for name in said.knowledge)]
        if said.expect is not None:
            named += ((f"expect: {key}", name) for key, name in said.expect.named())
        for key, name in named:
            try:
                case.played.node(name)
            except FlowFileError as error:
                raise ScriptError(f"{case.script.place}: turn {number}: {key}: {error}") from error
