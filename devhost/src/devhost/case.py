"""A case: what to play, with its script, tools and models. A case is read before anything starts."""

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
"""A placeholder for a question that is not typed yet, used while the rest of a turn is checked."""


@dataclass
class Memory:
    """What a conversation keeps from turn to turn."""

    id: str
    past: list[PastTurn] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    """How many times each question was asked, by its gist."""
    variables: Mapping[str, object] = field(default_factory=dict)
    """Conversation variables that a turn has set. A strategy's state is one of them."""
    waiting: tuple[object, ...] = ()
    """The calls of a strategy that wait for the user's answer, as the run output them."""
    note: str = ""
    """A note for the user about the state after the last turn."""
    tools: Sequence[Tool] | None = None
    """The tools in addition to the host's. All turns use the same tools and share their recorded answers."""

    def times_asked(self, question: str) -> int:
        """Return how many times the question was asked before. Capitals and final punctuation are ignored."""
        return self.asked[gist(question)]


@dataclass(frozen=True)
class PlayContext:
    """The context in which a turn is played."""

    case: "Case"
    host: ToolHost | None
    models: ModelOfNode
    show: Show
    secrets: Secrets
    """Secrets that are replaced in everything that is shown or kept of a flow."""
    ask: Ask | None = None
    """Asks a person to fill in the forms for which no answer was given."""
    stop: Stop | None = None
    trace: Watcher | None = None


class Played(ABC):
    """What is played: a strategy's Agent node alone, or a flow. A turn of either consists of nodes."""

    kind: Kind
    secrets: Sequence[str] = ()
    """Values that no page, trace or terminal shows."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def node(self, name: str) -> FlowNode:
        """Return the node with this id or title. Raises FlowFileError if there is none."""

    @property
    @abstractmethod
    def asking(self) -> Sequence[FlowNode]:
        """The nodes that call a model."""

    @property
    def takes_a_question(self) -> bool:
        return True

    @property
    def converses(self) -> bool:
        """Whether more than one turn can be played. A single node of a flow has one turn, with its own question."""
        return True

    @property
    def own_question(self) -> str:
        return ""

    @property
    def notices(self) -> Sequence[str]:
        return ()

    @abstractmethod
    def check(self, case: "Case", turns: Sequence[TurnScript]) -> None:
        """Check the turns before anything starts. Raises ParameterError or ScriptError for what a turn cannot have."""

    @abstractmethod
    def tools(self, case: "Case", host: ToolHost | None) -> Sequence[Tool]:
        """Return the tools in addition to the host's."""

    @abstractmethod
    def play(self, said: TurnScript, files: Sequence[LocalFile], memory: Memory, around: PlayContext) -> PlayedTurn:
        """Play a turn, and store in the memory what the next turn needs."""

    @abstractmethod
    def variables(self, memory: Memory) -> Mapping[str, object]:
        """Return the conversation variables with their current values."""

    @abstractmethod
    def check_tools(self, case: "Case", host: ToolHost) -> None:
        """Raise FlowFileError if a tool is missing.

        The tools of MCP servers are known only after they are connected.
        """

    @abstractmethod
    def facts(self, case: "Case") -> JsonObject:
        """Return the facts for the first line of a trace."""


