"""A run once more with one thing changed, and two runs beside each other."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

from devhost.comparison.comparison import Comparison, Row, Side, raised, rows
from devhost.console.forms import NUL, TYPED, Choices, Field, can_be_real, fields_of, real_model, wrong_model
from devhost.console.runs import SETUP, Model, RunFolder, Setup, refusal, typed_path
from devhost.errors import HostError, ParameterError, TraceError
from devhost.fork import Changes, Origin, Past, find_origin, gist, read_fork, rounds
from devhost.host.host import find_strategy
from devhost.limits import HostLimits
from devhost.models.scripted.script import RecordedCall, Script
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.protocol.wire import JsonObject
from devhost.recording.case import runs_of, settings, tool_calls
from devhost.scenario import Example, examples_of, read_tool_setups
from devhost.tools.recorded import NOT_RECORDED, RecordedAnswers
from devhost.trace.lines import read_trace
from devhost.trace.runs import Call

# What a person wants to change of a run.

type Answers = Literal["recorded", "script", "real"]
"""What the model says after the rounds that stay."""


@dataclass(frozen=True)
class Changed:
    turn: str = ""
    """As typed; empty for the last one."""
    at: str = ""
    """As typed; empty for none."""
    answers: Answers = "recorded"
    live: bool = False
    """Whether tools run."""
    form: Choices = field(default_factory=Choices)
    """Script, model and parameters."""

    @classmethod
    def read(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        given = dict(pairs)
        answers: dict[str, Answers] = {"script": "script", "real": "real"}
        return cls(
            turn=given.get("turn", "").strip(),
            at=given.get("at", "").strip(),
            answers=answers.get(given.get("answers", ""), "recorded"),
            live=given.get("live") == "yes",
            form=Choices.read(given.items()),
        )


# Which tools a fork may run, and which of its calls ran.


def live_plugins(plugin: Path | None, example: str | None, tools: Sequence[Path]) -> list[PluginDeclaration]:
    """The tool plugins that `--live-tools` runs; HostError for one that is not there."""
    directory = nearest_strategy_plugin(Path.cwd()) if plugin is None else plugin
    found = [] if not example else [Example.find(examples_of(directory), example).directory]
    return [PluginDeclaration.read(folder) for folder in (*found, *tools)]


def tool_names(plugins: Sequence[PluginDeclaration]) -> list[str]:
    return [tool.identity.name for plugin in plugins for provider in plugin.tool_providers for tool in provider.tools]


def calls_that_ran(before: Origin, after: Origin, fork: Setup) -> tuple[str, ...]:
    """Those of live tools that were not among the calls of the rounds that stayed."""
    if not fork.live_tools:
        return ()
    try:
        plugins = live_plugins(fork.plugin, fork.example, fork.tools)
        past = Past.of(before.run, fork.at or 0, before.file)
    except HostError:  # the folder of the plugin is gone since then
        return ()
    live = {plugin.provider_id(provider) for plugin in plugins for provider in plugin.tool_providers}
    made = RecordedAnswers(
        [
            RecordedCall(tool=_tool(call), provider=_provider(call), arguments=_given(call))
            for call in tool_calls(before.run.calls)
            if call.began < past.until
        ],
        once=True,
    )
    return tuple(
        f"{_tool(call)} {json.dumps(_given(call), ensure_ascii=False, sort_keys=True)}"
        for call in tool_calls(after.run.calls)
        if _provider(call) in live
        and made.take(_provider(call), _tool(call), _given(call)) is None
        and raised(call) != NOT_RECORDED
    )


def _tool(call: Call) -> str:
    return str(call.request.get("tool"))


def _provider(call: Call) -> str:
    return str(call.request.get("provider"))


def _given(call: Call) -> JsonObject:
    given = call.request.get("tool_parameters")
    return given if isinstance(given, dict) else {}


# The form of a run that is run again: what there is to change, what was changed, and what cannot be.
#
# Nothing is started, and nothing is written.


@dataclass(frozen=True)
class ForkPlan:
    name: str
    changed: Changed
    origin: Origin
    """The run of the turn."""
    questions: Sequence[str]
    """Of all turns of the conversation."""
    turn: int
    rounds: Sequence[tuple[int, str]]
    """Those after which a fork can go on."""
    at: int
    fields: Sequence[Field]
    plugin: Path | None
    live: Setup
    """Example and tool plugins of the run, which live tools would be."""
    tools: Sequence[str]
    """The tools that would run."""
    can_be_real: bool
    mistakes: Mapping[str, str] = field(default_factory=dict)

    @property
    def setup(self) -> Setup:
        """Only what was changed."""
        changed, form = self.changed, self.changed.form
        return Setup(
            kind="fork",
            question=self.origin.run.question,
            plugin=self.plugin,
            example=self.live.example if changed.live else None,
            tools=self.live.tools if changed.live else (),
            strategy=self.origin.strategy,
            script=typed_path(form.script) if changed.answers == "script" else None,
            model=real_model(form) if changed.answers == "real" else Model(),
            parameters={each.name: each.text for each in self.fields if each.changed},
            of=self.name,
            turn=self.turn if len(self.questions) > 1 else None,
            at=self.at,
            live_tools=changed.live,
        )


# Two runs of the folder beside each other, as far as they have come.


@dataclass(frozen=True)
class Pair:
    comparison: Comparison
    settings: list[Row]
    """Question, strategy and parameters, where they differ."""
    ran: tuple[str, ...]
    """The calls of tools that ran although there is a recording; empty if the second run is no fork."""
    kept: int | None
    """How many rounds of the first run the second one repeats; None if it is no fork of it."""
    turns: Literal["recorded", "written", ""]
    """What the model of the second run said, if another instruction was given to one that is not real."""

    @property
    def not_recorded(self) -> tuple[str, ...]:
        return self.comparison.right.not_recorded

    @property
    def answer(self) -> list[Row]:
        """The whole answers."""
        return rows(self.comparison.left.answer, self.comparison.right.answer, whole=True)

    @property
    def names(self) -> tuple[str, str]:
        return self.comparison.left.name, self.comparison.right.name


def read_pair(folder: RunFolder, left: str, right: str) -> Pair | None:
    """None while the second run has not asked its strategy; TraceError for what is not a run at all."""
    setup = setup_of(folder, right)
    fork = setup if setup.kind == "fork" and setup.of == left else None
    before = find_origin(read_trace(folder.trace(left)), folder.trace(left), None if fork is None else fork.turn)
    after = _begun(folder, right)
    if after is None:
        return None
    return Pair(
        Comparison.of(_side(left, before), _side(right, after)),
        rows(list(_set(before)), list(_set(after))),
        () if fork is None else calls_that_ran(before, after, fork),
        None if fork is None else fork.at,
        _turns(before, after, fork),
    )


def setup_of(folder: RunFolder, name: str) -> Setup:
    """An empty one for a run that a command made."""
    return Setup.known(folder.beside(name, SETUP)) or Setup()


def _begun(folder: RunFolder, name: str) -> Origin | None:
    file = folder.trace(name)
    try:
        return find_origin(read_trace(file), file, None)
    except TraceError:
        if folder.beside(name, SETUP).is_file():
            return None
        raise


def _side(name: str, origin: Origin) -> Side:
    return Side.of(name, origin.trace.header.model.name, origin.run, origin.strategy)


def _turns(before: Origin, after: Origin, fork: Setup | None) -> Literal["recorded", "written", ""]:
    told = [origin.run.parameters.get("instruction") for origin in (before, after)]
    if told[0] == told[1] or not after.trace.header.model.scripted:
        return ""
    return "recorded" if fork is not None and fork.script is None else "written"


def _set(origin: Origin) -> Iterator[str]:
    """In lines."""
    known = settings(origin.run.parameters)
    asked: Mapping[str, object] = {"question": origin.run.question, "strategy": origin.strategy}
    for name, value in {**asked, **_resolved(known.params, known.variables)}.items():
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
        yield from f"{name}: {written}".splitlines()


def _resolved(params: JsonObject, variables: JsonObject) -> JsonObject:
    def value(written: object) -> object:
        match written:
            case {"variable": str(name)}:
                return variables.get(name, written)
        return written

    return {name: value(params[name]) for name in sorted(params)}


# Makes the form of a run that is run again, and finds what cannot be in it.


def planned_fork(folder: RunFolder, name: str, changed: Changed, plugin: Path | None) -> ForkPlan:
    """`plugin`: None for that of the run, or the nearest one."""
    file, was = folder.trace(name), setup_of(folder, name)
    trace = read_trace(file)
    questions = [run.question for run in runs_of(trace, file)]
    turn = _number(changed.turn, 1, len(questions))
    origin = find_origin(trace, file, turn or len(questions))
    directory = plugin or was.plugin
    found = nearest_strategy_plugin(Path.cwd()) if directory is None else directory
    _, strategy = find_strategy(PluginDeclaration.read(found), origin.strategy)
    answered = [each for each in rounds(origin.run) if each.is_answered]
    at = _number(changed.at or "0", 0, len(answered))
    live = Setup(example=trace.header.example or None, tools=was.tools)
    plan = ForkPlan(
        name,
        changed,
        origin,
        questions,
        turn or len(questions),
        [(each.number, gist(each)) for each in answered],
        at or 0,
        [each for each in fields_of(strategy, origin.run.parameters, changed.form) if each.widget != "shown"],
        directory,
        live,
        _names(lambda: tool_names(live_plugins(directory, live.example, live.tools))),
        can_be_real=can_be_real(os.environ),
    )
    mistakes = dict(_mistakes(plan, found))
    if changed.turn and turn is None:
        mistakes["turn"] = f"there is no turn {changed.turn!r}; there are 1 to {len(questions)}"
    if at is None:
        mistakes["at"] = f"there is no round {changed.at!r} to go on from; there are 0 to {len(answered)}"
    fields = [each.with_mistake(mistakes.get(f"{TYPED}{each.name}", "")) for each in plan.fields]
    return replace(plan, fields=fields, mistakes=mistakes)


def _number(typed: str, least: int, most: int) -> int | None:
    """None for what is no such number."""
    is_number = typed.isascii() and typed.isdigit() and len(typed) < 10  # noqa: PLR2004 - digits
    return int(typed) if is_number and least <= int(typed) <= most else None


def _names(read: Callable[[], list[str]]) -> Sequence[str]:
    try:
        return read()
    except HostError:
        return ()


def _mistakes(plan: ForkPlan, plugin: Path) -> Iterator[tuple[str, str]]:
    """By the name of the field in the form; under an empty name, what belongs to none."""
    for each in plan.fields:
        if each.changed and (sentence := _refused(plan.origin, plugin, plan.at, [each])):
            yield f"{TYPED}{each.name}", sentence
    if sentence := _said(lambda: _check_script(plan)):
        yield "script", sentence
    if plan.changed.answers == "real" and (sentence := wrong_model(plan.changed.form, os.environ)):
        yield "model", sentence
    if plan.changed.live and (sentence := _said(lambda: _check_tools(plan))):
        yield "live", sentence
    unchanged = _refused(plan.origin, plugin, plan.at, [])
    if unchanged:
        yield "", unchanged


def _refused(origin: Origin, plugin: Path, at: int, fields: Sequence[Field]) -> str:
    if any("\0" in each.text for each in fields):
        return NUL
    given = tuple(f"{each.name}={each.text}" for each in fields)
    return _said(lambda: read_fork(origin, at, plugin, Changes(given), HostLimits()))


def _check_script(plan: ForkPlan) -> None:
    if plan.changed.answers != "script":
        return
    if not plan.changed.form.script:
        raise ParameterError("name the file")
    file = typed_path(plan.changed.form.script)
    if why := refusal(file):
        raise ParameterError(why)
    Script.read(file, plan.origin.strategy)


def _check_tools(plan: ForkPlan) -> None:
    plugins = live_plugins(plan.plugin, plan.live.example, plan.live.tools)
    if not plugins:
        raise ParameterError("the run names no example and no tool plugin: run devhost fork --live-tools --tools DIR")
    environment: dict[str, str] = dict(os.environ)  # a copy, because reading takes the credentials out of it
    read_tool_setups([each.directory for each in plugins], (), (), environment)


def _said(check: Callable[[], object]) -> str:
    try:
        check()
    except (HostError, OSError, ValueError) as error:
        return str(error)
    return ""
