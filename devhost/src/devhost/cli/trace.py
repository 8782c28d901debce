"""The commands `replay` and `report`, which read a trace."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from devhost.errors import NodeFailedError
from devhost.flow.pages import render_flow_page
from devhost.flow.traces import replay_flow
from devhost.node.messages import read_message
from devhost.node.parameters import files_among
from devhost.node.texts import NodeText
from devhost.options import FILE, PATH, argument, command, option
from devhost.page.page import render_page, write_page
from devhost.terminal.run_view import RunView
from devhost.terminal.screen import ViewOptions, open_console
from devhost.terminal.tables import facts_table
from devhost.trace.lines import PrintedLine, Trace, read_trace
from devhost.trace.runs import Piece, TracedRun, run_of, traced_runs


def replay_trace(trace: Trace, console: Console, options: ViewOptions) -> bool:
    """Whether there is a run in it."""
    header = trace.header
    facts = facts_table(header.example, header.description, header.strategy, header.model, trace.notices)
    view = RunView(console, options)
    runs = traced_runs(trace)
    for number, traced in enumerate(runs):
        if number == 0:
            view.open(facts, traced.question, files_among(traced.parameters))
            view.begin_answer()
        else:
            view.go_on(traced.question, files_among(traced.parameters))
        _stream(view, traced)
        view.close(run_of(traced, header.strategy), traced.remark)
    if not runs:
        console.print(facts)
    return bool(runs)


def _stream(view: RunView, traced: TracedRun) -> None:
    text = NodeText()
    lines: list[Piece | PrintedLine] = [*traced.streamed, *traced.printed]
    for coming in sorted(lines, key=lambda line: line.at):
        if isinstance(coming, PrintedLine):
            view.screen.printed(coming.plugin, coming.text)
            continue
        with contextlib.suppress(NodeFailedError):  # what the host refused was never shown
            for message in text.take(read_message(coming.data)):
                view.show(message.on_the_wire())
    if traced.end is not None and traced.end.outcome.error is None:
        for message in text.finish():
            view.show(message.on_the_wire())


@dataclass(frozen=True)
class ReplayOptions:
    trace: Path = argument("TRACE", FILE)


@command(ReplayOptions, ViewOptions)
def replay(options: ReplayOptions, shown: ViewOptions) -> int:
    """Show a traced run again, as it was printed.

    For example:
      devhost run --example helpdesk --trace run.jsonl
      devhost replay run.jsonl
    """
    console = open_console(stderr=False, color=shown.color)
    trace = read_trace(options.trace)
    play = replay_trace
    what = "run"
    began = "the strategy was asked"
    if trace.header.command == "flow":
        play = replay_flow
        what = "flow"
        began = "the flow began"
    if not play(trace, console, shown):
        console.print(Text(f"The trace ends before {began}.", "yellow"))
    if trace.cut_off:
        console.print(Text(f"The last line of the trace is cut off: the {what} was killed.", "yellow"))
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
    if options.output == Path("-"):
        page = render(trace)
        click.echo(page.encode(errors="replace"), nl=False)
        return 0
    output = options.output or options.trace.with_suffix(".html")
    write_page(render(trace, output.parent.absolute()), output, options.trace, force=options.force)
    click.echo(output)
    return 0
