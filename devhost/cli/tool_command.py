"""The command `tool`: calls one tool of a tool plugin, or lists what there is."""

import json
import os
import sys
from pathlib import Path

import click

from devhost.cli.options.hosting_options import HostOptions, runtime_options
from devhost.cli.options.model_options import ModelOptions, model_options
from devhost.cli.options.trace_options import tool_trace_option, tool_traced
from devhost.cli.tool_arguments import assignments, given_file, tool_model
from devhost.direct.asked import AskedTool, Found, ask, find_tool, tools_of
from devhost.direct.call import ToolOutcome, call_directly
from devhost.errors import HostError
from devhost.files.run_folder import run_folder
from devhost.files.server import FileServer
from devhost.host.backwards import BackwardsCalls
from devhost.node.messages.tool_files import ToolFileStore
from devhost.node.outputs.run import RunError
from devhost.overview.listing import tool_lines
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.watcher import Watcher, Watchers
from devhost.protocol.wire import JsonObject
from devhost.scenario.tool_assignments import read_credentials
from devhost.terminal.run_view import open_console
from devhost.terminal.signals.interrupt import on_ctrl_c
from devhost.terminal.tool_view import ToolView
from devhost.terminal.view_options import traceback_option
from devhost.text.command_help import examples
from devhost.text.secrets import Secrets
from devhost.text.user_file import real_path
from devhost.tools.panel import start_tool_plugin

CALLED_WELL, CALL_FAILED = 0, 1


@click.command(
    "tool",
    epilog=examples(
        "devhost tool --tools examples/helpdesk",
        'devhost tool --tools examples/helpdesk search_manual --arg terms="deleted files"',
    ),
)
@click.argument("tool_name", metavar="[NAME]", required=False)
@click.option(
    "--tools",
    "directories",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="A Dify tool plugin; repeatable.",
)
@click.option(
    "--arg", "arguments", metavar="KEY=VALUE", multiple=True, help="A value for a parameter of the tool; repeatable."
)
@click.option(
    "--file",
    "files",
    metavar="[KEY=]PATH",
    multiple=True,
    help="A file for a parameter of the tool; its name may be left out if there is only one. Repeatable.",
)
@click.option(
    "--credential",
    "credentials",
    metavar="PROVIDER.KEY=VALUE",
    multiple=True,
    help="A credential of the tool's provider; else the variable PROVIDER_KEY, upper case, is read. Repeatable.",
)
@model_options
@runtime_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and the rest on stderr.")
@tool_trace_option
@traceback_option
@click.option("--no-color", is_flag=True, help="Print without colours.")
def tool(  # noqa: PLR0913 - click gives one argument per option
    *,
    tool_name: str | None,
    directories: tuple[Path, ...],
    arguments: tuple[str, ...],
    files: tuple[str, ...],
    credentials: tuple[str, ...],
    model_options: ModelOptions,
    host_options: HostOptions,
    as_json: bool,
    trace_file: Path | None,
    traceback: bool,
    no_color: bool,
) -> int:
    """Call one tool and show every message.

    Without NAME, list the tools with their parameters.
    """
    plugins = [PluginDeclaration.read(directory) for directory in dict.fromkeys(map(real_path, directories))]
    console = open_console(stderr=as_json, color=not no_color)
    if tool_name is None:
        for line in tool_lines(tools_of(plugins)):
            console.print(line, soft_wrap=True)
        return CALLED_WELL
    found = find_tool(plugins, tool_name)
    credential_texts = read_credentials(plugins, credentials, os.environ)
    model = tool_model(model_options)
    view = ToolView(console, traceback=traceback)
    with run_folder("tool", trace_file) as folder, FileServer(ToolFileStore(folder)) as server:
        given = [given_file(text, host_options.limits) for text in files]
        asked = ask(found, dict(assignments(arguments, "--arg")), given, credential_texts, server)
        secrets = Secrets(asked.setup.secrets)
        view.open(_name(found), secrets.masked(asked.parameters), model.description, asked.setup.notices)
        sent = {
            "tool": _name(found),
            "sent": secrets.masked(asked.parameters),
            "notices": list(asked.setup.notices),
        }
        try:
            with tool_traced(
                trace_file, _name(found), asked.setup, model.description, host_options.transport
            ) as watcher:
                storage = host_options.storage_beside(trace_file)
                calls = BackwardsCalls(
                    model, [], server=server, storage=storage, limits=host_options.limits, opaque_body="drop"
                )
                outcome = _called(asked, calls, server.store, host_options, view, watcher=watcher)
        except HostError as error:
            if as_json:
                _print_json({**sent, **ToolOutcome(error=RunError(type(error).__name__, str(error))).report()})
            raise
    view.close(outcome)
    if as_json:
        _print_json({**sent, **outcome.report()})
    broke_rules = host_options.strict and outcome.findings
    return CALL_FAILED if outcome.error or broke_rules else CALLED_WELL


def _print_json(value: JsonObject) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


class _Collected(Watcher):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def printed(self, plugin: str, text: str, *, exact: bool) -> None:
        del plugin, exact  # there is one plugin
        self.lines.append(text)


def _called(  # noqa: PLR0913 - what a call is made of
    asked: AskedTool,
    calls: BackwardsCalls,
    store: ToolFileStore,
    options: HostOptions,
    view: ToolView,
    *,
    watcher: Watcher,
) -> ToolOutcome:
    collected = _Collected()
    with on_ctrl_c(view.show_how_far):
        view.screen.starting([asked.setup.declaration.manifest.name])
        plugin = start_tool_plugin(
            asked.setup,
            limits=options.limits,
            python=sys.executable,
            watcher=Watchers(collected, view.screen, watcher),
            secrets=Secrets(asked.setup.secrets),
            transport=options.transport,
        )
        view.screen.starting([])
        try:
            view.call()
            outcome = call_directly(plugin, asked, calls, store, view.show)
        finally:
            plugin.stop()
    if calls.fault is not None:
        raise calls.fault
    outcome.printed = collected.lines
    return outcome


def _name(found: Found) -> str:
    return f"{found.provider_id}/{found.tool.identity.name}"
