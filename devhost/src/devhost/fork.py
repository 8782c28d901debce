"""`devhost fork` and its options: repeats a traced run, with changes that apply after a given round."""

from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import click

from devhost.alone import CONVERSATION, AgentAlone
from devhost.case import Case
from devhost.conversation import CountingModel
from devhost.errors import HostError, ParameterError, TraceError, about, naming
from devhost.files import local_files
from devhost.host.host import Host, OnMessage, ToolHost, find_strategy
from devhost.hosting import ModelOptions, credential_option
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend, ModelCallError, ModelRequest
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.script import RecordedRequest
from devhost.node.outputs.run import Run
from devhost.options import FILE, PATH, argument, json_option, option
from devhost.plugin.declaration import PluginDeclaration, nearest_strategy_plugin
from devhost.protocol.wire import JsonObject
from devhost.reach import allow_files_option, allow_http_option
from devhost.recording import turns as parts
from devhost.recording.case import conversation_of, script_of
from devhost.recording.turns import KeptFiles
from devhost.scenario import Example, examples_of, read_tool_setups, typed_settings
from devhost.script import Script
from devhost.tools.recorded import RecordedAnswers, RecordedTool, recorded_tools
from devhost.tools.setup import ToolSetup
from devhost.trace.lines import Trace, read_trace
from devhost.trace.runs import Call, TracedRun, written_calls
from devhost.trace.turns import TracedTurn, turn_with
from devhost.words import counted

# The run to fork, and its rounds. Each round is a turn of the model, with the attempts that failed before it.


@dataclass(frozen=True)
class ForkedRound:
    calls: tuple[Call, ...]
    """The calls of the model. The last one is the turn, unless `is_answered` is false."""

    @property
    def is_answered(self) -> bool:
        return not self.calls[-1].error and self.calls[-1].ended is not None

    @property
    def gist(self) -> str:
        """A short summary of what the model wrote."""
        last = self.calls[-1]
        if not self.is_answered:
            return f"no answer: {last.error or 'the run ended first'}"[:100]
        called = ", ".join(call.name for call in written_calls(last))
        if called:
            return f"calls {called}"
        return "answers"


def rounds_in(calls: Iterable[Call]) -> list[ForkedRound]:
    """Group the calls of one run or one node into rounds."""
    made: list[ForkedRound] = []
    for call in parts.model_calls(calls):
        tried = made.pop().calls if made and not made[-1].is_answered else ()
        made.append(ForkedRound((*tried, call)))
    return made


@dataclass(frozen=True)
class ForkOrigin:
    """The run that is forked."""

    trace: Trace
    file: Path
    run: TracedRun
    which: str = ""
    """A sentence that says which run of the trace it is, if there are several."""
    turn: int = 1
    """The position of the turn in the conversation, from 1."""

    @property
    def strategy(self) -> str:
        return turn_with(self.run, self.trace.header.strategy).strategy

    @cached_property
    def rounds(self) -> list[ForkedRound]:
        return rounds_in(self.run.calls)

    @property
    def answered(self) -> int:
        """The number of rounds that have an answer."""
        return sum(each.is_answered for each in self.rounds)


def find_origin(trace: Trace, file: Path, question: int | None, node: str | None = None) -> ForkOrigin:
    """Find an agent's run in the last conversation, by its turn, counted from 1, and its node.

    The last run is the default.
    """
    turns = conversation_of(trace, file)
    runs = {
        (number, turn.rows[execution].node.id): found[-1]
        for number, turn in enumerate(turns, start=1)
        for execution, found in turn.agents.items()
    }
    fitting = [(number, of) for number, of in runs if question in {None, number} and node in {None, of}]
    if not fitting:
        if turns[-1].is_direct and node is None:
            raise TraceError(f"--question {question}: there is no such question in {file}; it has {len(turns)}")
        there_are = naming(f"{of} in turn {number}" for number, of in runs)
        raise TraceError(f"{file} has no such run of an agent; {there_are}")
    number, of = fitting[-1]
    return ForkOrigin(trace, file, runs[number, of], _which(turns[-1], number, of, len(fitting)), number)


def _which(last: TracedTurn, number: int, node: str, fitting: int) -> str:
    """Return a sentence that says which run it is, if there are several."""
    if last.is_direct and fitting > 1:
        return f"forking the last of {fitting} questions; --question NUMBER names another one"
    if last.is_direct:
        return ""
    others = ""
    if fitting > 1:
        others = "; --question NUMBER and --node ID name another one"
    return f"forking the agent {node} in turn {number}, without the flow around it{others}"


