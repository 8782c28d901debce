"""A traced run once more, with something changed from a round on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from devhost.conversation import CountingModel
from devhost.errors import TraceError, naming
from devhost.host.host import Host, OnMessage, find_strategy
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend, ModelCallError, ModelRequest
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.script import Recorded, Script, ScriptedModelCard, Turn, checked
from devhost.node.outputs.run import Run
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.session import Answer
from devhost.protocol.wire import JsonObject
from devhost.recording import turns as parts
from devhost.recording.case import last_conversation, runs_of, strategy_of
from devhost.recording.files import KeptFiles
from devhost.scenario import CONVERSATION, AttachedFiles, Scenario, typed_settings
from devhost.tools.recorded import RecordedAnswers, recorded_tools, replayed
from devhost.tools.setup import ToolSetup
from devhost.tools.tool import Tool
from devhost.trace.lines import Trace
from devhost.trace.runs import Call, TracedRun, written_calls
from devhost.words import counted

# The tools of a fork: they answer from the recording, or run.
#
# A tool that may run still answers the calls of the past from the recording: they were made, and are not made twice.


class LiveTool:
    """A tool of a plugin, behind the recorded calls of the past."""

    def __init__(self, tool: Tool, past: RecordedAnswers) -> None:
        self.provider, self.name, self.entity = tool.provider, tool.name, tool.entity
        self._tool = tool
        self._past = past

    def invoke(self, parameters: JsonObject, answer: Answer, request_id: str, /) -> Iterator[JsonObject]:
        recorded = self._past.take(self.provider, self.name, parameters)
        if recorded is None:
            return self._tool.invoke(parameters, answer, request_id)
        return replayed(recorded)


# The rounds of a traced run: each is a turn of the model, with the tries that failed before it.


@dataclass(frozen=True)
class Round:
    number: int
    calls: tuple[Call, ...]
    """Of the model. The last one is the turn, unless `is_answered` is false."""

    @property
    def is_answered(self) -> bool:
        return not self.calls[-1].error and self.calls[-1].ended is not None


def rounds(run: TracedRun) -> list[Round]:
    made: list[Round] = []
    for call in parts.model_calls(run.calls):
        if made and not made[-1].is_answered:
            made[-1] = Round(made[-1].number, (*made[-1].calls, call))
        else:
            made.append(Round(len(made) + 1, (call,)))
    return made


def gist(made: Round) -> str:
    """What the model wrote, in a few words."""
    last = made.calls[-1]
    if not made.is_answered:
        return f"no answer: {last.error or 'the run ended first'}"[:100]
    called = ", ".join(call.name for call in written_calls(last))
    return f"calls {called}" if called else "answers"


# The model of a fork: it says again what was recorded, and then leaves the calls to another model.
#
# Without a model that follows, a call beyond the recording is an error that the plugin sees.


class ForkedModel(ScriptedModel):
    def __init__(
        self, turns: Sequence[Turn], card: ScriptedModelCard, trace: Path, later: CountingModel | None
    ) -> None:
        """`turns`: what the model said in the rounds that stay, or, without a `later` model, in all."""
        super().__init__(turns, card=card, place=str(trace))
        self._later = later
        if later is None:
            notice = f"the model's turns are those recorded in {trace}, no provider is called"
            self.description = replace(self.description, notice=notice)
        else:
            begins = f"the past is recorded in {trace}, then: " if turns else ""
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
        """Whether every turn is one of the recording."""
        return self._later is None

    @property
    def afterwards(self) -> str:
        return super().afterwards if self._later is None else self._later.afterwards

    def spent(self) -> JsonObject | None:
        return None if self._later is None else self._later.spent()


# A fork: which run goes on, from which round, with what changed.


@dataclass(frozen=True)
class Origin:
    """What is forked."""

    trace: Trace
    file: Path
    run: TracedRun
    which: str = ""
    """A sentence that says which run of the trace it is, where there are others."""

    @property
    def strategy(self) -> str:
        return strategy_of(self.trace, self.run)


def find_origin(trace: Trace, file: Path, question: int | None) -> Origin:
    """The run of a question of the last conversation, counted from 1; by default of its last one."""
    runs = runs_of(trace, file)
    if question is not None and not 1 <= question <= len(runs):
        raise TraceError(f"--question {question}: there is no such question in {file}; it has {len(runs)}")
    if question is None and len(runs) > 1:
        which = f"forking the last of {len(runs)} questions; --question NUMBER names another one"
        return Origin(trace, file, runs[-1], which)
    return Origin(trace, file, runs[-1 if question is None else question - 1])


def find_in_flow(trace: Trace, file: Path, turn: int | None, node: str | None) -> Origin:
    """An agent's run in a turn of the last conversation; by default the last one of all."""
    runs = {
        (number, each.rows[execution].node.id): found[-1]
        for number, each in enumerate(last_conversation(trace), start=1)
        for execution, found in each.agents.items()
    }
    fitting = [(number, of) for number, of in runs if turn in {None, number} and node in {None, of}]
    if not fitting:
        there_are = naming(f"{of} in turn {number}" for number, of in runs)
        raise TraceError(f"{file} has no such run of an agent; {there_are}")
    number, of = fitting[-1]
    which = f"forking the agent {of} in turn {number}, without the flow around it"
    others = "; --question NUMBER and --node ID name another one" if len(fitting) > 1 else ""
    return Origin(trace, file, runs[number, of], f"{which}{others}")


