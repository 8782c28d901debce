"""The command `fork`: goes on from a round of a traced run, with something changed."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from devhost.cli.options.hosting_options import HostOptions, runtime_options, started_host
from devhost.cli.options.model_options import ModelOptions, model_options
from devhost.cli.options.trace_options import TRACE, trace_argument, traced
from devhost.cli.recording.fork_options import ForkOptions, fork_options
from devhost.comparison.comparison import Comparison
from devhost.comparison.fork_report import ForkReport
from devhost.comparison.page import render_fork
from devhost.comparison.sides import Side
from devhost.comparison.tables import show_fork
from devhost.errors import TraceError
from devhost.fork.fork import Fork, find_origin
from devhost.fork.model import ForkedModel
from devhost.fork.rounds import round_lines
from devhost.node.outputs.report import report
from devhost.node.outputs.run import Run
from devhost.page.file import refuse_to_destroy, write_page
from devhost.process.watcher import Watchers
from devhost.recording.case import runs_of
from devhost.terminal.run_view import RunView, open_console
from devhost.terminal.signals.interrupt import on_ctrl_c
from devhost.terminal.view_options import ViewOptions, view_options
from devhost.text.command_help import examples
from devhost.trace.reader import read_trace
from devhost.trace.runs import traced_runs

ENDED_WELL, RUN_FAILED = 0, 1
RECORDED, FORKED = "recorded", "fork"


@click.command(
    epilog=examples(
        "devhost run --example helpdesk --trace run.jsonl",
        "devhost fork run.jsonl",
        'devhost fork run.jsonl --at 1 --instruction "Answer in one sentence." --report fork.html',
    )
)
@trace_argument
@fork_options
@model_options
@runtime_options
@click.option("--trace", "new_trace", metavar="FILE", type=TRACE, help="Write the trace of the new run, too.")
@click.option("--report", "page_file", metavar="FILE", type=click.Path(path_type=Path), help="Write an HTML page, too.")
@click.option("--force", is_flag=True, help="With --report: overwrite a file that is not a page of devhost's.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and the rest on stderr.")
@view_options
def fork(  # noqa: PLR0913 - click gives one argument per option
    *,
    trace_file: Path,
    new_trace: Path | None,
    fork_options: ForkOptions,
    model_options: ModelOptions,
    host_options: HostOptions,
    page_file: Path | None,
    force: bool,
    as_json: bool,
    view_options: ViewOptions,
) -> int:
    """Run a traced run again from a round on, with a change.

    Both runs are shown side by side. The rounds until there are as recorded. After them the model is a real one, or
    that of --script, or else what was recorded. Tools answer from the recording, and a call that is not in it fails;
    --live-tools runs them.
    """
    origin = find_origin(read_trace(trace_file), trace_file, fork_options.question)
    if fork_options.question is None and (count := len(runs_of(origin.trace, trace_file))) > 1:
        click.echo(f"forking the last of {count} questions; --question NUMBER names another one", err=True)
    if fork_options.at is None:
        click.echo("\n".join([*round_lines(origin.run), "Say how many of these rounds stay: --at ROUND"]))
        return ENDED_WELL
    made = fork_options.read(origin, fork_options.at, host_options.limits)
    model = fork_options.model(made, origin, model_options)
    if page_file is not None:
        refuse_to_destroy(page_file, trace_file, force=force)
    console = open_console(stderr=as_json, color=view_options.color)
    with _trace_of_its_own(new_trace, trace_file) as own:
        run = _played(made, model, host_options, RunView(console, view_options), own, new_trace)
        right = Side.of(FORKED, model.description.name, traced_runs(read_trace(own))[-1], origin.strategy)
    left = Side.of(RECORDED, origin.trace.header.model.name, origin.run, origin.strategy)
    found = ForkReport.of(Comparison.of(left, right), made, origin, model)
    if as_json:
        click.echo(
            json.dumps(
                {**found.as_json(), "run": report(run, model.description, model.spent())}, ensure_ascii=False, indent=2
            )
        )
    show_fork(found, console)
    if page_file is not None:
        write_page(render_fork(found), page_file, trace_file, force=force)
        click.echo(page_file, err=as_json)
    return RUN_FAILED if run.error or (host_options.strict and run.findings) else ENDED_WELL


@contextmanager
def _trace_of_its_own(file: Path | None, forked: Path) -> Iterator[Path]:
    """A temporary one if none is kept: what is compared is read from traces."""
    if file is not None:
        if file.exists() and file.samefile(forked):
            raise TraceError(f"--trace {file} is the trace that is forked: name another file")
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="devhost-fork-") as folder:
        yield Path(folder) / "fork.jsonl"


def _played(  # noqa: PLR0913, PLR0917 - a run, and where it is shown and kept
    made: Fork, model: ForkedModel, options: HostOptions, view: RunView, own: Path, kept: Path | None
) -> Run:
    scenario, question = made.scenario, made.past.run.question
    described = model.description
    notices = (*scenario.notices, *scenario.guesses(question))
    name, strategy = scenario.name, scenario.strategy.identity.name
    with traced(own, scenario, described, options.transport, command="run", query=question) as watcher:
        view.open(name, scenario.description, strategy, described, question, notices=notices)
        watchers = Watchers(watcher, view.screen)
        hosting = started_host(scenario, options, watchers, options.storage_beside(kept), kept)
        try:
            with on_ctrl_c(view.show_how_far), hosting as host, on_ctrl_c(view.show_how_far):
                view.begin_answer()
                run = made.play(host, model, view.show, strict=options.strict)
                watcher.remark(model.afterwards)
        finally:
            view.abandon()
        view.finish_answer()
    return run
