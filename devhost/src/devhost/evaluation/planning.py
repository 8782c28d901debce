"""Plans the runs of an evaluation, one for each case, column and repeat, and checks them before the first run."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from itertools import product
from pathlib import Path

from devhost.alone import AgentAlone
from devhost.case import Case, refuse_unknown_nodes
from devhost.case_options import refuse_misfit
from devhost.errors import HostError, SuiteError, naming
from devhost.evaluation.results import PlannedCase, ResultsHeader
from devhost.evaluation.shard import Shard
from devhost.evaluation.suite import Column, Suite, SuiteCase
from devhost.expected import Expected
from devhost.flow.cases import flow_case
from devhost.flow.checks import check_flow
from devhost.flow.document import filled_inputs, with_read_files, wrong_inputs
from devhost.flow.outside import NOTHING, OutsideAccess
from devhost.flow.whole import WholeFlow
from devhost.host.host import find_strategy
from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration
from devhost.protocol.wire import JsonObject
from devhost.scenario import Example, parse_assignments, typed_settings
from devhost.script import UNWRITTEN, Script
from devhost.text import real_path
from devhost.tools.mcp import McpServer, read_servers
from devhost.tools.setup import ToolSetup


@dataclass(frozen=True)
class SharedSetup:
    """What all runs of an evaluation share."""

    plugin: PluginDeclaration | None
    """The strategy plugin, or `None` for flows without agents."""
    tools: tuple[ToolSetup, ...]
    servers: tuple[McpServer, ...]
    example: Example | None
    limits: HostLimits
    scripted: bool
    """Whether scripts answer instead of models behind an API."""
    models: JsonObject
    """The model options from the command line, which apply to all columns."""
    assignments: tuple[str, ...] = ()
    """Parameters from the command line, as KEY=VALUE, which override all others."""
    strict: bool = False
    """Whether a run that breaks a rule of Dify fails its case."""
    panel: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Parameters of tools that the example's script sets for all cases."""
    allowed: OutsideAccess = NOTHING
    """What flows and scorers may access outside of the engine."""
    read_script: Callable[[Path, str | None], Script] = field(
        default_factory=lambda: cache(partial(Script.read, asks=False)), repr=False, compare=False
    )
    """Reads a script only once, because thousands of cases may share it. The script needs no question."""
    read_flow: Callable[[Path, HostLimits, OutsideAccess], Case] = field(
        default_factory=lambda: cache(flow_case), repr=False, compare=False
    )

    def common_folder(self, cases: Path) -> str:
        """Returns the common parent folder of all files that are read, with a slash at the end.

        `cases` is the folder of the file of cases.
        """
        folders = [cases, *(setup.declaration.directory for setup in self.tools)]
        folders += [each.directory for each in (self.plugin, self.example) if each is not None]
        return f"{os.path.commonpath([real_path(folder) for folder in folders]).rstrip('/')}/"

    @property
    def plugins(self) -> tuple[PluginDeclaration, ...]:
        """The strategy plugins of the agents in flows."""
        return tuple(filter(None, (self.plugin,)))


@dataclass(frozen=True)
class PlannedEvaluation:
    """One planned run: a repeat of a case in a column."""

    file: Path
    """The file of cases."""
    case: SuiteCase
    column: Column
    repeat: int
    """The number of the repeat, counted from 1."""
    played: Case
    question: str
    expected: Expected
    strict: bool = False

    @property
    def asked(self) -> str | None:
        """The question for a strategy, or `None` for a flow, whose script has the question."""
        if self.played.played.kind == "strategy":
            return self.question
        return None

    @property
    def key(self) -> tuple[str, str, int]:
        """The key of the run, which is also the key of its result."""
        return self.case.name, self.column.name, self.repeat


@contextmanager
def telling_where(file: Path, case: SuiteCase, column: Column) -> Iterator[None]:
    """Turns any `HostError` into a SuiteError that names the case and the column."""
    try:
        yield
    except HostError as error:
        raise SuiteError(f"{file}: case {case.name!r}, column {column.name!r}: {error}") from error


