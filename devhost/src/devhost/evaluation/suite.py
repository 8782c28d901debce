"""A file of cases: its cases and columns, and every run of them, checked before the first one starts."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, PositiveInt, ValidationError

from devhost.errors import HostError, SuiteError, naming
from devhost.evaluation.reset import Reset
from devhost.evaluation.results import Header, PlannedCase
from devhost.evaluation.rows import Rows
from devhost.evaluation.shard import Shard
from devhost.expected import Expected
from devhost.flow.cases import FlowCase
from devhost.flow.checks import check_flow
from devhost.flow.document import filled_inputs, with_read_files
from devhost.flow.outside import NOTHING, Allowed
from devhost.flow.script import FlowScript, names_flow
from devhost.host.host import find_strategy
from devhost.limits import HostLimits, PositivePrice
from devhost.models.scripted.script import Script, Scripted, SomeTurns, Texts, Words, one_sentence
from devhost.plugin.declaration import PluginDeclaration
from devhost.protocol.wire import JsonObject
from devhost.reach import within_reach
from devhost.scenario import AttachedFiles, Example, Scenario, parse_assignments, refuse_misfit, typed_settings
from devhost.text import describe, json_value, load_yaml, real_path
from devhost.tools.mcp import McpServer, read_servers
from devhost.tools.setup import ToolSetup

type _JsonObject = Annotated[dict[str, Any], BeforeValidator(json_value)]
type Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
type _Name = Annotated[str, Field(min_length=1, max_length=120)]
"""Of a case or a column; it stands in tables and in --case."""


class Column(Scripted):
    """One way to run every case."""

    name: _Name = "default"
    strategy: Words | None = None
    """None for that of the case's script, else the plugin's first."""
    model: Words | None = None
    """None for that of --model. A scripted model takes this name."""
    params: _JsonObject = Field(default_factory=dict)
    completion: _JsonObject = Field(default_factory=dict)
    """Parameters of the model."""


class Case(Scripted):
    name: _Name
    query: Words | None = None
    """By default, the question of the case's script."""
    scenario: Words | None = None
    """A script of the example: a file of its scenarios/."""
    script: Annotated[Path | dict[str, Any] | None, one_sentence("should be the path of a script, or a script")] = None
    """A script file, from the folder of the cases; or a script as it would stand in one."""
    turns: SomeTurns | None = None
    """A script that is only turns."""
    files: tuple[Path, ...] = ()
    params: _JsonObject = Field(default_factory=dict)
    variables: _JsonObject = Field(default_factory=dict)
    reset: Reset = ()
    """What is done before each run."""
    repeats: PositiveInt = 1
    rate: Share = 1.0
    """The share of the repeats that must fit. All three have the values of the file where a case has none."""
    expect: Expected | None = None
    """By default, what its script expects."""
    reference: str = ""
    """A good answer, which scorers get."""
    inputs: _JsonObject = Field(default_factory=dict)
    """Of a flow: the fields of its Start node, over those of its script."""

    @property
    def written(self) -> Path | None:
        """The file of its script."""
        if isinstance(self.script, Path):
            return self.script
        return None

    def within(self, suite: "SuiteFile", folder: Path) -> Self:
        """With the defaults of its file, and paths from the file's folder."""
        defaults = {name: getattr(suite, name) for name in {"reset", "repeats", "rate"} - self.model_fields_set}
        script = folder / self.script if isinstance(self.script, Path) else self.script
        files = tuple(within_reach(folder / path, folder) for path in self.files)
        return self.model_copy(update={**defaults, "script": script, "files": files})


def _case_of_a_file(case: object) -> object:
    """`wrong.case.yaml` is the case `wrong` with this script."""
    if isinstance(case, str):
        return {"name": Path(case).name.split(".")[0], "script": case}
    return case


class EvaluationLimits(Scripted):
    price: PositivePrice | None = None
    """What all runs and judges together may spend: once that is reached, no further run begins."""


