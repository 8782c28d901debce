"""`devhost flow`: a whole chatflow or workflow, on Dify's own engine."""

import json
import os

import click

from devhost.cli.options.flow_options import FlowOptions, FlowSetup, flow_options
from devhost.cli.options.hosting_options import HostOptions, runtime_options
from devhost.flow.engine_loading import has_engine, load_engine
from devhost.flow.environment import go_on_in_flow_environment
from devhost.flow.surroundings import FlowTurn
from devhost.flow.view.report import findings_of, flow_report
from devhost.flow.view.view import FlowView
from devhost.flow.view.watching import watched
from devhost.terminal.run_view import open_console
from devhost.terminal.signals.interrupt import on_ctrl_c
from devhost.terminal.view_options import ViewOptions, view_options
from devhost.text.command_help import examples

RUN = "run"
WELL = frozenset({"succeeded", "partial-succeeded"})


class FlowGroup(click.Group):
    """`devhost flow FILE` is short for `devhost flow run FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [RUN, *args]
        return super().parse_args(ctx, args)


@click.group(cls=FlowGroup)
def flow() -> None:
    """Play a chatflow or workflow on Dify's own engine, without Dify."""


@flow.command(
    RUN,
    epilog=examples(
        "devhost flow examples/workflows/approval.yml --example injection --script my-answers.yaml",
    ),
)
@flow_options
@click.option("--query", metavar="TEXT", help="What the user of a chatflow says, instead of the script's question.")
@runtime_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and the rest on stderr.")
@view_options
@click.pass_obj
def run(  # noqa: PLR0913 - click gives one argument per option
    arguments: tuple[str, ...],
    *,
    flow_options: FlowOptions,
    query: str | None,
    host_options: HostOptions,
    as_json: bool,
    view_options: ViewOptions,
) -> int:
    """Play a flow once, and show what its nodes do."""
    setup = _read(flow_options, arguments)
    said = setup.script
    turn = FlowTurn(said.query if query is None else query, setup.inputs)
    view = FlowView(open_console(stderr=as_json, color=view_options.color), view_options)
    view.open(setup.file, turn, setup.notices)
    try:
        hosting = setup.host(host_options, view.screen)
        with on_ctrl_c(view.show_how_far), hosting as host, on_ctrl_c(view.show_how_far):
            view.begin_answer()
            played = watched(load_engine()(setup.file, turn, setup.around(host, said)), view.show)
    finally:
        view.abandon()
    findings = findings_of(played.nodes)
    if as_json:
        report = {**flow_report(played.nodes, played.ended, played.seconds), "notices": list(setup.notices)}
        click.echo(json.dumps(report, ensure_ascii=False, indent=2))
    view.close(played.ended, played.seconds, findings)
    return int(played.ended.status not in WELL or bool(host_options.strict and findings))


def _read(options: FlowOptions, arguments: tuple[str, ...]) -> FlowSetup:
    """In the environment of the engine; mistakes are told before anything is installed."""
    if not has_engine():
        options.read(dict(os.environ))
        go_on_in_flow_environment(arguments)
    return options.read(os.environ)
