"""`devhost eval`: its options, and the run of its cases."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from devhost.conversation import CountingModel
from devhost.errors import SuiteError
from devhost.evaluation.report import (
    cases_table,
    columns_table,
    comparison_view,
    failures,
    json_report,
    junit_xml,
    refuse_output,
    refuse_page,
    render_evaluation,
)
from devhost.evaluation.results import (
    Comparison,
    Evaluation,
    ResultsFile,
    Summary,
    compared,
    previous_of,
    read_evaluation,
)
from devhost.evaluation.runs import evaluate, one_at_a_time
from devhost.evaluation.suite import Column, Ground, ModelSettings, Planned, Suite, header_of, plan
from devhost.evaluation.traces import CaseTraces
from devhost.flow.cases import FlowCase
from devhost.flow.document import FlowFile
from devhost.flow.outside import Allowed
from devhost.flow.turn import ModelOfNode, go_on_in_flow_environment, has_engine
from devhost.flowing import FlowSetup, allow_code_option, allow_http_option, models_behind_an_api
from devhost.host.host import ToolHost
from devhost.hosting import (
    KEY,
    HostOptions,
    ModelOptions,
    credential_option,
    mcp_option,
    plugin_option,
    secrets_of,
    set_option,
    started_host,
    strategy_plugin,
    tools_option,
)
from devhost.models.backend import ModelBackend
from devhost.models.scripted.script import Script
from devhost.options import DIRECTORY, FILE, argument, color_option, json_option, option, print_json, takes
from devhost.plugin.declaration import nearest_strategy_plugin
from devhost.process.session import Watcher, Watchers
from devhost.scenario import Example, Scenario, examples_of, parse_assignments, read_tool_setups
from devhost.terminal.screen import Screen, on_ctrl_c, open_console
from devhost.text import real_path
from devhost.tools.mcp import read_servers
from devhost.tools.mcp import secrets_of as mcp_secrets
from devhost.words import counted, examples


class EvaluationModels:
    """The models of an evaluation; those behind an API serve all its runs."""

    def __init__(self, options: ModelOptions, judge: str | None) -> None:
        self._options = options
        self._judge = judge
        self._behind_an_api = cache(_behind_an_api)
        self._of_nodes = cache(partial(models_behind_an_api, environment=os.environ))

    @property
    def settings(self) -> ModelSettings:
        """Without a key, nothing but that: a scripted model has no settings."""
        plugin = None if self._options.model_plugin is None else self._options.model_plugin.name
        given = {"api": self._options.api, "features": self._options.features, "judge": self._judge, "plugin": plugin}
        return ModelSettings(
            scripted=self._options.asks_the_script(),
            model=self._options.name,
            completion=parse_assignments(self._options.completion, option="--completion"),
            others={name: value for name, value in given.items() if value is not None},
        )

    def check(self, planned: Sequence[Planned]) -> bool:
        """Mistakes in the options are found before a host starts; whether no provider will be called."""
        if self._judge is not None and self._options.asks_the_script():
            raise SuiteError(f"--judge-model is for a model behind an API, but without {KEY} the judge is scripted")
        answering = [
            self.answering(each, each.question, asked=0).description.scripted
            if isinstance(each.played, Scenario)
            else self.of_nodes(each) is None
            for each in planned
        ]
        judge = self.judging() if any(each.expected.judge is not None for each in planned) else None
        return judge is None and all(answering)

    def answering(self, planned: Planned, question: str, *, asked: int) -> CountingModel:
        if self._options.asks_the_script():
            script = planned.played.script if isinstance(planned.played, Scenario) else None
            return self._options.choose(script, question, asked=asked)
        return self._behind_an_api(self._of_column(planned.column))

    def of_nodes(self, planned: Planned) -> ModelOfNode | None:
        return self._of_nodes(self._of_column(planned.column))

    def _of_column(self, column: Column) -> ModelOptions:
        given = tuple(f"{name}={json.dumps(value)}" for name, value in column.completion.items())
        if self._options.asks_the_script():
            return self._options
        name = column.model or self._options.name
        return replace(self._options, name=name, completion=(*self._options.completion, *given))

    def judging(self) -> ModelBackend | None:
        if self._options.asks_the_script():
            return None
        return self._behind_an_api(replace(self._options, name=self._judge or self._options.name))


def _behind_an_api(options: ModelOptions) -> CountingModel:
    return options.choose(None, "")


# What is evaluated, with what, and where the results go: the options of `devhost eval` as two values.

LAST = "last"
JOBS = 4


@dataclass(frozen=True)
class EvalOptions:
    file: Path = argument(metavar="CASES", type=FILE)
    cases: tuple[str, ...] = option(
        "--case", metavar="NAME", multiple=True, help="Only this case, or those of a pattern with *."
    )
    columns: tuple[str, ...] = option(
        "--column", metavar="NAME", multiple=True, help="Only this column, or those of a pattern."
    )
    assignments: tuple[str, ...] = option(
        "--param",
        metavar="KEY=VALUE",
        multiple=True,
        help="A parameter of the strategy for every run, over the file's; repeatable.",
    )
    repeats: int | None = option(
        "--repeats", type=click.IntRange(min=1), help="How often each case is run, instead of the file's."
    )
    tools: tuple[Path, ...] = tools_option("A further Dify tool plugin.")
    servers: tuple[str, ...] = mcp_option()
    credentials: tuple[str, ...] = credential_option("As for devhost run.")
    settings: tuple[str, ...] = set_option("As for devhost run.")
    plugin: Path | None = plugin_option("The strategy plugin; by default the nearest one.")
    examples: Path | None = option(
        "--examples", metavar="DIR", type=DIRECTORY, help="The folder of the examples, as for devhost run."
    )
    http: bool = allow_http_option()
    code: bool = allow_code_option()
    jobs: int = option(
        "--jobs", type=click.IntRange(1, 64), default=JOBS, help=f"How many runs go on at once; {JOBS} by default."
    )
    judge: str | None = option(
        "--judge-model", metavar="NAME", help="The model that judges; by default that of --model."
    )

    def suite(self) -> Suite:
        return Suite.read(self.file).only(self.cases, self.columns).repeated(self.repeats)

    def ground(self, suite: Suite, host: HostOptions, models: ModelSettings, *, validated: bool) -> Ground:
        flows = list(suite.flows.values())
        has_agents = not flows or any(FlowFile.read(flow.flow).has_agents for flow in flows if flow.flow is not None)
        plugin = strategy_plugin(self.plugin or nearest_strategy_plugin()) if has_agents else None
        examples = self.examples or examples_of(Path() if plugin is None else plugin.directory)
        example = None if suite.example is None else Example.find(examples, suite.example)
        script = None if example is None else Script.read(example.file)
        panel = {} if script is None else script.panel
        of_example = () if script is None else script.mcp
        of_flows = [text for flow in flows for text in flow.mcp]
        texts = (*of_example, *of_flows, *suite.mcp, *self.servers)
        servers, credentials = read_servers(texts, self.credentials)
        folders_of_flows = {
            Example.find(examples, flow.example).directory for flow in flows if flow.example is not None
        }
        folders_of_flows |= {folder for flow in flows for folder in flow.tools}
        folders = [
            *([] if example is None else [example.directory]),
            *suite.tools,
            *self.tools,
            *sorted(folders_of_flows),
        ]
        tools = read_tool_setups(
            list(dict.fromkeys(map(real_path, folders))),
            credentials,
            self.settings,
            os.environ,
            panel,
            validated=validated,
        )
        return Ground(
            plugin,
            tuple(setup.with_every_tool() if flows else setup for setup in tools),
            servers,
            example,
            examples,
            assignments=self.assignments,
            limits=host.limits,
            models=models,
            strict=host.strict,
            panel=panel,
            allowed=Allowed(self.http, self.code),
        )


@dataclass(frozen=True)
class ReportOptions:
    results: Path | None = option(
        "--results", metavar="FILE", type=FILE, help="Where the results are kept; by default CASES.results.jsonl."
    )
    show: bool = option("--show", is_flag=True, help="Run nothing: report on the results that are kept.")
    fresh: bool = option("--fresh", is_flag=True, help="Begin again, also where an interrupted evaluation could go on.")
    against: str | None = option(
        "--against",
        metavar="OLD",
        help=f"Compare with the evaluation in this file of results; {LAST} is the one before this one.",
    )
    threshold: float | None = option(
        "--threshold",
        metavar="SHARE",
        type=click.FloatRange(0, 1),
        help="Exit with 1 if a column passes a smaller share of its cases, from 0 to 1; by default the file's, or 1.",
    )
    page: Path | None = option("--report", metavar="FILE", type=FILE, help="Write a self-contained HTML page.")
    traces: Path | None = option(
        "--traces",
        metavar="DIR",
        type=DIRECTORY,
        help="Write a trace of each run that does not fit into this folder.",
    )
    junit: Path | None = option("--junit", metavar="FILE", type=FILE, help="Write JUnit's XML, for CI.")
    as_json: bool = json_option()
    color: bool = color_option()

    def results_of(self, cases: Path) -> Path:
        return self.results or cases.with_suffix(".results.jsonl")


# The command `eval`: runs cases with expectations, and says which fit.
#
# Exit codes: 0 every column reaches the threshold, 1 one does not, 2 a mistake in the command or the file of cases.


@click.command(
    "eval",
    epilog=examples(
        "devhost eval examples/helpdesk/evaluation.yaml",
        "devhost eval examples/helpdesk/evaluation.yaml --report evaluation.html --against last",
    ),
)
@takes(EvalOptions, ModelOptions, HostOptions, ReportOptions)
def eval_(asked: EvalOptions, model: ModelOptions, hosting: HostOptions, report: ReportOptions) -> int:
    """Run the cases of a file, and say which fit what they expect.

    Results are kept beside the file. An interrupted evaluation goes on where it was.
    """
    suite = asked.suite()
    _refuse_outputs(report)
    file = report.results_of(suite.file)
    console = open_console(stderr=report.as_json, color=report.color)
    other = None if report.against is None else _other(report, file)
    if report.show:
        evaluation = read_evaluation(file)
    else:
        models = EvaluationModels(model, asked.judge)
        ground = asked.ground(suite, hosting, models.settings, validated=not model.unvalidated)
        planned = plan(suite, ground)
        scripted = models.check(planned)
        if suite.flows and not has_engine():
            go_on_in_flow_environment(click.get_current_context().obj)
        header = header_of(suite, ground, planned)
        secrets = secrets_of(ground.tools, others=mcp_secrets(ground.servers))
        with ResultsFile.begin(file, header, secrets, fresh=report.fresh) as results:
            _open(console, planned, results, scripted=scripted)
            traces = CaseTraces(report.traces, secrets)
            hosted = _hosted(planned[0], ground, hosting, console, traces)
            _run(planned, models, results, traces, file=file, hosting=hosted, jobs=asked.jobs, console=console)
        evaluation = results.evaluation
    summary = Summary.of(evaluation)
    threshold = suite.threshold if report.threshold is None else report.threshold
    _report(summary, threshold, None if other is None else compared(other, evaluation), console, report)
    console.print(Text(f"results: {file}", "dim"), soft_wrap=True)
    return int(not all(total.reaches(threshold) for total in summary.totals))


def _run(  # noqa: PLR0913 - what an evaluation is made of
    planned: Sequence[Planned],
    models: EvaluationModels,
    results: ResultsFile,
    traces: CaseTraces,
    *,
    file: Path,
    hosting: AbstractContextManager[ToolHost],
    jobs: int,
    console: Console,
) -> None:
    """What has no result yet; a host starts only if there is something left to run."""
    if len(results.done) == len(planned):
        return

    def show_how_far() -> None:
        console.print(f"{len(results.done)} of {counted(len(planned), 'run')} kept in {file}.", soft_wrap=True)
        console.print("The same command goes on with the others.")

    with on_ctrl_c(show_how_far), hosting as host, _progress(console) as progress:
        bar = progress.add_task("", total=len(planned), completed=len(results.done), words="")
        for _ in evaluate(host, planned, models, results, jobs, traces):
            progress.update(bar, advance=1, words=_so_far(results))


@contextmanager
def _hosted(
    first: Planned, ground: Ground, options: HostOptions, console: Console, traces: CaseTraces
) -> Iterator[ToolHost]:
    """For all runs."""
    watcher, plugin = _WhileStarting(Screen(console)), None if ground.plugin is None else ground.plugin.directory
    watchers = Watchers(watcher, traces)
    starting: AbstractContextManager[ToolHost]
    if isinstance(first.played, FlowCase):
        starting = FlowSetup(first.played, plugin, ground.tools, servers=ground.servers).host(options, watchers)
    else:
        starting = started_host(first.played, options, watchers, options.storage_beside(None), None)
    with starting as host:
        watcher.screen = None
        yield host


class _WhileStarting(Watcher):
    """Shows what is said before the first run: that a .venv is made, or what an MCP server loses in Dify."""

    def __init__(self, screen: Screen) -> None:
        self.screen: Screen | None = screen

    def printed(self, plugin: str, text: str) -> None:
        if self.screen is not None:
            self.screen.printed(plugin, text)


def _refuse_outputs(options: ReportOptions) -> None:
    if options.page is not None:
        refuse_page(options.page)
    if options.junit is not None:
        refuse_output(options.junit, "--junit")
    if options.results is not None:
        refuse_output(options.results, "--results")


def _other(options: ReportOptions, results: Path) -> Evaluation:
    """The results file itself names the evaluation before the one that is about to run, or that is shown."""
    against = options.against or LAST
    file = results if against == LAST else Path(against)
    if real_path(file) == real_path(results) and file.exists():
        last = read_evaluation(file)
        if last.is_finished and not options.show:
            return last
        file = previous_of(file)
    if against == LAST and not file.exists():
        raise SuiteError(f"--against {LAST}: there is no earlier evaluation in {results}")
    return read_evaluation(file)


def _open(console: Console, planned: Sequence[Planned], results: ResultsFile, *, scripted: bool) -> None:
    cases, columns = {each.case.name for each in planned}, {each.column.name for each in planned}
    counts = ((cases, "case"), (columns, "column"), (planned, "run"))
    console.print(", ".join(counted(len(each), noun) for each, noun in counts))
    if scripted:
        sentence = "scripted: models and judges answer from the cases' scripts, no provider is called"
        console.print(Text(sentence, "yellow"))
    if one_at_a_time(planned):
        console.print("One run at a time: each begins with its reset.")
    if results.done:
        console.print(f"The evaluation goes on: {counted(len(results.done), 'run')} with a result already.")


def _progress(console: Console) -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}"), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _so_far(results: ResultsFile) -> str:
    passed = sum(result.passed for result in results.done.values())
    return f"{passed} passed, {len(results.done) - passed} failed"


def _report(
    summary: Summary, threshold: float, comparison: Comparison | None, console: Console, options: ReportOptions
) -> None:
    parts = [cases_table(summary), failures(summary), columns_table(summary)]
    for part in (*parts, None if comparison is None else comparison_view(comparison)):
        if part is not None:
            console.line()
            console.print(part)
    console.line()
    if options.as_json:
        print_json(json_report(summary, threshold, comparison))
    if options.page is not None:
        options.page.write_text(render_evaluation(summary, threshold, comparison), encoding="utf-8", errors="replace")
        console.print(f"page: {options.page}", soft_wrap=True)
    if options.junit is not None:
        options.junit.write_bytes(junit_xml(summary))
        console.print(f"JUnit: {options.junit}", soft_wrap=True)