class SuiteFile(Scripted):
    description: str = ""
    example: str | None = None
    tools: tuple[Path, ...] = ()
    """Folders of tool plugins, from the folder of the cases."""
    mcp: Texts = ()
    """MCP servers, as `--mcp` takes them."""
    params: _JsonObject = Field(default_factory=dict)
    """For all cases, over those of their scripts."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] = (Column(),)
    reset: Reset = ()
    repeats: PositiveInt = 1
    rate: Share = 1.0
    threshold: Share = 1.0
    limits: EvaluationLimits = EvaluationLimits()
    cases: Annotated[tuple[Annotated[Case, BeforeValidator(_case_of_a_file)], ...], Field(min_length=1)]


class Suite(SuiteFile):
    """A file that was read: with its paths from its folder, and its defaults in its cases."""

    file: Path
    flows: Mapping[str, FlowScript]
    """By the case's name, the scripts that name their flow: of all cases or of none."""

    @classmethod
    def read(cls, file: Path) -> Self:
        written = _written(file)
        for noun, named in (("cases", written.cases), ("columns", written.columns)):
            for name, times in Counter(each.name for each in named).items():
                if times > 1:
                    raise SuiteError(f"{file}: {times} {noun} are named {name!r}: give each a name of its own")
        cases = tuple(case.within(written, file.parent) for case in written.cases)
        tools = tuple(file.parent / folder for folder in written.tools)
        known = {**dict(written), "tools": tools, "cases": cases}
        return cls.model_construct(**known, file=file, flows=_flows(file, cases))

    def only(self, cases: Sequence[str], columns: Sequence[str], repeats: int | None) -> Self:
        """What fits one of the patterns (* and ?), without patterns all. `repeats`: of each case, unless it is None."""
        kept = _fitting("--case", cases, self.cases, self.file)
        if repeats is not None:
            kept = tuple(case.model_copy(update={"repeats": repeats}) for case in kept)
        fitting = _fitting("--column", columns, self.columns, self.file)
        return self.model_copy(update={"cases": kept, "columns": fitting})


def _written(file: Path) -> SuiteFile:
    data = load_yaml(file)
    if "cases" not in data and data.keys() & {"turns", "flow", "extends"}:
        data = {"cases": [file.name]}  # a script that is a case of its own
    places: list[str] = []
    """Of each case that stands in a file of rows, else empty."""
    if isinstance(data.get("cases"), list):
        try:
            data["cases"] = list(_with_rows(data["cases"], file.parent, places))
        except HostError as error:
            raise SuiteError(f"{file}: {error}") from error
    try:
        return SuiteFile.model_validate(data)
    except ValidationError as error:
        raise SuiteError(f"{file}: {_with_names(_first(describe(error)), data, places)}") from error


def _with_rows(entries: Iterable[object], folder: Path, places: list[str]) -> Iterator[object]:
    for entry in entries:
        rows = Rows.of(entry, folder)
        if rows is None:
            places.append("")
            yield entry
            continue
        for place, case in rows.cases():
            places.append(place)
            yield case


MOST_SENTENCES = 10
"""The most mistakes that are told at once: thousands of rows may have the same one."""


def _first(sentences: str) -> str:
    told = sentences.split("; cases[")
    left = len(told) - MOST_SENTENCES
    if left > 0:
        return f"{'; cases['.join(told[:MOST_SENTENCES])}; and {left:,} more"
    return sentences


def _with_names(sentences: str, data: dict[str, Any], places: Sequence[str]) -> str:
    """Cases by their names, if they have any, or by their rows."""

    def case(found: re.Match[str]) -> str:
        number = int(found[1])
        written = data["cases"][number]
        name = written
        if isinstance(written, dict):
            name = written.get("name")
        said = f"case {number + 1}"
        if name:
            said = f"case {name!r}"
        if places[number]:
            said = places[number]
        if found[2]:
            return f"{said}, "
        return said

    return re.sub(r"cases\[(\d+)\](\.?)", case, sentences)


