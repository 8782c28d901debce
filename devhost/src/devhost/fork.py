"""A traced run once more, with something changed from a round on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from devhost.conversation import CountingModel
from devhost.errors import TraceError
from devhost.host.host import Host, OnMessage, find_strategy
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend, ModelCallError, ModelRequest
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.script import Recorded, Script, ScriptedModelCard, Turn, checked
from devhost.node.outputs.run import Run
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.session import Answer
from devhost.protocol.wire import JsonObject
from devhost.recording.case import last_conversation, runs_of, strategy_of
from devhost.recording.files import KeptFiles
from devhost.recording.turns import (
    files_in,
    model_calls,
    model_card,
    model_in,
    recorded_call,
    recorded_turns,
    settings,
    tool_calls,
    tools_in,
)
from devhost.scenario import CONVERSATION, AttachedFiles, Scenario, typed_settings
from devhost.tools.recorded import RecordedAnswers, recorded_tools, replayed
from devhost.tools.setup import ToolSetup
from devhost.tools.tool import Tool
from devhost.trace.lines import Trace
from devhost.trace.runs import Call, TracedRun, written_calls

# The tools of a fork: they answer from the recording, or run.
#
# A tool that may run still answers the calls of the past from the recording: they were made, and are not made twice.


class LiveTool:
    """A tool of a plugin, behind the recorded calls of the past."""

    def __init__(self, tool: Tool, past: RecordedAnswers, ran: list[JsonObject]) -> None:
        """`ran` gets the name and the arguments of each call that runs."""
        self.provider, self.name, self.entity = tool.provider, tool.name, tool.entity
        self._tool = tool
        self._past = past
        self._ran = ran

    def invoke(self, parameters: JsonObject, answer: Answer, request_id: str, /) -> Iterator[JsonObject]:
        recorded = self._past.take(self.provider, self.name, parameters)
        if recorded is not None:
            yield from replayed(recorded)
            return
        self._ran.append({"tool": self.name, "arguments": parameters})
        yield from self._tool.invoke(parameters, answer, request_id)


def fork_tools(recorded: Recorded, past_calls: int, live: Sequence[Tool], ran: list[JsonObject]) -> list[Tool]:
    """`past_calls`: how many of the recorded calls belong to the past. `live`: tools that may run."""
    past = RecordedAnswers(recorded.calls[:past_calls], once=True)
    running = [LiveTool(tool, past, ran) for tool in live]
    return [*running, *recorded_tools(recorded, instead=live)]


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
    return list(_rounds(run))


def _rounds(run: TracedRun) -> Iterator[Round]:
    number, tries = 1, list[Call]()
    for call in model_calls(run.calls):
        tries.append(call)
        made = Round(number, tuple(tries))
        if made.is_answered:
            yield made
            number, tries = number + 1, []
    if tries:
        yield Round(number, tuple(tries))


@dataclass(frozen=True)
class Past:
    """What stays of a run."""

    run: TracedRun
    rounds: int
    models: tuple[Call, ...]
    """The model calls of these rounds."""
    until: float
    """The time in the trace when the first later round began; infinity if there is none."""

    @classmethod
    def of(cls, run: TracedRun, at: int, file: Path) -> "Past":
        """TraceError for a round that the run does not have."""
        made = rounds(run)
        answered = [each for each in made if each.is_answered]
        if at > len(answered):
            there_are = f"it has the rounds 1 to {len(answered)}" if answered else "its model answered no call"
            raise TraceError(f"--at {at}: there is no round {at} in this run of {file}; {there_are}")
        kept, later = made[:at], made[at:]
        until = later[0].calls[0].began if later else float("inf")
        return cls(run, at, tuple(call for each in kept for call in each.calls), until)


def round_lines(run: TracedRun) -> list[str]:
    """A line for each round: what the model wrote."""
    return [f"{each.number}  {gist(each)}" for each in rounds(run)]


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
        self._recorded = len(turns)
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
            f"the recording has no turn for model call {len(self.requests)}: it has {self._recorded}, and "
            f"{self.remaining} of them wait for another prompt. Give --script FILE, or a real model.",
        )

    @property
    def is_recorded(self) -> bool:
        """Whether every turn is one of the recording."""
        return self._later is None

    @property
    def afterwards(self) -> str:
        left = f"Recorded model turns that no call asked for: {self.remaining}." if self.remaining else ""
        return left if self._later is None else " ".join(filter(None, (left, self._later.afterwards)))

    def spent(self) -> JsonObject | None:
        return None if self._later is None else self._later.spent()


# A fork: which run goes on, from which round, with what changed.


@dataclass(frozen=True)
class Origin:
    """What is forked."""

    trace: Trace
    file: Path
    run: TracedRun

    @property
    def strategy(self) -> str:
        return strategy_of(self.trace, self.run)


@dataclass(frozen=True)
class Changes:
    """What a person changes; nothing of it stays as recorded."""

    params: tuple[str, ...] = ()
    """`KEY=VALUE`; `query` is another question."""
    files: tuple[Path, ...] = ()
    """In place of the question's."""
    live: tuple[ToolSetup, ...] = ()
    """Tool plugins that run."""


