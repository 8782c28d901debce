"""`devhost flow`: a whole chatflow or workflow, on Dify's own engine."""

import json
import os

import click

from devhost.cli.options.flow_options import FlowOptions, FlowSetup, flow_options
from devhost.cli.options.hosting_options import HostOptions, runtime_options
from devhost.flow.engine_loading import has_engine, load_engine
from devhost.flow.environment import go_on_in_flow_environment
from devhost.flow.events import FlowEnded, NodeEnded
from devhost.flow.script import ScriptedModels
from devhost.flow.surroundings import FlowTurn, Surroundings
from devhost.protocol.wire import JsonObject

RUN = "run"


class FlowGroup(click.Group):
    """`devhost flow FILE` is short for `devhost flow run FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [RUN, *args]
        return super().parse_args(ctx, args)


@click.group(cls=FlowGroup)
def flow() -> None:
    """Play a chatflow or workflow on Dify's own engine, without Dify."""


@flow.command(RUN)
@flow_options
@click.option("--query", metavar="TEXT", help="What the user of a chatflow says, instead of the script's question.")
@runtime_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def run(
    arguments: tuple[str, ...],
    *,
    flow_options: FlowOptions,
    query: str | None,
    host_options: HostOptions,
    as_json: bool,
) -> int:
    r"""Play a flow once, and show what its nodes do.

    \b
    devhost flow examples/workflows/approval.yml --example injection --script my-answers.yaml
    """
    setup = _read(flow_options, arguments)
    for notice in setup.notices:
        click.echo(f"note: {notice}", err=True)
    said = setup.script
    turn = FlowTurn(said.query if query is None else query, setup.inputs)
    with setup.host(host_options) as host:
        models = ScriptedModels(said, said.model, setup.place)
        nodes = []
        ended = FlowEnded("failed", {})
        for event in load_engine()(setup.file, turn, Surroundings(host, models)):
            if isinstance(event, NodeEnded):
                nodes.append(_shown(event))
                if not as_json:
                    click.echo(f"{event.node.title or event.node.id}  {event.status}  {event.seconds} s  {event.error}")
            if isinstance(event, FlowEnded):
                ended = event
    if as_json:
        conversation = dict(ended.conversation)
        told = {"status": ended.status, "outputs": ended.outputs, "error": ended.error, "conversation": conversation}
        click.echo(json.dumps({**told, "nodes": nodes}, ensure_ascii=False, indent=2))
    else:
        click.echo(ended.outputs.get("answer") or json.dumps(ended.outputs, ensure_ascii=False))
    return int(ended.status not in {"succeeded", "partial-succeeded"})


def _read(options: FlowOptions, arguments: tuple[str, ...]) -> FlowSetup:
    """In the environment of the engine; mistakes are told before anything is installed."""
    if not has_engine():
        options.read(dict(os.environ))
        go_on_in_flow_environment(arguments)
    return options.read(os.environ)


def _shown(event: NodeEnded) -> JsonObject:
    return {
        "id": event.node.id,
        "type": event.node.type,
        "title": event.node.title,
        "status": event.status,
        "seconds": event.seconds,
        "inputs": event.inputs,
        "outputs": event.outputs,
        "error": event.error,
    }
