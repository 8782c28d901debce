"""A fork: which run goes on, from which round, with what changed.

In: a trace, a round, and what is changed. Out: a `Fork`, which a host plays; TraceError or ParameterError before
anything starts.
"""

from dataclasses import dataclass, field
from pathlib import Path

from devhost.errors import ParameterError, TraceError
from devhost.fork.rounds import Past
from devhost.fork.tools import fork_tools
from devhost.host.agent_node import find_strategy
from devhost.host.host import Host, OnMessage
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend
from devhost.models.scripted.file import ScriptedModelCard, checked
from devhost.models.scripted.recorded import Recorded
from devhost.models.scripted.script import Script
from devhost.models.scripted.turn import Turn
from devhost.node.outputs.run import Run
from devhost.plugin.declaration import PluginDeclaration
from devhost.protocol.wire import JsonObject
from devhost.recording.case import runs_of, strategy_of
from devhost.recording.kept_files import KeptFiles
from devhost.recording.settings import files_in, model_card, model_in, settings, tools_in
from devhost.recording.tool_calls import recorded_call, tool_calls
from devhost.recording.turns import model_calls, recorded_turns
from devhost.scenario.attached import AttachedFiles
from devhost.scenario.scenario import CONVERSATION, Scenario
from devhost.scenario.settings import typed_settings
from devhost.tools.setup import ToolSetup
from devhost.trace.reader import Trace
from devhost.trace.runs import TracedRun


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
    """`KEY=VALUE`."""
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

    def play(self, host: Host, model: ModelBackend, on_message: OnMessage, *, strict: bool) -> Run:
        question, run = self.past.run.question, self.past.run
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
    known = settings(run.parameters)
    script = Script(
        place=str(origin.file),
        query=run.question,
        turns=(),
        description=f"A fork of {origin.file.name}",
        params=known.params,
        variables=known.variables,
        files=() if changes.files else _sent(origin),
    )
    given = typed_settings(strategy, changes.params)
    if "query" in given:
        raise ParameterError("--param query: a fork asks the question of its trace")
    attached = AttachedFiles.of(script, changes.files, limits)
    name = origin.trace.header.example
    scenario = Scenario(name, script, plugin, strategy, changes.live, given, attached=attached)
    scenario.check(run.question)
    return scenario


def _sent(origin: Origin) -> tuple[Path, ...]:
    kept = KeptFiles(origin.file, None)
    found = [kept.sent(each) for each in files_in(origin.run.parameters)]
    if kept.lacking:
        raise TraceError(f"{kept.lacking[0]}; give it with --file PATH")
    return tuple(Path(path) for path in found if path is not None)