@dataclass(frozen=True)
class Case:
    script: Script
    """The script, or `UNWRITTEN` if there is none. Without a script, only a real model can answer."""
    played: Played
    name: str = ""
    """The name of the example; empty without an example."""
    plugins: tuple[PluginDeclaration, ...] = ()
    """The plugin of the strategy, or the plugins of a flow's agents."""
    setups: tuple[ToolSetup, ...] = ()
    """The tool plugins with their settings."""
    servers: tuple[McpServer, ...] = ()
    limits: HostLimits = field(default_factory=HostLimits)
    files: tuple[Path, ...] = ()
    """Files that are sent with the first question, instead of the script's files."""
    models: ModelOfNode | None = None
    """The models that answer, or None if the script answers."""
    remarks: tuple[str, ...] = ()
    """What the user should know before the case starts."""

    @property
    def has_script(self) -> bool:
        return self.script is not UNWRITTEN

    @property
    def secrets(self) -> list[str]:
        of_tools = [value for setup in self.setups for value in setup.secrets]
        return [*of_tools, *mcp.secrets_of(self.servers), *self.played.secrets]

    @cached_property
    def model(self) -> ModelDescription:
        """The model of the first node that calls one.

        It is the scripted model if the script answers or no node calls a model.
        """
        if self.models is None or not self.played.asking:
            return ScriptedModel((), card=self.script.model, place=self.script.place).description
        return self.models(self.played.asking[0]).description

    @property
    def price_limit(self) -> PriceLimit | None:
        """The price limit of one run with all its turns. The command line's limit overrides the script's."""
        most = self.limits.price or self.script.limits.price
        if most is None:
            return None
        return PriceLimit(most)

    def refuse_unpriced(self, *, always: bool = False) -> None:
        """Raise ParameterError if there is a price limit and the price of a node's model is unknown.

        `always` means that an evaluation sets the limit.
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
        """The faults of Dify's API by tool. Raises ParameterError for a tool that is not offered."""
        faults = self.script.api_fails
        names = {offered.name for setup in self.setups for offered in setup.tools}
        names |= set(self.recorded_names)
        for name in () if self.servers else faults:  # the tools of MCP servers are not known yet
            refuse_unknown("tool for api_fails", name, sorted(names))
        return faults

    @property
    def notices(self) -> tuple[str, ...]:
        of_tools = (notice for setup in self.setups for notice in setup.notices)
        return tuple(filter(None, (*self.remarks, *self.played.notices, *of_tools)))

    def turns(self, query: str | None = None, *, alone: bool = False) -> list[TurnScript]:
        """Return what the user says: the script's question or another one, and the script's later turns.

        The later turns were written for the script's answers, so they follow only the script's question and its model.
        `alone` leaves them out.
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
        if not is_asked or self.played.kind == "strategy":  # its expectation is for the whole conversation
            changed["expect"] = None
        first = script.turn_for(question, number=None if self.played.kind == "strategy" else 1)
        goes_on = is_asked and not alone and self.models is None
        turns = [first.model_copy(update=changed), *(script.then if goes_on else ())]
        with about("files"):
            for turn in turns:
                local_files(turn.files, self.limits)  # mistakes are reported before anything starts
        self.played.check(self, turns)
        return turns

    def expected_of(self, turns: Sequence[TurnScript]) -> Expected | None:
        """Return what a strategy's script expects of its conversation, if these are all of its turns."""
        is_whole = self.script.begins_with(turns[0].query) and len(turns) == len(self.script.said)
        if self.played.kind == "flow" or not is_whole:
            return None
        return self.script.expect

    @property
    def first_files(self) -> tuple[Path, ...]:
        """The files for the first message. A strategy's script sends its files with any first message."""
        if self.files or self.played.kind == "flow":
            return self.files
        return self.script.files

    def typed(self, question: str, memory: Memory) -> TurnScript:
        """Return the script's turn for a message that a person types.

        The first message is sent with the given files.
        """
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
        """Start the host, a `Host` if there are strategies.

        Files and plugin storage are kept beside the trace, if any.
        """
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
        """Return a `TraceWriter`, or without a file a watcher that does nothing.

        The writer hides credentials and the model's key. `turn` is the first turn, if it is known.
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
    """Raise ScriptError if a turn's models, knowledge or expectations name an unknown node."""
    for number, said in enumerate(case.script.said, start=1):
        named = [*(("models", name) for name in said.models), *(("knowledge", name) for name in said.knowledge)]
        if said.expect is not None:
            named += ((f"expect: {key}", name) for key, name in said.expect.named())
        for key, name in named:
            try:
                case.played.node(name)
            except FlowFileError as error:
                raise ScriptError(f"{case.script.place}: turn {number}: {key}: {error}") from error