def _flows(file: Path, cases: Sequence[Case]) -> Mapping[str, FlowScript]:
    try:
        files = dict.fromkeys(case.written for case in cases if case.written is not None)
        read = {script: FlowScript.read(script) for script in files if names_flow(script)}
        flows = {case.name: read[case.written] for case in cases if case.written in read}
    except HostError as error:
        raise SuiteError(f"{file}: {error}") from error
    if flows and len(flows) < len(cases):
        others = ", ".join(case.name for case in cases if case.name not in flows)
        raise SuiteError(
            f"{file}: {', '.join(flows)} play flows, and {others} a strategy: write them into files of their own"
        )
    return flows


def _fitting[N: (Case, Column)](
    option: str, patterns: Sequence[str], named: tuple[N, ...], file: Path
) -> tuple[N, ...]:
    for pattern in patterns:
        if not any(fnmatchcase(each.name, pattern) for each in named):
            there_are = naming(each.name for each in named)
            raise SuiteError(f"{option} {pattern!r} fits none in {file}; {there_are}")
    return tuple(each for each in named if any(fnmatchcase(each.name, pattern) for pattern in patterns or ("*",)))


# Every run of an evaluation, checked before the first one starts: a `Planned` for each case, column and repeat.


@dataclass(frozen=True)
class Ground:
    """What all runs of an evaluation share."""

    plugin: PluginDeclaration | None
    """None for flows without agents."""
    tools: tuple[ToolSetup, ...]
    servers: tuple[McpServer, ...]
    example: Example | None
    limits: HostLimits
    scripted: bool
    """Whether scripts answer, and not models behind an API."""
    models: JsonObject
    """What the command line says of the models of all columns."""
    assignments: tuple[str, ...] = ()
    """Parameters from the command line, as KEY=VALUE, over all others."""
    strict: bool = False
    """Whether a run that breaks a rule of Dify fits no case."""
    panel: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Parameters of tools that the example's script sets, and that hold for every case."""
    allowed: Allowed = NOTHING
    """Of flows and scorers."""
    read_script: Callable[[Path, str | None], Script] = field(
        default_factory=lambda: cache(Script.read), repr=False, compare=False
    )
    """Thousands of cases may have one script, which is read once."""
    read_flow: Callable[[Path, HostLimits, Allowed], FlowCase] = field(
        default_factory=lambda: cache(FlowCase.read), repr=False, compare=False
    )

    def common_folder(self, cases: Path) -> str:
        """The folder that has all that is read, with a slash behind it; `cases`: the folder of the file of cases."""
        folders = [cases, *(setup.declaration.directory for setup in self.tools)]
        folders += [each.directory for each in (self.plugin, self.example) if each is not None]
        return f"{os.path.commonpath([real_path(folder) for folder in folders]).rstrip('/')}/"

    @property
    def plugins(self) -> tuple[PluginDeclaration, ...]:
        """The plugins of the agents in flows."""
        return tuple(filter(None, (self.plugin,)))


@dataclass(frozen=True)
class Planned:
    file: Path
    """That of the cases."""
    case: Case
    column: Column
    repeat: int
    """From 1."""
    played: Scenario | FlowCase
    question: str
    expected: Expected
    strict: bool = False

    @property
    def key(self) -> tuple[str, str, int]:
        """As that of its result."""
        return self.case.name, self.column.name, self.repeat


@contextmanager
def telling_where(file: Path, case: Case, column: Column) -> Iterator[None]:
    """SuiteError with the names of case and column for any error of devhost's."""
    try:
        yield
    except HostError as error:
        raise SuiteError(f"{file}: case {case.name!r}, column {column.name!r}: {error}") from error


def plan(suite: Suite, ground: Ground) -> tuple[Planned, ...]:
    planned: list[Planned] = []
    for case, column in product(suite.cases, suite.columns):
        with telling_where(suite.file, case, column):
            asked = _asked_flow if case.name in suite.flows else _asked
            played, question, expected = asked(suite, case, column, ground)
            if ground.scripted and expected.judge is not None and expected.judge.turns is None:
                needs = "without a key the judge is scripted: give it turns, or set OPENAI_API_KEY"
                raise SuiteError(f"expect, judge: {needs}")
        planned += [
            Planned(suite.file, case, column, repeat, played, question, expected, ground.strict)
            for repeat in range(1, case.repeats + 1)
        ]
    return tuple(planned)


