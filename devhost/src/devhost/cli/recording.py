"""`devhost record` and `devhost fork`, which take a traced run up again."""

import functools
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from devhost.cli.options.hosting_options import (
    TRACE,
    HostOptions,
    ModelOptions,
    model_options,
    runtime_options,
    started_host,
    trace_argument,
    traced,
)
from devhost.cli.options.scenario_options import (
    FILE,
    credential_option,
    file_option,
    plugin_option,
    set_option,
    tools_option,
)
from devhost.comparison.comparison import Comparison, Side
from devhost.comparison.report import ForkReport, render_fork, show_fork
from devhost.errors import ParameterError, TraceError
from devhost.fork import Changes, Fork, ForkedModel, Origin, find_origin, read_fork, round_lines
from devhost.limits import HostLimits
from devhost.models.scripted.script import Script
from devhost.node.outputs.run import Run, report
from devhost.page.page import refuse_to_destroy, write_page
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.process.session import Watchers
from devhost.recording.case import recorded_case, refuse_to_overwrite, runs_of, write_case
from devhost.recording.files import KeptFiles
from devhost.scenario import Example, examples_of, read_tool_setups
from devhost.terminal.run_view import RunView, ViewOptions, open_console, view_options
from devhost.terminal.signals import on_ctrl_c
from devhost.tools.setup import ToolSetup
from devhost.trace.lines import read_trace
from devhost.trace.runs import traced_runs
from devhost.words import examples


def fork_options(command: Callable[..., int]) -> Callable[..., int]:
    """The options as one argument `fork_options` of the command."""

    @click.option(
        "--at",
        metavar="ROUND",
        type=click.IntRange(min=0),
        help="How many rounds stay as recorded; 0 is none. Without it, the rounds are listed.",
    )
    @click.option(
        "--question", metavar="NUMBER", type=int, help="Which question of a conversation; by default its last one."
    )
    @click.option("--instruction", metavar="TEXT", help="Short for --param instruction=TEXT.")
    @click.option("--param", "parameters", metavar="KEY=VALUE", multiple=True, help="Change a parameter; repeatable.")
    @file_option("A file that goes with the question, instead of those of the trace. Repeatable.")
    @click.option("--script", type=FILE, help="A script of the turns that the model says after these rounds.")
    @click.option(
        "--live-tools",
        is_flag=True,
        help="Run the tools after these rounds. Without it they answer from the recording alone.",
    )
    @click.option("--example", metavar="NAME", help="With --live-tools: its tools; by default the trace's example.")
    @tools_option("With --live-tools: a tool plugin. Repeatable.")
    @credential_option("With --live-tools: a credential, as for run. Repeatable.")
    @set_option("With --live-tools: a parameter of the panel, as for run. Repeatable.")
    @plugin_option("The strategy plugin; by default the nearest one.")
    @functools.wraps(command)
    def with_fork_options(  # noqa: PLR0913 - click gives one argument per option
        *,
        at: int | None,
        question: int | None,
        instruction: str | None,
        parameters: tuple[str, ...],
        files: tuple[Path, ...],
        script: Path | None,
        live_tools: bool,
        example: str | None,
        tools: tuple[Path, ...],
        credentials: tuple[str, ...],
        settings: tuple[str, ...],
        plugin: Path | None,
        **options: object,
    ) -> int:
        live = LiveTools(live_tools, example, tools, credentials, settings)
        short = () if instruction is None else (f"instruction={instruction}",)
        chosen = ForkOptions(at, question, (*parameters, *short), files, script, live, plugin)
        return command(**options, fork_options=chosen)

    return with_fork_options


@dataclass(frozen=True)
class LiveTools:
    asked_for: bool
    example: str | None
    tools: tuple[Path, ...]
    credentials: tuple[str, ...] = field(repr=False)
    settings: tuple[str, ...] = field(repr=False)

    def read(self, origin: Origin, plugin: Path) -> tuple[ToolSetup, ...]:
        """Credentials are removed from the environment, which the plugins inherit."""
        named = {"--example": self.example, "--tools": self.tools, "--credential": self.credentials}
        if not self.asked_for:
            for option, value in {**named, "--set": self.settings}.items():
                if value:
                    raise ParameterError(f"{option} is for tools that run: give --live-tools too")
            return ()
        name = self.example or (None if self.tools else origin.trace.header.example or None)
        example = () if name is None else (Example.find(examples_of(plugin), name).directory,)
        if not (example or self.tools):
            raise ParameterError("--live-tools: the trace names no example, so say which tools: --tools DIR")
        return tuple(read_tool_setups((*example, *self.tools), self.credentials, self.settings, os.environ))


@dataclass(frozen=True)
class ForkOptions:
    at: int | None
    question: int | None
    """Counted from 1; None for the last one."""
    parameters: tuple[str, ...]
    files: tuple[Path, ...]
    script: Path | None
    live: LiveTools
    plugin: Path | None
    """None for the nearest one."""

    def read(self, origin: Origin, at: int, limits: HostLimits) -> Fork:
        plugin = nearest_strategy_plugin(Path.cwd()) if self.plugin is None else self.plugin
        changes = Changes(self.parameters, self.files, self.live.read(origin, plugin))
        return read_fork(origin, at, plugin, changes, limits)

    def model(self, fork: Fork, origin: Origin, options: ModelOptions) -> ForkedModel:
        """A script's model, or a real one, or else what was recorded to the end."""
        question = fork.past.run.question
        if self.script is not None:
            script = Script.read(self.script, origin.strategy)
            later = ModelOptions(options.api, options.name, options.completion, options.features, scripted=True)
            return ForkedModel(fork.past_turns, fork.card, origin.file, later.choose(script, script.query))
        chosen = options.choose(fork.scenario.script, question)
        if chosen.description.scripted:
            return ForkedModel(fork.turns, fork.card, origin.file, None)
        return ForkedModel(fork.past_turns, fork.card, origin.file, chosen)


# The command `record`: makes a case of a trace.

CASE = ".case.yaml"
"""In place of the trace's own suffix."""


@click.command(
    epilog=examples(
        "devhost run --example helpdesk --trace run.jsonl",
        "devhost record run.jsonl -o case.yaml",
        "devhost run --script case.yaml",
    )
)
@trace_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"Where the case goes; by default beside the trace, with {CASE} at its end.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
def record(*, trace_file: Path, output: Path | None, force: bool) -> int:
    """Make a case of a traced run: a script that runs it again.

    It needs neither the tools nor a model: the model's turns become turns of the script, and each tool answers from the
    recording, by its name and arguments.
    """
    output = output or trace_file.with_suffix(CASE)
    trace = read_trace(trace_file)
    refuse_to_overwrite(output, force=force)
    case = recorded_case(trace, trace_file, KeptFiles(trace_file, output))
    write_case(case, output)
    for sentence in case.lacks:
        click.echo(f"not recorded: {sentence}", err=True)
    click.echo(output)
    return 0


# The command `fork`: goes on from a round of a traced run, with something changed.

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
