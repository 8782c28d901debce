"""`devhost flow`: a whole chatflow or workflow, on Dify's own engine."""

import json
import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import click

from devhost.cli.options.hosting_options import HostOptions, runtime_options
from devhost.flow.document import FlowFile
from devhost.flow.engine_loading import has_engine, load_engine
from devhost.flow.environment import go_on_in_flow_environment
from devhost.flow.events import FlowEnded, NodeEnded
from devhost.flow.script import FlowScript, ScriptedModels
from devhost.flow.surroundings import FlowTurn, Surroundings
from devhost.host.host import Host
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.scenario.scenario import examples_of
from devhost.scenario.settings import parse_assignments
from devhost.scenario.tool_assignments import read_tool_setups
from devhost.tools.setup import ToolSetup

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
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--query", metavar="TEXT", help="What the user of a chatflow says, instead of the script's question.")
@click.option("--input", "inputs", metavar="KEY=VALUE", multiple=True, help="A field of the Start node; repeatable.")
@click.option("--script", type=click.Path(dir_okay=False, path_type=Path), help="What the scripted models answer.")
@click.option(
    "--tools",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    multiple=True,
    help="A Dify tool plugin for the flow's agents and Tool nodes; repeatable.",
)
@click.option("--example", metavar="NAME", help="An example, a folder of examples/, whose tools the flow gets.")
@click.option(
    "--credential",
    "credentials",
    metavar="PROVIDER.KEY=VALUE",
    multiple=True,
    help="A credential of a tool provider; else the variable PROVIDER_KEY, upper case, is read. Repeatable.",
)
@click.option(
    "--plugin",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="The strategy plugin; by default the nearest one in or above the current folder.",
)
@runtime_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def run(  # noqa: PLR0913 - click gives one argument per option
    arguments: tuple[str, ...],
    *,
    file: Path,
    query: str | None,
    inputs: tuple[str, ...],
    script: Path | None,
    tools: tuple[Path, ...],
    example: str | None,
    credentials: tuple[str, ...],
    plugin: Path | None,
    host_options: HostOptions,
    as_json: bool,
) -> int:
    r"""Play a flow once, and show what its nodes do.

    \b
    devhost flow examples/workflows/approval.yml --example injection --script my-answers.yaml
    """
    document = FlowFile.read(file)
    said = FlowScript() if script is None else FlowScript.read(script)
    directory = nearest_strategy_plugin(Path.cwd()) if plugin is None else plugin
    folders = tools if example is None else (examples_of(directory) / example, *tools)
    setups = read_tool_setups(folders, credentials, (), os.environ)
    if not has_engine():
        go_on_in_flow_environment(arguments)
    turn = FlowTurn(said.query if query is None else query, {**said.inputs, **parse_assignments(inputs)})
    with _started(document, directory, setups, host_options) as host:
        models = ScriptedModels(said, said.model, str(script))
        nodes = []
        ended = FlowEnded("failed", {})
        for event in load_engine()(document, turn, Surroundings(host, models)):
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


def _started(
    document: FlowFile, plugin: Path, setups: list[ToolSetup], options: HostOptions
) -> "Host | nullcontext[None]":
    if not any(node.type in {"agent", "tool"} for node in document.nodes.values()):
        return nullcontext()
    return Host.start(plugin, tools=setups, limits=options.limits, transport=options.transport)


def _shown(event: NodeEnded) -> Mapping[str, object]:
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
