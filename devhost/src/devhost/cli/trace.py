"""The commands `replay` and `report`, which read a trace."""

from dataclasses import dataclass
from pathlib import Path

import click

from devhost.flow.pages import render_flow_page
from devhost.flow.traces import replay_flow
from devhost.options import FILE, PATH, argument, command, option
from devhost.page.page import render_page, write_page
from devhost.terminal.run_view import replay_trace
from devhost.terminal.screen import ViewOptions, open_console
from devhost.trace.lines import read_trace

STDOUT = Path("-")


@dataclass(frozen=True)
class ReplayOptions:
    trace: Path = argument("TRACE", FILE)


@command(ReplayOptions, ViewOptions)
def replay(options: ReplayOptions, shown: ViewOptions) -> int:
    """Show a traced run again, as it was shown.

    For example:
      devhost run --example helpdesk --trace run.jsonl
      devhost replay run.jsonl
    """
    console, trace = open_console(stderr=False, color=shown.color), read_trace(options.trace)
    play = replay_flow if trace.header.command == "flow" else replay_trace
    play(trace, console, shown)
    return 0


@dataclass(frozen=True)
class ReportOptions:
    trace: Path = argument("TRACE", FILE)
    output: Path | None = option(
        "-o, --output FILE",
        "Where the page goes, - for stdout; by default beside the trace, with .html at its end.",
        type=PATH,
    )
    force: bool = option("--force", "Overwrite a file that is not a page of devhost's.")


@command(ReportOptions, name="report")
def report_page(options: ReportOptions) -> int:
    """Make a self-contained page of a traced run.

    For example:
      devhost run --example helpdesk --trace run.jsonl
      devhost report run.jsonl
    """
    trace = read_trace(options.trace)
    render = render_flow_page if trace.header.command == "flow" else render_page
    if options.output == STDOUT:
        page = render(trace)
        click.echo(page.encode(errors="replace"), nl=False)
        return 0
    output = options.output or options.trace.with_suffix(".html")
    write_page(render(trace, output.parent.absolute()), output, options.trace, force=options.force)
    click.echo(output)
    return 0