def header_of(suite: Suite, ground: Ground, planned: Sequence[Planned], shard: Shard | None = None) -> Header:
    """`planned`: the runs of all shards."""
    cases = {each.case.name: PlannedCase(each.case.name, each.question, each.case.rate) for each in planned}
    columns = {column.name: _settings(column, suite, ground) for column in suite.columns}
    digest = sha256()
    folder = ground.common_folder(suite.file.parent)
    for each in planned:
        if each.repeat == 1:  # a case says how often, and its repeats may be thousands
            digest.update(_without(folder, repr(each)))
    digest.update(_without(folder, repr((ground, [server.target for server in ground.servers], columns))))
    named = ""
    if shard is not None:
        named = str(shard)
    return Header(
        file=str(suite.file),
        description=suite.description,
        scripted=ground.scripted,
        columns=columns,
        cases=tuple(cases.values()),
        runs=len(planned),
        digest=digest.hexdigest(),
        threshold=suite.threshold,
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        shard=named,
    )


def _without(folder: str, text: str) -> bytes:
    """The same on each machine that runs a shard, wherever the folder lies there."""
    return text.replace(folder, "").encode(errors="replace")


def _settings(column: Column, suite: Suite, ground: Ground) -> JsonObject:
    """All that makes the column, for a comparison with another evaluation."""
    of_all = {"scripted": ground.scripted, **ground.models}
    own = column.model_dump(include={"strategy", "model", "completion"}, exclude_defaults=True)
    params = {**suite.params, **column.params, **parse_assignments(ground.assignments)}
    return {**of_all, **own, "params": params}


type _Asked = tuple[Scenario | FlowCase, str, Expected]
"""With the question, and what is expected."""


def _asked(suite: Suite, case: Case, column: Column, ground: Ground) -> _Asked:
    if case.inputs:
        raise SuiteError("inputs: only flows have them; a strategy has params")
    scenario = _scenario(suite, case, column, ground)
    question = scenario.question(case.query)
    script = scenario.script
    expected = case.expect or (None if script is None else Expected.of(script))
    if expected is None:
        raise SuiteError("the case needs expect: neither it nor its script says what is expected")
    _refuse(scenario, question, ground)
    return scenario, question, expected


def _asked_flow(suite: Suite, case: Case, column: Column, ground: Ground) -> _Asked:
    """A flow has its parameters in its own file."""
    given: JsonObject = {
        "params": {**suite.params, **case.params, **column.params},
    }
    given |= {"variables": case.variables, "strategy": column.strategy, "--param": ground.assignments}
    if of_strategies := [name for name, value in given.items() if value]:
        raise SuiteError(f"{', '.join(of_strategies)}: a flow has none: its file and its script say what is played")
    flow = _with_own(ground.read_flow(case.written or suite.file, ground.limits, ground.allowed), case)
    recorded = flow.script.recorded.tool_names
    tools = [setup.declaration for setup in ground.tools]
    servers = [server.name for server in ground.servers]
    check_flow(
        flow.file,
        flow.inputs,
        ground.plugins,
        tools,
        ground.allowed,
        recorded=recorded,
        answers=flow.script.tool_answers,
        servers=servers,
    )
    return flow, flow.script.query, case.expect or Expected()


def _with_own(flow: FlowCase, case: Case) -> FlowCase:
    """What the user says is the case's, where it says it. What follows was written for the script's own words."""
    given: JsonObject = {"query": case.query, "files": case.files}
    changed = {name: value for name, value in given.items() if value}
    if case.inputs:
        read = with_read_files(flow.file, {**flow.script.inputs, **case.inputs}, flow.limits, case.written)
        flow = replace(flow, inputs=filled_inputs(flow.file, read))
    if not changed and not case.inputs:
        return flow
    if changed and not flow.file.is_chatflow:
        raise SuiteError(f"{', '.join(changed)}: a workflow has none: give it inputs")
    return replace(flow, script=flow.script.model_copy(update={**changed, "then": (), "expect": None}))