# A fork: a run, the round after which it continues, and the changes.


@dataclass(frozen=True)
class Fork:
    origin: ForkOrigin
    at: int
    """The number of rounds that stay as recorded."""
    recorded: Script
    """The whole run as it was recorded."""
    case: Case
    """The case to play, which includes the changes."""
    played: AgentAlone
    """The Agent node of the case."""
    changed: JsonObject
    """The parameters that differ from the trace."""

    @property
    def question(self) -> str:
        """The question of the trace, or a changed one."""
        return self.case.script.query

    def play(self, host: ToolHost, model: ModelBackend, on_message: OnMessage) -> Run:
        if not isinstance(host, Host):
            raise HostError("the fork needs a strategy plugin, and none was started")
        question = self.question
        run = self.origin.run
        recorded = self.recorded.recorded
        following = self.origin.rounds[self.at :]
        if following:
            until = following[0].calls[0].began
        else:
            until = float("inf")
        past = sum(call.began < until for call in parts.tool_calls(run.calls))
        # Calls of the past are answered from the recording even if the tool may run, so that no call is made twice.
        answers = RecordedAnswers(recorded.calls[:past], once=True)
        live = [RecordedTool(tool.entity, answers, beyond=tool) for tool in host.tools]
        files = [host.server.offer(file) for file in local_files(self.case.script.files, self.case.limits)]
        return host.run(
            self.played.name,
            self.played.values(question, files),
            model=model,
            tools=[*live, *recorded_tools(recorded, instead=host.tools)],
            variables={
                **self.played.known(question, files, self.origin.turn),
                CONVERSATION: run.conversation_id or "",
            },
            history=parts.model_in(run.parameters).get("history_prompt_messages") or (),
            conversation_id=run.conversation_id,
            on_message=on_message,
        )


# The model of a fork. It repeats the recorded turns, and then passes the calls on to another model.
#
# Without another model, a call beyond the recording is an error that the plugin receives.


