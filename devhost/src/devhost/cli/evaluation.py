"""`devhost eval`: its options, and the run of its cases."""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from devhost.errors import SuiteError
from devhost.evaluation.report import json_report, junit_xml, render_evaluation, show_evaluation
from devhost.evaluation.results import (
    INTERRUPTED,
    PREVIOUS,
    Comparison,
    Evaluation,
    Header,
    Result,
    ResultsFile,
    compared,
    kept_beside,
    read_evaluation,
)
from devhost.evaluation.runs import CaseTraces, EvaluationModels, evaluate, one_at_a_time
from devhost.evaluation.suite import Ground, Planned, Suite, header_of, plan
from devhost.flow.cases import FlowCase
from devhost.flow.document import FlowFile
from devhost.flow.outside import Allowed
from devhost.flow.turn import go_on_in_flow_environment, has_engine
from devhost.flowing import FlowSetup, allow_code_option
from devhost.host.host import ToolHost
from devhost.hosting import (
    HostOptions,
    ModelOptions,
    credential_option,
    mcp_option,
    secrets_of,
    started_host,
    strategy_plugin,
)
from devhost.models.scripted.script import Script
from devhost.options import FILE, argument, color_option, command, json_option, option, print_json
from devhost.page.page import refuse_to_destroy
from devhost.plugin.declaration import nearest_strategy_plugin
from devhost.process.session import Watcher, Watchers
from devhost.reach import allow_files_option, allow_http_option
from devhost.scenario import Example, examples_of, read_tool_setups
from devhost.terminal.screen import Screen, on_ctrl_c, open_console
from devhost.tools.mcp import read_servers
from devhost.tools.mcp import secrets_of as mcp_secrets
from devhost.words import counted

# What is evaluated, with what, and where the results go: the options of `devhost eval` as two values.

LAST = "last"
JOBS = 4


@dataclass(frozen=True)
class EvalOptions:
    file: Path = argument("CASES", FILE)
    cases: tuple[str, ...] = option("--case NAME...", "Only this case, or those of a pattern with *.")
    columns: tuple[str, ...] = option("--column NAME...", "Only this column, or those of a pattern.")
    assignments: tuple[str, ...] = option("--param KEY=VALUE...", "A parameter of each run, in place of the file's.")
    repeats: int | None = option(
        "--repeats NUMBER", "How often each case is run, instead of the file's.", type=click.IntRange(min=1)
    )
    tools: tuple[Path, ...] = option("--tools DIR...", "A further Dify tool plugin.")
    servers: tuple[str, ...] = mcp_option()
    credentials: tuple[str, ...] = credential_option("As for devhost run.")
    settings: tuple[str, ...] = option("--set TOOL.PARAM=VALUE...", "As for devhost run.", hidden=True)
    plugin: Path | None = option("--plugin DIR", "The strategy plugin; by default the nearest one.")
    examples: Path | None = option("--examples DIR", "The folder of the examples, as for devhost run.")
    http: bool = allow_http_option()
    folders: tuple[Path, ...] = allow_files_option()
    code: bool = allow_code_option()
    jobs: int = option(
        "--jobs NUMBER", f"How many runs go on at once; {JOBS} by default.", type=click.IntRange(1, 64), default=JOBS
    )
    judge: str | None = option("--judge-model NAME", "The model that judges; by default that of --model.")

    def suite(self) -> Suite:
        return Suite.read(self.file).only(self.cases, self.columns, self.repeats)

    def ground(self, suite: Suite, host: HostOptions, models: EvaluationModels, *, validated: bool) -> Ground:
        flows = list(suite.flows.values())
        has_agents = not flows or any(FlowFile.read(flow.flow).has_agents for flow in flows if flow.flow is not None)
        plugin = strategy_plugin(self.plugin or nearest_strategy_plugin()) if has_agents else None
        examples = self.examples or examples_of(Path() if plugin is None else plugin.directory)
        example = None if suite.example is None else Example.find(examples, suite.example)
        script = None if example is None else Script.read(example.file)
        of_scripts = [*(() if script is None else script.mcp), *(text for flow in flows for text in flow.mcp)]
        servers, credentials = read_servers((*of_scripts, *suite.mcp, *self.servers), self.credentials)
        named = [suite.example, *(flow.example for flow in flows)]
        folders = [Example.find(examples, name).directory for name in named if name is not None]
        folders += [*suite.tools, *self.tools, *(folder for flow in flows for folder in flow.tools)]
        panel = {} if script is None else script.panel
        tools = read_tool_setups(folders, credentials, self.settings, os.environ, panel, validated=validated)
        return Ground(
            plugin,
            tuple(setup.with_every_tool() if flows else setup for setup in tools),
            servers,
            example,
            limits=host.limits,
            scripted=models.scripted,
            models=models.settings,
            assignments=self.assignments,
            strict=host.strict,
            panel=panel,
            allowed=Allowed(self.http, self.code),
        )