def _scenario(suite: Suite, case: Case, column: Column, ground: Ground) -> Scenario:
    if ground.plugin is None:
        raise SuiteError("no strategy plugin is given")
    script = _script(case, column.strategy, column, suite, ground)
    usual = (None if script is None else script.first_strategy) or next(iter(ground.plugin.strategies))
    _, strategy = find_strategy(ground.plugin, column.strategy or usual)
    script = _script(case, strategy.identity.name, column, suite, ground)
    return Scenario(
        name=suite.example or "",
        script=script,
        plugin=ground.plugin,
        strategy=strategy,
        tools=ground.tools,
        servers=ground.servers,
        given={**suite.params, **case.params, **column.params, **typed_settings(strategy, ground.assignments)},
        given_variables=case.variables,
        attached=AttachedFiles.of(script, case.files, ground.limits),
    )


def _script(case: Case, strategy: str | None, column: Column, suite: Suite, ground: Ground) -> Script | None:
    """As it is for the strategy. The case's own one, or else the example's."""
    given = [name for name in ("scenario", "script", "turns") if getattr(case, name) is not None]
    if len(given) > 1:
        raise SuiteError(f"{' and '.join(given)} are both scripts: give one of them")
    file = case.written
    if case.scenario is not None:
        if ground.example is None:
            raise SuiteError(f"scenario {case.scenario!r} needs an example: name it at the top of the file")
        file = Example.find(ground.example.directory.parent, ground.example.name, case.scenario).file
    elif not given and ground.example is not None:
        file = ground.example.file
    if file is not None:
        script = ground.read_script(file, strategy)
    elif given:
        written = case.script if isinstance(case.script, dict) else {"turns": case.turns}
        script = Script.of({"query": case.query or "", **written}, strategy, suite.file.parent)
        script = script.model_copy(update={"place": f"{suite.file}, case {case.name!r}"})
    else:
        return None
    named = {} if column.model is None else {"name": column.model}
    return script.model_copy(update={"model": script.model.model_copy(update=named)})


def _refuse(scenario: Scenario, question: str, ground: Ground) -> None:
    """What would fail at its run, or would make it mean something else."""
    if not question.strip():
        raise SuiteError("there is no question: give the case a query")
    scenario.check(question)
    scenario.api_fails  # noqa: B018 - raises for a tool that is not offered
    script = scenario.script
    named = {each.target for each in read_servers(() if script is None else script.mcp)[0]}
    if script is not None and named - {server.target for server in ground.servers}:
        raise SuiteError(f"{script.place} names MCP servers, but one host runs all cases: name them in the file's mcp")
    if script is not None and script.panel and script.panel != ground.panel:
        raise SuiteError(f"{script.place} sets a panel of its own, but one host runs all cases: use --set instead")
    if not ground.scripted:
        return
    if script is None:
        raise SuiteError("no model is configured: give the case a scenario, a script or turns, or set OPENAI_API_KEY")
    refuse_misfit(scenario)
    if not script.knows(question) and script.otherwise is None:
        raise SuiteError(f"{script.place} has no turns for this question")


def refuse_unknown_calls(planned: Planned, offered: Iterable[str]) -> None:
    """SuiteError for a tool that there is not; `offered`: the names of tools, beside those of a recording."""
    if isinstance(planned.played, FlowCase) or planned.expected.calls is None:
        return
    tools = [*offered, *planned.played.recorded_names]
    with telling_where(planned.file, planned.case, planned.column):
        for call in planned.expected.calls.every:
            if call.name not in tools:
                raise SuiteError(f"expect, calls: there is no tool {call.name!r}; {naming(tools)}")
