"""`devhost eval`: runs the cases of a file and reports the results."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from devhost.case_options import allow_code_option
from devhost.errors import ParameterError, SuiteError
from devhost.evaluation.history import read_history
from devhost.evaluation.merging import merge
from devhost.evaluation.planning import PlannedEvaluation, SharedSetup, header_of, plan
from devhost.evaluation.report import json_report, junit_xml, show_evaluation, write_evaluation
from devhost.evaluation.results import INTERRUPTED, PREVIOUS, ResultsFile, ResultsHeader, ResultsReader, kept_beside
from devhost.evaluation.runs import Budget, CaseTraces, EvaluationModels, Evaluator, evaluate, one_at_a_time
from devhost.evaluation.scoring import load_scorers
from devhost.evaluation.shard import Shard
from devhost.evaluation.suite import EvaluationLimits, Suite
from devhost.evaluation.table import Evaluation, read_evaluation
from devhost.evaluation.versus import compared
from devhost.flow.document import FlowFile
from devhost.flow.outside import OutsideAccess
from devhost.flow.turn import go_on_in_flow_environment, has_engine
from devhost.host.host import ToolHost
from devhost.hosting import (
    HostOptions,
    ModelOptions,
    credential_option,
    mcp_option,
    secrets_of,
    strategy_plugin,
)
from devhost.options import FILE, argument, color_option, command, json_option, option, print_json
from devhost.page.page import refuse_to_destroy
from devhost.plugin.declaration import nearest_strategy_plugin
from devhost.process.session import Watcher, Watchers
from devhost.reach import allow_files_option, allow_http_option
from devhost.scenario import Example, examples_of, read_tool_setups
from devhost.script import Script
from devhost.terminal.screen import Screen, on_ctrl_c, open_console
from devhost.text import worded
from devhost.tools.mcp import read_servers
from devhost.tools.mcp import secrets_of as mcp_secrets
from devhost.words import counted, price_text

# The options of `devhost eval`: the cases, the plugins and models, the files of results, and the report.

LAST = "last"
JOBS = 4
SUFFIX = ".results.jsonl"
MERGED = "merged.results.jsonl"
LIMIT_REACHED = 3
"""The exit code of an evaluation that stopped at its price limit."""


@dataclass(frozen=True)
class EvalOptions:
    """The options that say what is evaluated and how."""

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
    shard: Shard | None = option(
        "--shard NUMBER/OF",
        "Only this part of the runs, such as 2/5; devhost eval merge puts the parts together.",
        callback=lambda _context, _option, given: given and Shard.read(given),
    )
    budget: Decimal | None = option(
        "--budget PRICE",
        "Begin no further run once all runs have spent this much; by default the file's limits: price.",
        callback=lambda _context, _option, given: given and _price(given),
    )

    def suite(self) -> Suite:
        """Reads the file of cases and keeps only the chosen cases and columns."""
        return Suite.read(self.file).only(self.cases, self.columns, self.repeats)

    def ground(self, suite: Suite, host: HostOptions, models: EvaluationModels, *, validated: bool) -> SharedSetup:
        """Reads the plugins, tools, servers and scripts that all runs share."""
        flows = list(suite.flows.values())
        has_agents = not flows or any(FlowFile.read(flow.flow).has_agents for flow in flows if flow.flow is not None)
        plugin = None
        if has_agents:
            plugin = strategy_plugin(self.plugin or nearest_strategy_plugin())
        examples = self.examples or examples_of(Path() if plugin is None else plugin.directory)
        if suite.example is None:
            example = None
        else:
            example = Example.find(examples, suite.example)
        if example is None:
            script = None
        else:
            script = Script.read(example.file)
        of_scripts = [*(() if script is None else script.mcp), *(text for flow in flows for text in flow.mcp)]
        servers, credentials = read_servers((*of_scripts, *suite.mcp, *self.servers), self.credentials)
        named = [suite.example, *(flow.example for flow in flows)]
        folders = [Example.find(examples, name).directory for name in named if name is not None]
        folders += [*suite.tools, *self.tools, *(folder for flow in flows for folder in flow.tools)]
        panel = {} if script is None else script.panel
        tools = read_tool_setups(folders, credentials, self.settings, os.environ, panel, validated=validated)
        return SharedSetup(
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
            allowed=OutsideAccess(self.http, self.code),
        )


def _price(text: str) -> Decimal:
    with worded(lambda why: ParameterError(f"--budget {text!r}: {why}")):
        limits = EvaluationLimits.model_validate({"price": text})
    return limits.price or Decimal(0)


@dataclass(frozen=True)
class ResultsOptions:
    """The options for the files that an evaluation writes."""

    results: Path | None = option("--results FILE", "Where the results are kept; by default CASES.results.jsonl.")
    fresh: bool = option("--fresh", "Start over, even if an interrupted evaluation could continue.")
    show: bool = option("--show", "Run nothing: show the kept results.")
    traces: Path | None = option("--traces DIR", "Write a trace of each failed run into this folder.")


@dataclass(frozen=True)
class EvalReportOptions:
    """The options for the report of an evaluation."""

    against: str | None = option(
        "--against OLD", f"Compare with the evaluation in this file of results; {LAST} is the one before this one."
    )
    threshold: float | None = option(
        "--threshold SHARE",
        "Exit with 1 if a column passes a smaller share of its cases, from 0 to 1; by default the file's, or 1.",
        type=click.FloatRange(0, 1),
    )
    page: Path | None = option("--report FILE", "Write a self-contained HTML page.")
    history: Path | None = option(
        "--history DIR", "Show this evaluation after earlier ones, whose files of results are in this folder."
    )
    junit: Path | None = option("--junit FILE", "Write JUnit's XML, for CI.")
    as_json: bool = json_option()
    color: bool = color_option()

    def refuse(self, source: Path) -> None:
        """Raises an error if an output file cannot be written or must not be overwritten, such as the `source`."""
        if self.page is not None:
            refuse_to_destroy(self.page, source, force=False)
        if self.junit is not None and not self.junit.parent.is_dir():
            raise SuiteError(f"--junit {self.junit}: the folder {self.junit.parent} does not exist")

    def other(self, results: Path, last: Evaluation | None) -> Evaluation | None:
        """Returns the evaluation to compare with. `last` is the evaluation that is now in the file of results."""
        if self.against is None:
            return None
        if self.against != LAST:
            return read_evaluation(Path(self.against))
        if last is not None and last.is_finished:
            return last
        previous = kept_beside(results, PREVIOUS)
        if not previous.exists():
            raise SuiteError(f"--against {LAST}: there is no earlier evaluation in {previous}")
        return read_evaluation(previous)


class EvalCommand(click.Command):
    """The command `devhost eval CASES`, which also accepts `devhost eval merge FILES`."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - click passes anything
    ) -> click.Context:
        if args[:1] == [merge_.name]:
            return merge_.make_context(f"{info_name} {merge_.name}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@command(EvalOptions, ModelOptions, HostOptions, ResultsOptions, EvalReportOptions, name="eval", cls=EvalCommand)
def eval_(
    asked: EvalOptions,
    model: ModelOptions,
    hosting: HostOptions,
    kept: ResultsOptions,
    report: EvalReportOptions,
) -> int:
    """Run the cases of a file, and say which ones pass. The results are written beside the file.

    For example:
      devhost eval examples/helpdesk/evaluation.yaml
      devhost eval examples/helpdesk/evaluation.yaml --report evaluation.html --against last
      devhost eval merge shards/*.results.jsonl --report evaluation.html
    """
    suite = asked.suite()
    report.refuse(suite.file)
    suffix = SUFFIX
    if asked.shard is not None:
        suffix = asked.shard.suffix
    file = kept.results or suite.file.with_suffix(suffix)
    console = open_console(stderr=report.as_json, color=report.color)
    threshold = suite.threshold
    if kept.show:
        evaluation = read_evaluation(file)
        other = report.other(file, None)
        left_out = 0
    else:
        running = PreparedEvaluation(asked, suite, model, hosting, console)
        last = None
        if file.is_file():
            last = read_evaluation(file)
        other = report.other(file, last)
        left_out = running.run(file, last, kept)
        evaluation = read_evaluation(file)
    code = _report(evaluation, other, file, threshold, console, report)
    if left_out:
        currencies = dict.fromkeys(total.currency for total in evaluation.totals)
        spent = f"{price_text(evaluation.spent)} {' '.join(currencies)}".strip()
        sentence = f"the price limit is reached: all runs have spent {spent}, and {counted(left_out, 'run')} "
        console.print(Text(f"{sentence}did not begin; to continue, use a larger --budget", "red"))
        return LIMIT_REACHED
    return code


@dataclass(frozen=True)
class MergeOptions:
    """The options of `devhost eval merge`."""

    files: tuple[Path, ...] = argument("FILES...", FILE)
    results: Path = option(
        "--results FILE", f"Where the merged results are written; by default {MERGED}.", default=Path(MERGED)
    )


@command(MergeOptions, EvalReportOptions, name="merge")
def merge_(asked: MergeOptions, report: EvalReportOptions) -> int:
    """Merge the shards of an evaluation, and report them as if one machine had run all cases.

    For example:
      devhost eval merge shards/*.results.jsonl --report evaluation.html
    """
    for file in asked.files:
        report.refuse(file)
    console = open_console(stderr=report.as_json, color=report.color)
    last = None
    if asked.results.is_file():
        last = read_evaluation(asked.results)
    other = report.other(asked.results, last)
    evaluation = merge(asked.files, asked.results, last)
    console.print(f"{counted(len(asked.files), 'shard')}, {counted(evaluation.header.runs, 'run')}")
    return _report(evaluation, other, asked.results, evaluation.header.threshold, console, report)


@dataclass(frozen=True)
class PreparedEvaluation:
    """An evaluation that is ready to run."""

    asked: EvalOptions
    suite: Suite
    model: ModelOptions
    hosting: HostOptions
    console: Console

    def run(self, file: Path, last: Evaluation | None, kept: ResultsOptions) -> int:
        """Writes the results into the file, and returns how many runs did not begin because the limit is reached."""
        suite = self.suite
        console = self.console
        models = EvaluationModels(self.model, self.asked.judge)
        ground = self.asked.ground(suite, self.hosting, models, validated=not self.model.unvalidated)
        every = plan(suite, ground)
        planned = every
        if self.asked.shard is not None:
            planned = tuple(self.asked.shard.part(every))
        models.check(planned)
        most = self.asked.budget or suite.limits.price
        if most is not None:
            models.check_prices(planned)
        scorers = load_scorers(suite.file.parent, (each.expected for each in planned), allowed=self.asked.code)
        if suite.flows and not has_engine():
            go_on_in_flow_environment(click.get_current_context().obj)
        _open(console, suite, planned, scripted=models.scripted)
        of_flows = [secret for each in every for secret in each.played.played.secrets]
        secrets = secrets_of(ground.tools, others=[*mcp_secrets(ground.servers), *of_flows])
        header = header_of(suite, ground, every, self.asked.shard)
        done = _done(console, file, last, header, fresh=kept.fresh)
        results = ResultsFile(file, header, secrets, done)
        missing = [each for each in planned if each.key not in results.done]
        if not missing:
            return 0
        traces = CaseTraces(kept.traces, secrets)
        hosted = _hosted(missing[0], ground, self.hosting, console, traces)

        def show_how_far() -> None:
            how_far = f"{_counts(results)} of {counted(len(planned), 'run')}"
            console.print(f"{how_far}; run the same command to continue.")

        budget = None
        if most is not None:
            budget = Budget(most, results.spent)
        left_out = 0
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}"), TimeElapsedColumn())
        bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        with on_ctrl_c(show_how_far), hosted as host, bars as progress:
            evaluator = Evaluator(host, models, traces, scorers, budget)
            bar = progress.add_task("", total=len(planned), completed=results.ended, words="")
            for result in evaluate(evaluator, missing, self.asked.jobs):
                if result is None:
                    left_out += 1
                    continue
                results.add(result)
                progress.update(bar, advance=1, words=_counts(results))
        return left_out