def plan(suite: Suite, ground: SharedSetup) -> tuple[PlannedEvaluation, ...]:
    """Returns all runs of a suite. Raises SuiteError for a mistake that can be found before the first run."""
    planned: list[PlannedEvaluation] = []
    for case, column in product(suite.cases, suite.columns):
        with telling_where(suite.file, case, column):
            asked = _asked
            if case.name in suite.flows:
                asked = _asked_flow
            played, question, expected = asked(suite, case, column, ground)
            if ground.scripted and expected.judge is not None and expected.judge.turns is None:
                needs = "without a key the judge is scripted: give it turns, or set OPENAI_API_KEY"
                raise SuiteError(f"expect, judge: {needs}")
        planned += [
            PlannedEvaluation(suite.file, case, column, repeat, played, question, expected, ground.strict)
            for repeat in range(1, case.repeats + 1)
        ]
    return tuple(planned)


def header_of(
    suite: Suite, ground: SharedSetup, planned: Sequence[PlannedEvaluation], shard: Shard | None = None
) -> ResultsHeader:
    """Returns the header for the file of results. `planned` has the runs of all shards."""
    cases = {each.case.name: PlannedCase(each.case.name, each.question, each.case.rate) for each in planned}
    columns = {column.name: _settings(column, suite, ground) for column in suite.columns}
    digest = sha256()
    folder = ground.common_folder(suite.file.parent)
    for each in planned:
        if each.repeat == 1:  # the case has the number of its repeats, which may be thousands
            digest.update(_without(folder, repr(each)))
    digest.update(_without(folder, repr((ground, [server.target for server in ground.servers], columns))))
    named = ""
    if shard is not None:
        named = str(shard)
    return ResultsHeader(
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
    """Returns the text without the folder, so that it is the same on all machines that run a shard."""
    return text.replace(folder, "").encode(errors="replace")


def _settings(column: Column, suite: Suite, ground: SharedSetup) -> JsonObject:
    """Returns all settings of a column, for a comparison with another evaluation."""
    of_all = {"scripted": ground.scripted, **ground.models}
    own = column.model_dump(include={"strategy", "model", "completion"}, exclude_defaults=True)
    params = {**suite.params, **column.params, **parse_assignments(ground.assignments)}
    return {**of_all, **own, "params": params}


type _Asked = tuple[Case, str, Expected]
"""The case to play, its question, and what is expected of its run."""


def _asked(suite: Suite, case: SuiteCase, column: Column, ground: SharedSetup) -> _Asked:
    if case.inputs:
        raise SuiteError("inputs: only flows have them; a strategy has params")
    played = _with_strategy(suite, case, column, ground)
    script = played.script
    expected = case.expect or script.expect
    if expected is None:
        raise SuiteError("the case needs expect: neither it nor its script says what is expected")
    question = script.query if case.query is None else case.query
    _refuse(played, question, ground)
    return played, question, expected


def _asked_flow(suite: Suite, case: SuiteCase, column: Column, ground: SharedSetup) -> _Asked:
    """Returns the case of a flow with its question and expectations.

    Raises SuiteError if the case or the suite sets parameters, because a flow has them in its own file.
    """
    given: JsonObject = {
        "params": {**suite.params, **case.params, **column.params},
    }
    given |= {"variables": case.variables, "strategy": column.strategy, "--param": ground.assignments}
    if of_strategies := [name for name, value in given.items() if value]:
        raise SuiteError(f"{', '.join(of_strategies)}: a flow has none: its file and its script say what is played")
    flow = _with_own(ground.read_flow(case.written or suite.file, ground.limits, ground.allowed), case)
    flow = replace(flow, plugins=ground.plugins, setups=ground.tools, servers=ground.servers)
    recorded = flow.script.recorded.tool_names
    tools = [setup.declaration for setup in ground.tools]
    servers = [server.name for server in ground.servers]
    played = _flow_of(flow)
    check_flow(
        played.file,
        played.inputs,
        ground.plugins,
        tools,
        ground.allowed,
        recorded=recorded,
        answers=flow.script.tool_answers,
        servers=servers,
    )
    return flow, flow.script.query, case.expect or Expected()


def _flow_of(case: Case) -> WholeFlow:
    if not isinstance(case.played, WholeFlow):
        raise TypeError("the case plays a strategy")
    return case.played


def _with_own(flow: Case, case: SuiteCase) -> Case:
    """Returns the flow with the question, files and inputs of the case, if it has any.

    The later turns and expectations of the script are then dropped, because they belong to the script's own question.
    """
    given: JsonObject = {"query": case.query, "files": case.files}
    changed = {name: value for name, value in given.items() if value}
    played = _flow_of(flow)
    if case.inputs:
        read = with_read_files(played.file, {**flow.script.inputs, **case.inputs}, flow.limits, case.written)
        for mistake in wrong_inputs(played.file, read):
            raise SuiteError(mistake)
        flow = replace(flow, played=replace(played, inputs=filled_inputs(played.file, read)))
    if not changed and not case.inputs:
        return flow
    if changed and not played.file.is_chatflow:
        raise SuiteError(f"{', '.join(changed)}: a workflow has none: give it inputs")
    return replace(flow, script=flow.script.model_copy(update={**changed, "then": (), "expect": None}))


def _with_strategy(suite: Suite, case: SuiteCase, column: Column, ground: SharedSetup) -> Case:
    if ground.plugin is None:
        raise SuiteError("no strategy plugin is given")
    script = _script(case, column.strategy, column, suite, ground)
    usual = script.first_strategy or next(iter(ground.plugin.strategies))
    _, strategy = find_strategy(ground.plugin, column.strategy or usual)
    script = _script(case, strategy.identity.name, column, suite, ground)
    given = {**suite.params, **case.params, **column.params, **typed_settings(strategy, ground.assignments)}
    played = Case(
        script=script,
        played=AgentAlone.of(ground.plugin, strategy, script, given, case.variables),
        name=suite.example or "",
        plugins=(ground.plugin,),
        setups=ground.tools,
        servers=ground.servers,
        limits=ground.limits,
        files=case.files,
    )
    refuse_unknown_nodes(played)
    return played


def _script(case: SuiteCase, strategy: str | None, column: Column, suite: Suite, ground: SharedSetup) -> Script:
    """Returns the script of a case as it applies to the strategy: the case's own script, or else the example's."""
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
        if isinstance(case.script, dict):
            written = case.script
        else:
            written = {"turns": case.turns}
        script = Script.of({"query": case.query or "", **written}, strategy, suite.file.parent)
        script = script.model_copy(update={"place": f"{suite.file}, case {case.name!r}"})
    else:
        return UNWRITTEN
    if column.model is None:
        return script
    return script.model_copy(update={"model": script.model.model_copy(update={"name": column.model})})


def _refuse(played: Case, question: str, ground: SharedSetup) -> None:
    """Raises SuiteError for a mistake that would make the run fail or change its meaning."""
    if not question.strip():
        raise SuiteError("there is no question: give the case a query")
    played.turns(question)
    played.api_fails  # noqa: B018 - it raises an error for a tool that is not offered
    script = played.script
    named = {each.target for each in read_servers(script.mcp)[0]}
    if named - {server.target for server in ground.servers}:
        raise SuiteError(f"{script.place} names MCP servers, but one host runs all cases: name them in the file's mcp")
    if script.panel and script.panel != ground.panel:
        raise SuiteError(f"{script.place} sets a panel of its own, but one host runs all cases: use --set instead")
    if not ground.scripted:
        return
    if not played.has_script:
        raise SuiteError("no model is configured: give the case a scenario, a script or turns, or set OPENAI_API_KEY")
    refuse_misfit(played)
    if not script.knows(question) and script.otherwise is None:
        for_any = "under otherwise it can have turns for any question"
        raise SuiteError(f"{script.place} has no turns for the question {question!r}; {for_any}")


def refuse_unknown_calls(planned: PlannedEvaluation, offered: Iterable[str]) -> None:
    """Raises SuiteError if a case expects a call to an unknown tool.

    `offered` has the names of the host's tools. The tools of a recording are known, too.
    """
    if planned.played.played.kind == "flow" or planned.expected.calls is None:
        return
    tools = [*offered, *planned.played.recorded_names]
    with telling_where(planned.file, planned.case, planned.column):
        for call in planned.expected.calls.every:
            if call.name not in tools:
                raise SuiteError(f"expect, calls: there is no tool {call.name!r}; {naming(tools)}")
