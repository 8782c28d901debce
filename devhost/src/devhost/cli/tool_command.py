"""`devhost tool`: calls one tool of a tool plugin, or lists what there is."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from devhost.cli.options.hosting_options import (
    BASE_URL,
    KEY,
    HostOptions,
    ModelOptions,
    model_options,
    runtime_options,
    tool_trace_option,
    tool_traced,
)
from devhost.direct import AskedTool, Found, ToolOutcome, ask, call_directly, find_tool, tools_of
from devhost.errors import HostError, ParameterError
from devhost.files import FileServer, LocalFile, run_folder
from devhost.host.backwards import BackwardsCalls
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend, NoModel
from devhost.node.messages import ToolFileStore
from devhost.node.outputs.run import RunError
from devhost.overview import tool_lines
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.session import Watcher, Watchers
from devhost.protocol.wire import JsonObject
from devhost.scenario import read_credentials
from devhost.terminal.run_view import open_console, traceback_option
from devhost.terminal.signals import on_ctrl_c
from devhost.terminal.tool_view import ToolView
from devhost.text import Secrets, real_path
from devhost.tools.setup import start_tool_plugin
from devhost.words import examples


def tool_model(options: ModelOptions) -> ModelBackend:
    configured = any(os.environ.get(name, "").strip() for name in (KEY, BASE_URL))
    asks_for_one = options != ModelOptions(scripted=options.scripted)
    return options.choose(None, "") if asks_for_one or (configured and not options.scripted) else NoModel()


def assignments(given: tuple[str, ...], option: str) -> Iterator[tuple[str, str]]:
    for assignment in given:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise ParameterError(f"{option} {key!r} is not KEY=VALUE")
        yield key, text


def given_file(text: str, limits: HostLimits) -> tuple[str, LocalFile]:
    """A path that exists is a path, whatever it is called."""
    key, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        key, path = "", text
    return key, LocalFile.read(Path(path), limits)


# The command `tool`: calls one tool of a tool plugin, or lists what there is.

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