@dataclass(frozen=True)
class Fork:
    origin: Origin
    rounds: int
    """How many the run has that were answered."""
    at: int
    """How many of them stay."""
    scenario: Scenario
    recorded: Recorded
    past_tools: int
    """How many of the recorded calls belong to the rounds that stay."""
    turns: tuple[Turn, ...]
    """All that the model said."""
    past_turns: tuple[Turn, ...]
    """What it said in the rounds that stay."""
    card: ScriptedModelCard

    @property
    def question(self) -> str:
        """That of the trace, or another one."""
        return self.scenario.written.query

    def play(self, host: Host, model: ModelBackend, on_message: OnMessage) -> Run:
        question, run = self.question, self.origin.run
        files = [host.server.offer(file) for file in self.scenario.attached.first]
        past = RecordedAnswers(self.recorded.calls[: self.past_tools], once=True)
        live = [LiveTool(tool, past) for tool in host.tools]
        return host.run(
            self.scenario.strategy.identity.name,
            self.scenario.values(question, files),
            model=model,
            tools=[*live, *recorded_tools(self.recorded, instead=host.tools)],
            variables={**self.scenario.variables(question, files), CONVERSATION: run.conversation_id or ""},
            history=parts.model_in(run.parameters).get("history_prompt_messages") or (),
            conversation_id=run.conversation_id,
            on_message=on_message,
        )


def read_fork(origin: Origin, at: int, scenario: Scenario) -> Fork:
    run, made = origin.run, rounds(origin.run)
    answered = sum(each.is_answered for each in made)
    if at > answered:
        said = f"the model answered {counted(answered, 'time')}: --at 0 asks it from the beginning"
        raise TraceError(f"--at {at}: in this run of {origin.file}, {said}")
    until = made[at].calls[0].began if at < len(made) else float("inf")
    files = KeptFiles(origin.file, None)
    asked = parts.tool_calls(run.calls)
    outputs = {str(each.get("id")): each for each in ([] if run.end is None else run.end.outcome.outputs.files)}
    turns = parts.recorded_turns(parts.model_calls(run.calls))
    script = checked(
        {
            "model": parts.model_card(run.parameters),
            **({"turns": turns} if turns else {}),
            "recorded": {
                "tools": parts.tools_in(run.parameters),
                "calls": [parts.recorded_call(call, outputs, files) for call in asked],
            },
        }
    )
    return Fork(
        origin,
        answered,
        at,
        scenario,
        script.recorded,
        sum(call.began < until for call in asked),
        script.turns,
        script.turns[: sum(len(each.calls) for each in made[:at])],
        script.model,
    )


def forked_scenario(  # noqa: PLR0913, PLR0917 - what a person changes
    origin: Origin,
    plugin: Path,
    params: tuple[str, ...],
    files: tuple[Path, ...],
    live: tuple[ToolSetup, ...],
    limits: HostLimits,
) -> Scenario:
    """`params`: KEY=VALUE; `query` is another question. `files`: in place of the question's. `live`: tools that run."""
    run = origin.run
    declared = PluginDeclaration.read(plugin)
    _, strategy = find_strategy(declared, origin.strategy)
    known, given = parts.settings(run.parameters), dict(typed_settings(strategy, params))
    question = str(given.pop("query", run.question))
    script = Script.model_construct(  # what was sent is not checked again
        place=str(origin.file),
        query=question,
        description=f"A fork of {origin.file.name}",
        params=known.params,
        variables=known.variables,
        files=() if files else _sent(origin),
    )
    attached = AttachedFiles.of(script, files, limits)
    name = "" if origin.trace.header.command == "flow" else origin.trace.header.example
    scenario = Scenario(name, script, declared, strategy, live, given, attached=attached)
    scenario.check(question)
    return scenario


def _sent(origin: Origin) -> tuple[Path, ...]:
    kept = KeptFiles(origin.file, None)
    found = [kept.sent(each) for each in parts.files_in(origin.run.parameters)]
    if kept.lacking:
        raise TraceError(f"{kept.lacking[0]}; give it with --file PATH")
    return tuple(Path(path) for path in found if path is not None)
