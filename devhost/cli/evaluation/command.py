"""The command `eval`: runs cases with expectations, and says which fit.

Exit codes: 0 every column reaches the threshold, 1 one does not, 2 a mistake in the command or the file of cases.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from devhost.cli.evaluation.models import EvaluationModels
from devhost.cli.evaluation.options import LAST, EvalOptions, ReportOptions, eval_options, report_options
from devhost.cli.options.hosting_options import HostOptions, runtime_options, started_host
from devhost.cli.options.model_options import KEY, ModelOptions, model_options
from devhost.errors import SuiteError
from devhost.evaluation.comparison import Comparison, compared
from devhost.evaluation.plan import Ground, Planned, header_of, plan
from devhost.evaluation.reports.as_json import json_report
from devhost.evaluation.reports.html import refuse_output, refuse_page, render_evaluation
from devhost.evaluation.reports.junit import junit_xml
from devhost.evaluation.reports.terminal import cases_table, columns_table, comparison_view, failures
from devhost.evaluation.results import Evaluation, ResultsFile, previous_of, read_evaluation
from devhost.evaluation.running import evaluate
from devhost.evaluation.summary import Summary
from devhost.process.watcher import Watcher
from devhost.terminal.run_view import open_console
from devhost.terminal.signals.interrupt import on_ctrl_c
from devhost.text.command_help import examples
from devhost.text.counted import counted
from devhost.text.secrets import Secrets
from devhost.text.user_file import real_path

REACHED, MISSED = 0, 1
JOBS = 4


@click.command(
    "eval",
    epilog=examples(
        "devhost eval examples/helpdesk/evaluation.yaml",
        "devhost eval examples/helpdesk/evaluation.yaml --report evaluation.html --against last",
    ),
)
@eval_options
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=JOBS, help=f"How many runs go on at once; {JOBS} by default."
)
@click.option("--judge-model", metavar="NAME", help="The model that judges; by default that of --model.")
@model_options
@runtime_options
@report_options
def eval_(  # noqa: PLR0913 - click gives one argument per option
    *,
    eval_options: EvalOptions,
    jobs: int,
    judge_model: str | None,
    model_options: ModelOptions,
    host_options: HostOptions,
    report_options: ReportOptions,
) -> int:
    """Run the cases of a file, and say which fit what they expect.

    Results are kept beside the file. An interrupted evaluation goes on where it was.
    """
    suite = eval_options.suite()
    _refuse_outputs(report_options)
    file = report_options.results_of(suite.file)
    console = open_console(stderr=report_options.as_json, color=report_options.color)
    other = None if report_options.against is None else _other(report_options, file)
    if report_options.show:
        evaluation = read_evaluation(file)
    else:
        models = EvaluationModels(model_options, judge_model)
        ground = eval_options.ground(suite, host_options, models.settings)
        planned = plan(suite, ground)
        models.check(planned)
        header = header_of(suite, ground, planned)
        with ResultsFile.begin(file, header, _secrets(ground), fresh=report_options.fresh) as results:
            _run(planned, models, results, file=file, options=host_options, jobs=jobs, console=console)
        evaluation = results.evaluation
    summary = Summary.of(evaluation)
    threshold = suite.threshold if report_options.threshold is None else report_options.threshold
    _report(summary, threshold, None if other is None else compared(other, evaluation), console, report_options)
    console.print(Text(f"results: {file}", "dim"), soft_wrap=True)
    return REACHED if all(total.reaches(threshold) for total in summary.totals) else MISSED


def _secrets(ground: Ground) -> Secrets:
    return Secrets([*(value for setup in ground.tools for value in setup.secrets), os.environ.get(KEY, "").strip()])


def _run(  # noqa: PLR0913 - what an evaluation is made of
    planned: Sequence[Planned],
    models: EvaluationModels,
    results: ResultsFile,
    *,
    file: Path,
    options: HostOptions,
    jobs: int,
    console: Console,
) -> None:
    """What has no result yet; a host starts only if there is something left to run."""
    _open(console, planned, results, scripted=models.settings.scripted)
    if len(results.done) == len(planned):
        return

    def show_how_far() -> None:
        console.print(f"{len(results.done)} of {counted(len(planned), 'run')} kept in {file}.", soft_wrap=True)
        console.print("The same command goes on with the others.")

    hosting = started_host(planned[0].scenario, options, Watcher(), options.storage_beside(None), None)
    with on_ctrl_c(show_how_far), _progress(console) as progress, hosting as host:
        bar = progress.add_task("", total=len(planned), completed=len(results.done), words="")
        for _ in evaluate(host, planned, models, results, jobs):
            progress.update(bar, advance=1, words=_so_far(results))


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
        click.echo(json.dumps(json_report(summary, threshold, comparison), ensure_ascii=False, indent=2))
    if options.page is not None:
        options.page.write_text(render_evaluation(summary, threshold, comparison), encoding="utf-8", errors="replace")
        console.print(f"page: {options.page}", soft_wrap=True)
    if options.junit is not None:
        options.junit.write_bytes(junit_xml(summary))
        console.print(f"JUnit: {options.junit}", soft_wrap=True)