@contextmanager
def _hosted(
    first: PlannedEvaluation, ground: SharedSetup, options: HostOptions, console: Console, traces: CaseTraces
) -> Iterator[ToolHost]:
    """Starts the host of all runs."""
    watchers = Watchers(_WhileStarting(Screen(console)), traces)
    case = replace(first.played, setups=ground.tools)
    with case.host(options, watchers) as host:
        watchers.watchers = (traces,)
        yield host


class _WhileStarting(Watcher):
    """Shows output before the first run, such as the creation of a .venv or a limitation of an MCP server in Dify."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def printed(self, plugin: str, text: str) -> None:
        self._screen.printed(plugin, text)


def _done(
    console: Console, file: Path, last: Evaluation | None, header: ResultsHeader, *, fresh: bool
) -> ResultsReader | None:
    """Returns the results of an interrupted evaluation that the new one continues.

    The file of any other evaluation is renamed, so that it is not overwritten.
    """
    if last is None or not last.runs:
        return None
    if last.is_finished:
        file.replace(kept_beside(file, PREVIOUS))
        return None
    is_same = (last.header.digest, last.header.shard) == (header.digest, header.shard)
    if is_same and not fresh:
        console.print(f"continuing: {_how_far(last)} have a result; --fresh starts over")
        return last.reader
    kept = file.replace(kept_beside(file, INTERRUPTED))
    why = ""
    if not fresh:
        why = "cases, scripts or options changed since the interrupted evaluation; "
    console.print(f"starting over: {why}{_how_far(last)} are kept in {kept}", soft_wrap=True)
    return None


def _how_far(evaluation: Evaluation) -> str:
    return f"{len(evaluation.runs)} of {counted(evaluation.header.runs_here, 'run')}"


def _open(console: Console, suite: Suite, planned: Sequence[PlannedEvaluation], *, scripted: bool) -> None:
    parts = [(suite.cases, "case"), (suite.columns, "column"), (planned, "run")]
    console.print(", ".join(counted(len(each), noun) for each, noun in parts))
    if scripted:
        sentence = "scripted: models and judges answer from the cases' scripts, no provider is called"
        console.print(Text(sentence, "yellow"))
    if one_at_a_time(planned):
        console.print("One run at a time: each begins with its reset.")


def _counts(results: ResultsFile) -> str:
    return f"{results.passed} passed, {results.ended - results.passed} failed"


def _report(  # noqa: PLR0913, PLR0917 - the parts of a report
    evaluation: Evaluation,
    other: Evaluation | None,
    file: Path,
    threshold: float,
    console: Console,
    options: EvalReportOptions,
) -> int:
    """Reports an evaluation and returns the exit code.

    The code of a finished shard is 0, because only all shards together show whether the threshold is reached.
    """
    if options.threshold is not None:
        threshold = options.threshold
    comparison = None
    if other is not None:
        comparison = compared(other, evaluation)
    history = None
    if options.history is not None:
        history = read_history(options.history, evaluation, file)
    show_evaluation(evaluation, comparison, console, history)
    if options.as_json:
        print_json(json_report(evaluation, threshold, comparison))
    if options.page is not None:
        write_evaluation(options.page, evaluation, threshold, comparison, history)
        console.print(f"page: {options.page}", soft_wrap=True)
    if options.junit is not None:
        options.junit.write_bytes(junit_xml(evaluation))
        console.print(f"JUnit: {options.junit}", soft_wrap=True)
    if not evaluation.is_finished:
        console.print(Text(f"interrupted: {_how_far(evaluation)} have a result; to continue, omit --show", "yellow"))
    console.print(Text(f"results: {file}", "dim"), soft_wrap=True)
    if evaluation.header.shard and evaluation.is_finished:
        shard = evaluation.header.shard
        console.print(f"shard {shard}: devhost eval merge says whether all shards together reach the threshold")
        return 0
    return int(not evaluation.is_finished or not all(total.reaches(threshold) for total in evaluation.totals))