@dataclass(frozen=True)
class ReportOptions:
    results: Path | None = option("--results FILE", "Where the results are kept; by default CASES.results.jsonl.")
    fresh: bool = option("--fresh", "Start over, even if an interrupted evaluation could continue.")
    show: bool = option("--show", "Run nothing: show the kept results.")
    against: str | None = option(
        "--against OLD", f"Compare with the evaluation in this file of results; {LAST} is the one before this one."
    )
    threshold: float | None = option(
        "--threshold SHARE",
        "Exit with 1 if a column passes a smaller share of its cases, from 0 to 1; by default the file's, or 1.",
        type=click.FloatRange(0, 1),
    )
    page: Path | None = option("--report FILE", "Write a self-contained HTML page.")
    traces: Path | None = option("--traces DIR", "Write a trace of each failed run into this folder.")
    junit: Path | None = option("--junit FILE", "Write JUnit's XML, for CI.")
    as_json: bool = json_option()
    color: bool = color_option()


@command(EvalOptions, ModelOptions, HostOptions, ReportOptions, name="eval")
def eval_(asked: EvalOptions, model: ModelOptions, hosting: HostOptions, report: ReportOptions) -> int:
    """Run the cases of a file, and say which ones pass. Results are kept beside the file.

    For example:
      devhost eval examples/helpdesk/evaluation.yaml
      devhost eval examples/helpdesk/evaluation.yaml --report evaluation.html --against last
    """
    suite = asked.suite()
    if report.page is not None:
        refuse_to_destroy(report.page, suite.file, force=False)
    if report.junit is not None and not report.junit.parent.is_dir():
        raise SuiteError(f"--junit {report.junit}: the folder {report.junit.parent} does not exist")
    file = report.results or suite.file.with_suffix(".results.jsonl")
    console = open_console(stderr=report.as_json, color=report.color)
    if report.show:
        evaluation = read_evaluation(file)
        other = _other(report, file, None)
    else:
        models = EvaluationModels(model, asked.judge)
        ground = asked.ground(suite, hosting, models, validated=not model.unvalidated)
        planned = plan(suite, ground)
        models.check(planned)
        if suite.flows and not has_engine():
            go_on_in_flow_environment(click.get_current_context().obj)
        last = read_evaluation(file) if file.is_file() else None
        other = _other(report, file, last)
        _open(console, suite, planned, scripted=models.scripted)
        flows = [each.played for each in planned if isinstance(each.played, FlowCase)]
        of_flows = [secret for flow in flows for secret in flow.file.secrets]
        secrets = secrets_of(ground.tools, others=[*mcp_secrets(ground.servers), *of_flows])
        header = header_of(suite, ground, planned)
        results = ResultsFile(file, header, secrets, _done(console, file, last, header, fresh=report.fresh))
        done = {result.key for result in results.evaluation.results}
        missing = [each for each in planned if each.key not in done]
        traces = CaseTraces(report.traces, secrets)
        hosted = _hosted(planned[0], ground, hosting, console, traces)

        def show_how_far() -> None:
            console.print(f"{_counts(results.evaluation)} of {counted(len(planned), 'run')}; the same command goes on.")

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}"), TimeElapsedColumn())
        bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        with on_ctrl_c(show_how_far), hosted as host, bars as progress:
            bar = progress.add_task("", total=len(planned), completed=len(done), words="")
            for result in evaluate(host, missing, models, asked.jobs, traces):
                results.add(result)
                progress.update(bar, advance=1, words=_counts(results.evaluation))
        evaluation = results.evaluation
    threshold = suite.threshold if report.threshold is None else report.threshold
    _report(evaluation, threshold, None if other is None else compared(other, evaluation), console, report)
    if not evaluation.is_finished:
        console.print(Text(f"interrupted: {_how_far(evaluation)} have a result; without --show it goes on", "yellow"))
    console.print(Text(f"results: {file}", "dim"), soft_wrap=True)
    return int(not evaluation.is_finished or not all(total.reaches(threshold) for total in evaluation.totals))


