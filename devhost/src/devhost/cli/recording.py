"""`devhost record` and `devhost fork`: make a case from a traced run, or run it again with a change."""

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import click

from devhost.comparison.comparison import ForkReport, render_fork
from devhost.comparison.printed import show_fork
from devhost.comparison.side import Side
from devhost.errors import TraceError
from devhost.fork import ForkOptions
from devhost.hosting import HostOptions, ModelOptions
from devhost.node.outputs.run import report
from devhost.options import FILE, argument, command, option, print_json
from devhost.page.page import refuse_to_destroy, write_page
from devhost.process.session import Watchers
from devhost.recording.case import recorded_case, write_case
from devhost.recording.turns import KeptFiles
from devhost.terminal.screen import ViewOptions, open_console
from devhost.terminal.tables import facts_table
from devhost.terminal.turn_view import TurnView
from devhost.trace.lines import read_trace
from devhost.trace.turns import traced_turns, turn_with

CASE = ".case.yaml"
"""The suffix of a case, which replaces the suffix of the trace."""


@dataclass(frozen=True)
class RecordOptions:
    """The options of `devhost record`."""

    trace: Path = argument("TRACE", FILE)
    output: Path | None = option(
        "-o, --output FILE", f"Where the case goes; by default beside the trace, with {CASE} at its end."
    )
    force: bool = option("--force", "Overwrite a file that exists.")


@command(RecordOptions)
def record(options: RecordOptions) -> int:
    """Make a case from a traced run: a script that runs it again.

    The case needs neither the tools nor a model. The model's turns become turns of the script, and each tool call is
    answered from the recording, by the tool's name and arguments.

    For example:
      devhost run --example helpdesk --trace run.jsonl
      devhost record run.jsonl -o case.yaml
      devhost run --script case.yaml
    """
    output = options.output or options.trace.with_suffix(CASE)
    trace = read_trace(options.trace)
    if output.exists() and not options.force:
        raise TraceError(f"{output} exists: name another file with -o, or give --force")
    case = recorded_case(trace, options.trace, KeptFiles(options.trace, output))
    write_case(case, output)
    for sentence in case.lacks:
        click.echo(f"not recorded: {sentence}", err=True)
    click.echo(output)
    return 0


@command(ForkOptions, ModelOptions, HostOptions, ViewOptions)
def fork(asked: ForkOptions, models: ModelOptions, hosting: HostOptions, shown: ViewOptions) -> int:
    """Run a traced run again from a given round, with a change.

    Both runs are shown side by side. The rounds before the change are repeated as recorded. Later rounds are answered
    by a real model, by --script, or else from the recording. Tool calls are answered from the recording, and a call
    that was not recorded fails; with --live-tools, the tools run.

    For example:
      devhost run --example helpdesk --trace run.jsonl
      devhost fork run.jsonl
      devhost fork run.jsonl --at 1 --instruction "Answer in one sentence." --report fork.html
    """
    origin = asked.origin()
    if origin.which:
        click.echo(origin.which, err=True)
    if asked.at is None:
        for number, each in enumerate(origin.rounds, start=1):
            click.echo(f"{number}  {each.gist}")
        stay = "No model call is recorded"
        if origin.rounds:
            stay = "Say how many of these rounds stay: --at ROUND"
        click.echo(f"{stay}; --at 0 asks the model from the beginning")
        return 0
    tools = asked.read_tools(origin, os.environ, validated=not models.unvalidated)
    made = asked.read(origin, hosting.limits, tools)
    model = asked.model(made, models)
    if asked.new_trace is not None and asked.new_trace.exists() and asked.new_trace.samefile(asked.trace):
        raise TraceError(f"--trace {asked.new_trace} is the trace that is forked: name another file")
    if asked.page is not None:
        refuse_to_destroy(asked.page, asked.trace, force=asked.force)
    console = open_console(stderr=asked.as_json, color=shown.color)
    with tempfile.TemporaryDirectory(prefix="devhost-fork-") as folder:
        own = asked.new_trace or Path(folder) / "fork.jsonl"  # the comparison reads both runs from traces
        view = TurnView(console, shown)
        models.plugins.tell(view.screen)
        case = replace(made.case, models=lambda _: model)
        with case.traced(own, hosting, "run", made.case.script) as watcher:
            names = (case.name, case.script.description, case.played.name)
            view.open(facts_table(*names, model.description, case.notices), made.question)
            with view.answering(case.host(hosting, Watchers(watcher, view.screen), asked.new_trace)) as host:
                run = made.play(host, model, view.hear)
                watcher.remark(model.afterwards)
            view.finish_answer()
        right = Side(traced_turns(read_trace(own))[-1], model.is_recorded)
    left = Side(turn_with(origin.run, origin.strategy))
    found = ForkReport(("recorded", "fork"), left, right, made, model)
    if asked.as_json:
        print_json({**found.as_json(), "run": report(run, model.description, model.spent())})
    show_fork(found, console)
    if asked.page is not None:
        write_page(render_fork(found), asked.page, asked.trace, force=asked.force)
        click.echo(asked.page, err=asked.as_json)
    return int(bool(run.error or (hosting.strict and run.findings)))