@dataclass(frozen=True)
class Fork:
    past: Past
    scenario: Scenario
    recorded: Recorded
    past_tools: int
    """How many of the recorded calls belong to the past."""
    turns: tuple[Turn, ...]
    """All that the model said."""
    card: ScriptedModelCard
    ran: list[JsonObject] = field(default_factory=list)
    """The calls that ran, by name and arguments."""

    @property
    def past_turns(self) -> tuple[Turn, ...]:
        return self.turns[: len(self.past.models)]

    @property
    def question(self) -> str:
        """That of the trace, or another one."""
        return self.past.run.question if self.scenario.script is None else self.scenario.script.query

    def play(self, host: Host, model: ModelBackend, on_message: OnMessage, *, strict: bool) -> Run:
        question, run = self.question, self.past.run
        files = [host.server.offer(file) for file in self.scenario.attached.first]
        return host.run(
            self.scenario.strategy.identity.name,
            self.scenario.values(question, files),
            model=model,
            tools=fork_tools(self.recorded, self.past_tools, host.tools, self.ran),
            variables={**self.scenario.variables(question, files), CONVERSATION: run.conversation_id or ""},
            history=model_in(run.parameters).get("history_prompt_messages") or (),
            conversation_id=run.conversation_id,
            on_message=on_message,
            strict=strict,
        )


def find_origin(trace: Trace, file: Path, question: int | None) -> Origin:
    """The run of a question of the last conversation, counted from 1; by default of its last one."""
    runs = runs_of(trace, file)
    if question is not None and not 1 <= question <= len(runs):
        raise TraceError(f"--question {question}: there is no such question in {file}; it has {len(runs)}")
    return Origin(trace, file, runs[-1 if question is None else question - 1])


def find_in_flow(trace: Trace, file: Path, turn: int | None, node: str | None) -> tuple[Origin, str]:
    """An agent's run in a turn of the last conversation, and which one it is; by default the last one of all."""
    turns = last_conversation(trace)
    if turn is not None and not 1 <= turn <= len(turns):
        raise TraceError(f"--question {turn}: there is no such turn in {file}; it has {len(turns)}")
    wanted = list(enumerate(turns, start=1))[slice(None) if turn is None else slice(turn - 1, turn)]
    runs = {
        (number, of.id): found[-1]
        for number, each in wanted
        for execution, of in each.executions.items()
        if (found := each.runs.get(execution)) and node in (None, of.id)
    }
    if not runs:
        agents = sorted(
            {of.id for each in turns for execution, of in each.executions.items() if execution in each.runs}
        )
        named = "" if node is None else f" {node!r}"
        where = "" if turn is None else f" in turn {turn}"
        raise TraceError(f"{file} has no run of an agent{named}{where}; agents that ran: {', '.join(agents) or 'none'}")
    number, of = list(runs)[-1]
    others = [f"--node {name}" for at, name in runs if at == number and name != of]
    others += [] if turn is not None or len(turns) == 1 else ["--question NUMBER"]
    also = (
        f"; {' and '.join(dict.fromkeys(others))} {'name' if len(others) > 1 else 'names'} another one"
        if others
        else ""
    )
    return Origin(
        trace, file, runs[number, of]
    ), f"forking the agent {of} in turn {number}, without the flow around it{also}"


def read_fork(origin: Origin, at: int, plugin: Path, changes: Changes, limits: HostLimits) -> Fork:
    run = origin.run
    past = Past.of(run, at, origin.file)
    files = KeptFiles(origin.file, None)
    asked = tool_calls(run.calls)
    made = {str(each.get("id")): each for each in ([] if run.end is None else run.end.outcome.files)}
    turns = recorded_turns(model_calls(run.calls))
    script = checked(
        {
            "model": model_card(run.parameters),
            **({"turns": turns} if turns else {}),
            "recorded": {
                "tools": tools_in(run.parameters),
                "calls": [recorded_call(call, made, files) for call in asked],
            },
        }
    )
    return Fork(
        past,
        _scenario(origin, plugin, changes, limits),
        script.recorded or Recorded(),
        sum(call.began < past.until for call in asked),
        script.turns,
        script.model,
    )


def _scenario(origin: Origin, plugin: Path, changes: Changes, limits: HostLimits) -> Scenario:
    run = origin.run
    _, strategy = find_strategy(PluginDeclaration.read(plugin), origin.strategy)
    known, given = settings(run.parameters), dict(typed_settings(strategy, changes.params))
    question = str(given.pop("query", run.question))
    script = Script.model_construct(  # what was sent is not checked again
        place=str(origin.file),
        query=question,
        description=f"A fork of {origin.file.name}",
        params=known.params,
        variables=known.variables,
        files=() if changes.files else _sent(origin),
    )
    attached = AttachedFiles.of(script, changes.files, limits)
    name = origin.trace.header.example
    scenario = Scenario(name, script, plugin, strategy, changes.live, given, attached=attached)
    scenario.check(question)
    return scenario


def _sent(origin: Origin) -> tuple[Path, ...]:
    kept = KeptFiles(origin.file, None)
    found = [kept.sent(each) for each in files_in(origin.run.parameters)]
    if kept.lacking:
        raise TraceError(f"{kept.lacking[0]}; give it with --file PATH")
    return tuple(Path(path) for path in found if path is not None)
