"""Every run of an evaluation, checked before the first one starts.

In: a suite, the plugin and its tools. Out: a `Planned` for each case, column and repeat; SuiteError names the case.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from devhost.errors import HostError, SuiteError
from devhost.evaluation.results import Header, PlannedCase
from devhost.evaluation.suite import Case, Column, Suite
from devhost.host.host import find_strategy
from devhost.limits import HostLimits
from devhost.models.scripted.script import Script
from devhost.plugin.declaration import PluginDeclaration, Strategy
from devhost.protocol.wire import JsonObject
from devhost.scenario import AttachedFiles, Example, Scenario, parse_assignments, refuse_misfit, typed_settings
from devhost.tools.setup import ToolSetup


@dataclass(frozen=True)
class ModelSettings:
    """What the command line says of the models of all columns."""

    scripted: bool = True
    model: str | None = None
    completion: JsonObject = field(default_factory=dict)
    others: JsonObject = field(default_factory=dict)
    """The API, the features and the judge, if they are named."""


@dataclass(frozen=True)
class Ground:
    """What all runs of an evaluation share."""

    plugin: PluginDeclaration
    tools: tuple[ToolSetup, ...]
    example: Example | None = None
    examples: Path = Path()
    """The folder of the examples."""
    assignments: tuple[str, ...] = ()
    """Parameters from the command line, as KEY=VALUE, over all others."""
    limits: HostLimits = field(default_factory=HostLimits)
    models: ModelSettings = field(default_factory=ModelSettings)
    strict: bool = False
    """Whether a run that breaks a rule of Dify fits no case."""
    panel: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Parameters of tools that the example's script sets, and that hold for every case."""


@dataclass(frozen=True)
class Planned:
    case: Case
    column: Column
    repeat: int
    """From 1."""
    scenario: Scenario
    question: str
    case_digest: str
    """Of the case alone: two evaluations asked and expected the same if it is the same."""
    key: str
    """Of everything that is written about the run."""
    strict: bool = False


def plan(suite: Suite, ground: Ground) -> tuple[Planned, ...]:
    return tuple(
        planned for case in suite.cases for column in suite.columns for planned in _planned(suite, case, column, ground)
    )


def header_of(suite: Suite, ground: Ground, planned: Sequence[Planned]) -> Header:
    cases = {each.case.name: PlannedCase(each.case.name, each.question, each.case.rate) for each in planned}
    return Header(
        file=str(suite.file),
        description=suite.description,
        scripted=ground.models.scripted,
        columns={column.name: _settings(column, suite, ground) for column in suite.columns},
        cases=tuple(cases.values()),
        plan=tuple(each.key for each in planned),
    )


def _settings(column: Column, suite: Suite, ground: Ground) -> JsonObject:
    """All that makes the column, for a comparison with another evaluation."""
    over_all = parse_assignments(ground.assignments)
    return {
        "strategy": column.strategy,
        "model": column.model or ground.models.model,
        "params": {**suite.params, **column.params, **over_all},
        "completion": {**ground.models.completion, **column.completion},
        "scripted": ground.models.scripted,
        **ground.models.others,
    }


def _planned(suite: Suite, case: Case, column: Column, ground: Ground) -> Iterator[Planned]:
    try:
        scenario = _scenario(suite, case, column, ground)
        question = scenario.question(case.query)
        _refuse(case, scenario, question, ground)
    except HostError as error:
        raise SuiteError(f"{suite.file}: case {case.name!r}, column {column.name!r}: {error}") from error
    script = None if scenario.script is None else replace(scenario.script, place="")
    asked = [question, case.variables, *map(_content, case.files), repr(script), repr(case.expect)]
    digest = _digest(asked)
    for repeat in range(1, case.repeats + 1):
        about = [digest, case.name, column.name, scenario.strategy.identity.name, scenario.given, ground.strict, repeat]
        key = _digest([*about, _settings(column, suite, ground)])
        yield Planned(case, column, repeat, scenario, question, digest, key, strict=ground.strict)


def _scenario(suite: Suite, case: Case, column: Column, ground: Ground) -> Scenario:
    script = _script(case, column, suite, ground)
    strategy = _strategy(column, script, ground.plugin)
    script = _script(case, replace(column, strategy=strategy.identity.name), suite, ground)
    return Scenario(
        name=suite.example or "",
        script=script,
        scripts=() if ground.example is None else ground.example.files,
        plugin=ground.plugin.directory,
        strategy=strategy,
        tools=ground.tools,
        given={**suite.params, **case.params, **column.params, **typed_settings(strategy, ground.assignments)},
        given_variables=case.variables,
        attached=AttachedFiles.of(script, case.files, ground.limits),
    )


def _strategy(column: Column, script: Script | None, plugin: PluginDeclaration) -> Strategy:
    default = None if script is None else script.strategy
    _, strategy = find_strategy(plugin, column.strategy or default or next(iter(plugin.strategies)))
    return strategy


def _script(case: Case, column: Column, suite: Suite, ground: Ground) -> Script | None:
    given = [name for name in ("scenario", "script", "turns") if getattr(case, name) is not None]
    if len(given) > 1:
        raise SuiteError(f"{' and '.join(given)} are both scripts: give one of them")
    if case.scenario is not None:
        if suite.example is None:
            raise SuiteError(f"scenario {case.scenario!r} needs an example: name it at the top of the file")
        script = Script.read(Example.find(ground.examples, suite.example, case.scenario).file, column.strategy)
    elif isinstance(case.script, Path):
        script = Script.read(case.script, column.strategy)
    elif case.script is not None or case.turns is not None:
        written = {"turns": case.turns} if case.script is None else case.script
        script = Script.of({"query": case.query or "", **written}, column.strategy, suite.file.parent)
        script = replace(script, place=f"{suite.file}, case {case.name!r}")
    elif ground.example is not None:
        script = Script.read(ground.example.file, column.strategy)
    else:
        return None
    named = {} if column.model is None else {"name": column.model}
    return replace(script, model=script.model.model_copy(update=named))


def _refuse(case: Case, scenario: Scenario, question: str, ground: Ground) -> None:
    """What would fail at its run, or would make it mean something else."""
    if not question.strip():
        raise SuiteError("there is no question: give the case a query")
    scenario.check(question)
    scenario.api_fails  # noqa: B018 - raises for a tool that is not offered
    offered = [tool.declared.identity.name for setup in scenario.tools for tool in setup.tools]
    tools = [*offered, *scenario.recorded_names]
    for call in case.expect.calls.every if case.expect.calls else ():
        if call.name not in tools:
            there_are = ", ".join(tools) or "none"
            raise SuiteError(f"expect, calls: there is no tool {call.name!r}; there are: {there_are}")
    script = scenario.script
    if script is not None and script.panel and script.panel != ground.panel:
        raise SuiteError(f"{script.place} sets a panel of its own, but one host runs all cases: use --set instead")
    if not ground.models.scripted:
        return
    if script is None:
        raise SuiteError("no model is configured: give the case a scenario, a script or turns, or set OPENAI_API_KEY")
    refuse_misfit(scenario)
    if not script.knows(question) and script.otherwise is None:
        raise SuiteError(f"{script.place} has no turns for this question")
    judge = case.expect.judge
    if judge is not None and judge.turns is None:
        raise SuiteError("expect, judge: without a key the judge is scripted: give it turns, or set OPENAI_API_KEY")


def _content(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else str(file)


def _digest(parts: Sequence[object]) -> str:
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
