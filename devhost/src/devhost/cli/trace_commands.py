"""The commands `replay` and `report`, which read a trace."""

import math
from pathlib import Path
from time import sleep

import click

from devhost.cli.options.hosting_options import trace_argument
from devhost.errors import TraceError
from devhost.flow.page.page import render_flow_page
from devhost.flow.traces import replay_flow
from devhost.page.page import render_page, write_page
from devhost.terminal.replay import replay_trace
from devhost.terminal.run_view import ViewOptions, open_console, view_options
from devhost.trace.lines import Trace, read_trace
from devhost.words import examples

SLOWEST = 0.001
STDOUT = Path("-")


def _refuse_nan(_context: click.Context, _option: click.Parameter, speed: float | None) -> float | None:
    """A range does not exclude NaN."""
    if speed is not None and math.isnan(speed):
        raise click.BadParameter(f"nan is not a number: give {SLOWEST} or more")
    return speed


def _trace_of_runs(file: Path) -> Trace:
    trace = read_trace(file)
    if trace.header.command == "tool":
        raise TraceError(
            f"{file} is a trace of devhost tool: it has the messages of a call of {trace.header.tool}, "
            "one a line, and no run that replay or report could show"
        )
    return trace


@click.command(
    epilog=examples(
        "devhost run --example helpdesk --trace run.jsonl",
        "devhost replay run.jsonl --speed 2",
    )
)
@trace_argument
@click.option(
    "--speed",
    metavar="NUMBER",
    type=click.FloatRange(min=SLOWEST),
    callback=_refuse_nan,
    help="Keep the pauses of the run: 1 as they were, 2 twice as fast. By default without pauses.",
)
@view_options
def replay(*, trace_file: Path, speed: float | None, view_options: ViewOptions) -> int:
    """Show a traced run again, as it was shown."""
    console = open_console(stderr=False, color=view_options.color)
    trace = _trace_of_runs(trace_file)
    play = replay_flow if trace.header.command == "flow" else replay_trace
    play(trace, console, pause=sleep, speed=speed, options=view_options)
    return 0


@click.command(
    "report",
    epilog=examples(
        "devhost run --example helpdesk --trace run.jsonl",
        "devhost report run.jsonl",
    ),
)
@trace_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where the page goes, - for stdout; by default beside the trace, with .html at its end.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that is not a page of devhost's, or behind a link.")
def report_page(*, trace_file: Path, output: Path | None, force: bool) -> int:
    """Make a self-contained page of a traced run."""
    trace = _trace_of_runs(trace_file)
    render = render_flow_page if trace.header.command == "flow" else render_page
    if output == STDOUT:
        page = render(trace)
        click.echo(page.encode(errors="replace"), nl=False)
        return 0
    output = output or trace_file.with_suffix(".html")
    page = render(trace, output.parent.absolute())
    write_page(page, output, trace_file, force=force)
    click.echo(output)
    return 0
