"""`devhost record` and `devhost fork`, which take a traced run up again."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from devhost.comparison.comparison import Comparison, Side
from devhost.comparison.report import ForkReport, render_fork, show_fork
from devhost.errors import ParameterError, TraceError
from devhost.fork import Changes, Fork, ForkedModel, Origin, find_origin, read_fork, round_lines
from devhost.hosting import (
    HostOptions,
    ModelOptions,
    credential_option,
    file_option,
    plugin_option,
    set_option,
    started_host,
    tools_option,
    traced,
)
from devhost.limits import HostLimits
from devhost.models.scripted.script import Script
from devhost.node.outputs.run import Run, report
from devhost.options import FILE, PATH, json_option, option, takes, trace_argument
from devhost.page.page import refuse_to_destroy, write_page
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.process.session import Watchers
from devhost.recording.case import recorded_case, refuse_to_overwrite, runs_of, write_case
from devhost.recording.files import KeptFiles
from devhost.scenario import Example, examples_of, read_tool_setups
from devhost.terminal.run_view import RunView
from devhost.terminal.screen import ViewOptions, on_ctrl_c, open_console
from devhost.tools.setup import ToolSetup
from devhost.trace.lines import read_trace
from devhost.trace.runs import traced_runs
from devhost.words import examples


@dataclass(frozen=True)
class ForkOptions:
    trace: Path = trace_argument()
    at: int | None = option(
        "--at",
        metavar="ROUND",
        type=click.IntRange(min=0),
        help="How many rounds stay as recorded; 0 is none. Without it, the rounds are listed.",
    )
    question: int | None = option(
        "--question", metavar="NUMBER", type=int, help="Which question of a conversation; by default its last one."
    )
    instruction: str | None = option("--instruction", metavar="TEXT", help="Short for --param instruction=TEXT.")
    parameters: tuple[str, ...] = option(
        "--param", metavar="KEY=VALUE", multiple=True, help="Change a parameter; repeatable."
    )
    files: tuple[Path, ...] = file_option(
        "A file that goes with the question, instead of those of the trace. Repeatable."
    )
    script: Path | None = option(
        "--script", type=FILE, help="A script of the turns that the model says after these rounds."
    )
    live_tools: bool = option(
        "--live-tools",
        is_flag=True,
        help="Run the tools after these rounds. Without it they answer from the recording alone.",
    )
    example: str | None = option(
        "--example", metavar="NAME", help="With --live-tools: its tools; by default the trace's example."
    )
    tools: tuple[Path, ...] = tools_option("With --live-tools: a tool plugin. Repeatable.")
    credentials: tuple[str, ...] = credential_option("With --live-tools: a credential, as for run. Repeatable.")
    settings: tuple[str, ...] = set_option("With --live-tools: a parameter of the panel, as for run. Repeatable.")
    plugin: Path | None = plugin_option("The strategy plugin; by default the nearest one.")
    new_trace: Path | None = option("--trace", metavar="FILE", type=FILE, help="Write the trace of the new run, too.")
    page: Path | None = option("--report", metavar="FILE", type=PATH, help="Write an HTML page, too.")
    force: bool = option(
        "--force", is_flag=True, help="With --report: overwrite a file that is not a page of devhost's."
    )
    as_json: bool = json_option()

    def read(self, origin: Origin, at: int, limits: HostLimits) -> Fork:
        plugin = nearest_strategy_plugin(Path.cwd()) if self.plugin is None else self.plugin
        short = () if self.instruction is None else (f"instruction={self.instruction}",)
        changes = Changes((*self.parameters, *short), self.files, self._read_tools(origin, plugin))
        return read_fork(origin, at, plugin, changes, limits)

    def _read_tools(self, origin: Origin, plugin: Path) -> tuple[ToolSetup, ...]:
        """Credentials are removed from the environment, which the plugins inherit."""
        if not self.live_tools:
            given = {"example": self.example, "tools": self.tools, "credential": self.credentials, "set": self.settings}
            for option_name, value in given.items():
                if value:
                    raise ParameterError(f"--{option_name} is for tools that run: give --live-tools too")
            return ()
        name = self.example or (None if self.tools else origin.trace.header.example or None)
        example = () if name is None else (Example.find(examples_of(plugin), name).directory,)
        if not (example or self.tools):
            raise ParameterError("--live-tools: the trace names no example, so say which tools: --tools DIR")
        return tuple(read_tool_setups((*example, *self.tools), self.credentials, self.settings, os.environ))

    def model(self, fork: Fork, origin: Origin, options: ModelOptions) -> ForkedModel:
        """A script's model, or a real one, or else what was recorded to the end."""
        question = fork.past.run.question
        if self.script is not None:
            script = Script.read(self.script, origin.strategy)
            later = replace(options, scripted=True).choose(script, script.query)
            return ForkedModel(fork.past_turns, fork.card, origin.file, later)
        chosen = options.choose(fork.scenario.script, question)
        if chosen.description.scripted:
            return ForkedModel(fork.turns, fork.card, origin.file, None)
        return ForkedModel(fork.past_turns, fork.card, origin.file, chosen)