class ForkedModel(ScriptedModel):
    def __init__(self, fork: Fork, later: CountingModel | None) -> None:
        turns = fork.recorded.turns
        trace = fork.origin.file
        if later is not None:
            turns = turns[: sum(len(each.calls) for each in fork.origin.rounds[: fork.at])]
        super().__init__(turns, card=fork.recorded.model, place=str(trace))
        self._later = later
        if later is None:
            notice = f"the model's turns are those recorded in {trace}, no provider is called"
            self.description = replace(self.description, notice=notice)
        else:
            begins = ""
            if turns:
                begins = f"the past is recorded in {trace}, then: "
            self.description = replace(later.description, notice=f"{begins}{later.description.notice}")

    def unwritten(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        if self._later is not None:
            return self._later.invoke(request)
        raise ModelCallError(
            "InvokeBadRequestError",
            f"the recording has no turn for model call {len(self.requests)}: give --script FILE, or a real model",
        )

    @property
    def is_recorded(self) -> bool:
        """Whether every turn comes from the recording."""
        return self._later is None

    @property
    def afterwards(self) -> str:
        if self._later is None:
            return super().afterwards
        return self._later.afterwards

    def spent(self) -> JsonObject | None:
        if self._later is None:
            return None
        return self._later.spent()


@dataclass(frozen=True)
class ForkOptions:
    trace: Path = argument("TRACE", FILE)
    at: int | None = option(
        "--at ROUND",
        "How many rounds stay as recorded; 0 is none. Without it, the rounds are listed.",
        type=click.IntRange(min=0),
    )
    question: int | None = option(
        "--question NUMBER", "Which question of a conversation; by default its last one.", type=int
    )
    node: str | None = option("--node ID", "Which agent of a flow; by default the last one that ran.")
    instruction: str | None = option("--instruction TEXT", "Short for --param instruction=TEXT.")
    parameters: tuple[str, ...] = option(
        "--param KEY=VALUE...", "Change a parameter, or the question (query=TEXT); repeatable."
    )
    files: tuple[Path, ...] = option(
        "--file PATH...", "A file that goes with the question, instead of those of the trace. Repeatable."
    )
    script: Path | None = option("--script FILE", "A script of the turns that the model says after these rounds.")
    live_tools: bool = option(
        "--live-tools", "Run the tools after these rounds. Without it they answer from the recording alone."
    )
    tools: tuple[Path, ...] = option("--tools DIR...", "With --live-tools: a tool plugin, beside the trace's example.")
    credentials: tuple[str, ...] = credential_option("With --live-tools: a credential, as for run. Repeatable.")
    settings: tuple[str, ...] = option(
        "--set TOOL.PARAM=VALUE...", "With --live-tools: a parameter of the panel, as for run. Repeatable.", hidden=True
    )
    plugin: Path | None = option("--plugin DIR", "The strategy plugin; by default the nearest one.")
    http: bool = allow_http_option()
    folders: tuple[Path, ...] = allow_files_option()
    new_trace: Path | None = option("--trace FILE", "Write the trace of the new run, too.")
    page: Path | None = option("--report FILE", "Write an HTML page, too.", type=PATH)
    force: bool = option("--force", "With --report: overwrite a file that is not a page of devhost's.")
    as_json: bool = json_option()

    def origin(self) -> ForkOrigin:
        return find_origin(read_trace(self.trace), self.trace, self.question, self.node)

    @property
    def folder(self) -> Path:
        """The folder of the strategy plugin."""
        if self.plugin is None:
            return nearest_strategy_plugin()
        return self.plugin

    def read(self, origin: ForkOrigin, limits: HostLimits, tools: tuple[ToolSetup, ...] = ()) -> Fork:
        """Read the fork. `tools` are the tools that run."""
        if self.at is not None and self.at > origin.answered:
            said = f"the model answered {counted(origin.answered, 'time')}: --at 0 asks it from the beginning"
            raise TraceError(f"--at {self.at}: in this run of {self.trace}, {said}")
        kept = KeptFiles(self.trace, None)
        run = origin.run
        recorded = Script.of(script_of([turn_with(run, origin.strategy)], kept), folder=self.trace.absolute().parent)
        if not self.files and len(recorded.files) < len(list(parts.files_in(run.parameters))):
            raise TraceError(f"{kept.lacking[0]}; give it with --file PATH")  # the question's files come first
        declared = PluginDeclaration.read(self.folder)
        _, strategy = find_strategy(declared, origin.strategy)
        short = () if self.instruction is None else (f"instruction={self.instruction}",)
        given = typed_settings(strategy, (*self.parameters, *short))
        changed = {
            "place": str(self.trace),
            "query": str(given.pop("query", run.question)),
            "description": f"A fork of {self.trace.name}",
            "files": self.files or recorded.files,
            "recorded": RecordedRequest(),
        }
        script = recorded.model_copy(update=changed)
        name = origin.trace.header.example
        if origin.trace.header.command == "flow":
            name = ""
        played = AgentAlone.of(declared, strategy, script, given, {})
        case = Case(script, played, name, (declared,), tools, limits=limits)
        case.turns()  # reports what the node would refuse, before anything starts
        return Fork(origin, self.at or 0, recorded, case, played, given)

    def read_tools(
        self, origin: ForkOrigin, environment: MutableMapping[str, str], *, validated: bool = True
    ) -> tuple[ToolSetup, ...]:
        """Return the tools of --live-tools. Credentials are removed from the environment, which the plugins inherit."""
        if not self.live_tools:
            given = {"tools": self.tools, "credential": self.credentials, "set": self.settings}
            for option_name, value in given.items():
                if value:
                    raise ParameterError(f"--{option_name} is for tools that run: give --live-tools too")
            return ()
        with about("live"):
            header = origin.trace.header
            name = header.example
            if header.command == "flow":
                name = ""
            example = []
            if name:
                example = [Example.find(examples_of(self.folder), name).directory]
            folders = (*example, *self.tools)
            if not folders:
                raise ParameterError("--live-tools: the trace names no example, so say which tools: --tools DIR")
            return tuple(read_tool_setups(folders, self.credentials, self.settings, environment, validated=validated))

    def read_script(self, origin: ForkOrigin) -> Script | None:
        with about("script"):
            if self.script is None:
                return None
            return Script.read(self.script, origin.strategy, asks=False)

    def model(self, fork: Fork, options: ModelOptions) -> ForkedModel:
        """Return a scripted model, or a real one, or else a model that repeats the recording to its end."""
        script = self.read_script(fork.origin)
        if script is not None:
            return ForkedModel(fork, replace(options, scripted=True).choose(script, script.query))
        chosen = options.choose(fork.case.script, fork.question)
        return ForkedModel(fork, None if chosen.description.scripted else chosen)