@contextmanager
def _hosted(
    first: Planned, ground: Ground, options: HostOptions, console: Console, traces: CaseTraces
) -> Iterator[ToolHost]:
    """For all runs."""
    watchers = Watchers(_WhileStarting(Screen(console)), traces)
    starting: AbstractContextManager[ToolHost]
    if isinstance(first.played, FlowCase):
        starting = FlowSetup(first.played, ground.plugins, ground.tools, servers=ground.servers).host(options, watchers)
    else:
        starting = started_host(first.played, options, watchers, options.storage_beside(None), None)
    with starting as host:
        watchers.watchers = (traces,)
        yield host


class _WhileStarting(Watcher):
    """Shows what is said before the first run: that a .venv is made, or what an MCP server loses in Dify."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def printed(self, plugin: str, text: str) -> None:
        self._screen.printed(plugin, text)


def _other(options: ReportOptions, results: Path, last: Evaluation | None) -> Evaluation | None:
    """The evaluation to compare with; `last`: what the results hold before this one."""
    if options.against is None:
        return None
    if options.against != LAST:
        return read_evaluation(Path(options.against))
    if last is not None and last.is_finished:
        return last
    previous = kept_beside(results, PREVIOUS)
    if not previous.exists():
        raise SuiteError(f"--against {LAST}: there is no earlier evaluation in {previous}")
    return read_evaluation(previous)


def _done(console: Console, file: Path, last: Evaluation | None, header: Header, *, fresh: bool) -> tuple[Result, ...]:
    """What an interrupted evaluation leaves to this one. Any other one is moved, so that it is not overwritten."""
    if last is None or not last.results:
        return ()
    if last.is_finished:
        file.replace(kept_beside(file, PREVIOUS))
        return ()
    if last.header.digest == header.digest and not fresh:
        console.print(f"goes on: {_how_far(last)} are there; --fresh begins again")
        return last.results
    kept = file.replace(kept_beside(file, INTERRUPTED))
    why = "" if fresh else "cases, scripts or options changed since the interrupted evaluation; "
    console.print(f"begins again: {why}{_how_far(last)} are kept in {kept}", soft_wrap=True)
    return ()


def _how_far(evaluation: Evaluation) -> str:
    return f"{len(evaluation.results)} of {counted(evaluation.header.runs, 'run')}"


def _open(console: Console, suite: Suite, planned: Sequence[Planned], *, scripted: bool) -> None:
    parts = [(suite.cases, "case"), (suite.columns, "column"), (planned, "run")]
    console.print(", ".join(counted(len(each), noun) for each, noun in parts))
    if scripted:
        sentence = "scripted: models and judges answer from the cases' scripts, no provider is called"
        console.print(Text(sentence, "yellow"))
    if one_at_a_time(planned):
        console.print("One run at a time: each begins with its reset.")


def _counts(evaluation: Evaluation) -> str:
    passed = sum(result.passed for result in evaluation.results)
    return f"{passed} passed, {len(evaluation.results) - passed} failed"


def _report(
    evaluation: Evaluation, threshold: float, comparison: Comparison | None, console: Console, options: ReportOptions
) -> None:
    show_evaluation(evaluation, comparison, console)
    if options.as_json:
        print_json(json_report(evaluation, threshold, comparison))
    if options.page is not None:
        options.page.write_text(
            render_evaluation(evaluation, threshold, comparison), encoding="utf-8", errors="replace"
        )
        console.print(f"page: {options.page}", soft_wrap=True)
    if options.junit is not None:
        options.junit.write_bytes(junit_xml(evaluation))
        console.print(f"JUnit: {options.junit}", soft_wrap=True)