# The command `record`: makes a case of a trace.

CASE = ".case.yaml"
"""In place of the trace's own suffix."""


@dataclass(frozen=True)
class RecordOptions:
    trace: Path = trace_argument()
    output: Path | None = option(
        "-o",
        "--output",
        metavar="FILE",
        type=FILE,
        help=f"Where the case goes; by default beside the trace, with {CASE} at its end.",
    )
    force: bool = option("--force", is_flag=True, help="Overwrite a file that exists.")


@click.command(
    epilog=examples(
        "devhost run --example helpdesk --trace run.jsonl",
        "devhost record run.jsonl -o case.yaml",
        "devhost run --script case.yaml",
    )
)
@takes(RecordOptions)
def record(options: RecordOptions) -> int:
    """Make a case of a traced run: a script that runs it again.

    It needs neither the tools nor a model: the model's turns become turns of the script, and each tool answers from the
    recording, by its name and arguments.
    """
    output = options.output or options.trace.with_suffix(CASE)
    trace = read_trace(options.trace)
    refuse_to_overwrite(output, force=options.force)
    case = recorded_case(trace, options.trace, KeptFiles(options.trace, output))
    write_case(case, output)
    for sentence in case.lacks:
        click.echo(f"not recorded: {sentence}", err=True)
    click.echo(output)
    return 0


# The command `fork`: goes on from a round of a traced run, with something changed.

RECORDED, FORKED = "recorded", "fork"


@click.command(
    epilog=examples(
        "devhost run --example helpdesk --trace run.jsonl",
        "devhost fork run.jsonl",
        'devhost fork run.jsonl --at 1 --instruction "Answer in one sentence." --report fork.html',
    )
)
@takes(ForkOptions, ModelOptions, HostOptions, ViewOptions)
def fork(asked: ForkOptions, models: ModelOptions, hosting: HostOptions, shown: ViewOptions) -> int:
    """Run a traced run again from a round on, with a change.

    Both runs are shown side by side. The rounds until there are as recorded. After them the model is a real one, or
    that of --script, or else what was recorded. Tools answer from the recording, and a call that is not in it fails;
    --live-tools runs them.
    """
    origin = find_origin(read_trace(asked.trace), asked.trace, asked.question)
    if asked.question is None and (count := len(runs_of(origin.trace, asked.trace))) > 1:
        click.echo(f"forking the last of {count} questions; --question NUMBER names another one", err=True)
    if asked.at is None:
        click.echo("\n".join([*round_lines(origin.run), "Say how many of these rounds stay: --at ROUND"]))
        return 0
    made = asked.read(origin, asked.at, hosting.limits)
    model = asked.model(made, origin, models)
    if asked.page is not None:
        refuse_to_destroy(asked.page, asked.trace, force=asked.force)
    console = open_console(stderr=asked.as_json, color=shown.color)
    with _trace_of_its_own(asked.new_trace, asked.trace) as own:
        run = _played(made, model, hosting, RunView(console, shown), own, asked.new_trace)
        right = Side.of(FORKED, model.description.name, traced_runs(read_trace(own))[-1], origin.strategy)
    left = Side.of(RECORDED, origin.trace.header.model.name, origin.run, origin.strategy)
    found = ForkReport.of(Comparison.of(left, right), made, origin, model)
    if asked.as_json:
        printed = {**found.as_json(), "run": report(run, model.description, model.spent())}
        click.echo(json.dumps(printed, ensure_ascii=False, indent=2))
    show_fork(found, console)
    if asked.page is not None:
        write_page(render_fork(found), asked.page, asked.trace, force=asked.force)
        click.echo(asked.page, err=asked.as_json)
    return int(bool(run.error or (hosting.strict and run.findings)))


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
