"""The commands `replay`, `report` and `compare`, which read traces."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from devhost.comparison.comparison import compared, names_of, read_compared
from devhost.comparison.printed import show_runs
from devhost.comparison.side import Side
from devhost.errors import NodeFailedError
from devhost.node.messages import read_message
from devhost.node.parameters import files_among
from devhost.node.texts import NodeText
from devhost.options import FILE, PATH, argument, color_option, command, json_option, option, print_json
from devhost.page.page import render_page, write_page
from devhost.protocol.wire import JsonObject
from devhost.terminal.screen import ViewOptions, open_console
from devhost.terminal.tables import facts_table, flow_facts
from devhost.terminal.turn_view import TurnView
from devhost.trace.lines import PrintedLine, Trace, read_trace
from devhost.trace.runs import AnswerPiece, TracedRun
from devhost.trace.turns import TracedTurn, traced_turns


def replay_trace(trace: Trace, console: Console, options: ViewOptions) -> bool:
    """Shows each turn as during the run, and returns whether the trace has a turn."""
    header = trace.header
    view = TurnView(console, options)
    turns = traced_turns(trace)
    for number, turn in enumerate(turns):
        if number == 0:
            facts = flow_facts(turn.facts, trace.notices, header.model.notice)
            if turn.is_direct:
                facts = facts_table(header.example, header.description, header.strategy, header.model, trace.notices)
            view.open(facts, turn.question, _files(turn))
            view.begin_answer()
        else:
            view.go_on(turn.question, _files(turn))
        if turn.is_direct:
            for run in turn.traced:
                _stream(view, run)
        for event in turn.events:
            view.show(event, turn)
        view.close(turn, " ".join(run.remark for run in turn.traced if run.remark))
        if turn.failures:
            view.show_expectations(turn.failures)
    if not turns and header.command != "flow":
        console.print(facts_table(header.example, header.description, header.strategy, header.model, trace.notices))
    return bool(turns)


def _files(turn: TracedTurn) -> list[JsonObject]:
    """Returns the files of the question."""
    if turn.is_direct:
        return [file for run in turn.traced for file in files_among(run.parameters)]
    return [{"filename": name} for name in turn.facts.files]


def _stream(view: TurnView, traced: TracedRun) -> None:
    text = NodeText()
    lines: list[AnswerPiece | PrintedLine] = [*traced.streamed, *traced.printed]
    for coming in sorted(lines, key=lambda line: line.at):
        if isinstance(coming, PrintedLine):
            view.screen.printed(coming.plugin, coming.text)
            continue
        with contextlib.suppress(NodeFailedError):  # a message that the host refused was never shown
            for message in text.read(read_message(coming.data)):
                view.hear(message.on_the_wire())
    if traced.end is not None and traced.end.outcome.error is None:
        for message in text.finish():
            view.hear(message.on_the_wire())


@dataclass(frozen=True)
class ReplayOptions:
    """The options of `devhost replay`."""

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
    what = "run"
    began = "the strategy was asked"
    if trace.header.command == "flow":
        what = "flow"
        began = "the flow began"
    if not replay_trace(trace, console, shown):
        console.print(Text(f"The trace ends before {began}.", "yellow"))
    if trace.cut_off:
        console.print(Text(f"The last line of the trace is cut off: the {what} was killed.", "yellow"))
    return 0


@dataclass(frozen=True)
class TraceReportOptions:
    """The options of `devhost report`."""

    trace: Path = argument("TRACE", FILE)
    output: Path | None = option(
        "-o, --output FILE",
        "Where the page goes, - for stdout; by default beside the trace, with .html at its end.",
        type=PATH,
    )
    force: bool = option("--force", "Overwrite a file that is not a page of devhost's.")


@command(TraceReportOptions, name="report")
def report_page(options: TraceReportOptions) -> int:
    """Make a self-contained page of a traced run.

    For example:
      devhost run --example helpdesk --trace run.jsonl
      devhost report run.jsonl
    """
    trace = read_trace(options.trace)
    if options.output == Path("-"):
        page = render_page(trace)
        click.echo(page.encode(errors="replace"), nl=False)
        return 0
    output = options.output or options.trace.with_suffix(".html")
    write_page(render_page(trace, output.parent.absolute()), output, options.trace, force=options.force)
    click.echo(output)
    return 0


@dataclass(frozen=True)
class CompareOptions:
    """The options of `devhost compare`."""

    before: Path = argument("BEFORE", FILE)
    after: Path = argument("AFTER", FILE)
    as_json: bool = json_option()
    color: bool = color_option()


@command(CompareOptions)
def compare(options: CompareOptions) -> int:
    """Show what differs between two traced runs.

    The command compares the last conversation of each trace, turn by turn.

    For example:
      devhost flow --script yes.yaml --trace yes.jsonl
      devhost flow --script no.yaml --trace no.jsonl
      devhost compare yes.jsonl no.jsonl
    """
    trace_before, before = read_compared(options.before)
    trace_after, after = read_compared(options.after)
    names = (options.before.name, options.after.name)
    if names[0] == names[1]:
        names = names_of((trace_before, before[0]), (trace_after, after[0]))
    runs = compared(names, [Side(turn) for turn in before], [Side(turn) for turn in after])
    if options.as_json:
        print_json(runs.as_json())
    show_runs(runs, open_console(stderr=options.as_json, color=options.color))
    return 0
