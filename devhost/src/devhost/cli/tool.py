"""`devhost tool`: calls one tool of a tool plugin, or lists what there is."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import click

from devhost.direct import AskedTool, Found, ToolOutcome, ask, call_directly, find_tool, tools_of
from devhost.errors import HostError, ParameterError
from devhost.files import FileServer, LocalFile, run_folder
from devhost.host.backwards import BackwardsCalls
from devhost.hosting import (
    HostOptions,
    ModelOptions,
    credential_option,
    mcp_option,
    tool_traced,
    tools_option,
)
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend, NoModel
from devhost.node.messages import ToolFileStore
from devhost.node.outputs.run import RunError
from devhost.options import (
    argument,
    color_option,
    json_option,
    option,
    print_json,
    takes,
    trace_option,
    traceback_option,
)
from devhost.overview import tool_lines
from devhost.plugin.declaration import PluginDeclaration, nearest_plugin
from devhost.process.session import Watcher, Watchers
from devhost.scenario import pairs, read_credentials
from devhost.terminal.run_view import ToolView
from devhost.terminal.screen import Screen, ViewOptions, open_console
from devhost.text import Secrets, real_path
from devhost.tools.mcp import McpTool, connected, read_servers
from devhost.tools.setup import Texts, ToolSetup, start_tool_plugin
from devhost.tools.tool import PluginTool, Tool
from devhost.words import examples


def tool_model(options: ModelOptions) -> ModelBackend:
    if not options.asks_the_script():
        return options.open(os.environ)
    options.refuse_for_a_script()
    return NoModel()


def given_file(text: str, limits: HostLimits) -> tuple[str, LocalFile]:
    """A path that exists is a path, whatever it is called."""
    key, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        key, path = "", text
    return key, LocalFile.read(Path(path), limits)


# The command `tool`: calls one tool of a tool plugin or a server, or lists what there is.


@dataclass(frozen=True)
class ToolOptions:
    tool: str | None = argument(metavar="[NAME]", required=False)
    directories: tuple[Path, ...] = tools_option(
        "A Dify tool plugin; by default the nearest plugin, if no --mcp is given. Repeatable."
    )
    servers: tuple[str, ...] = mcp_option("")
    arguments: tuple[str, ...] = option(
        "--arg", metavar="KEY=VALUE", multiple=True, help="A value for a parameter of the tool; repeatable."
    )
    files: tuple[str, ...] = option(
        "--file",
        metavar="[KEY=]PATH",
        multiple=True,
        help="A file for a parameter of the tool; its name may be left out if there is only one. Repeatable.",
    )
    credentials: tuple[str, ...] = credential_option()
    as_json: bool = json_option()
    trace: Path | None = trace_option("; only runs can be replayed")
    traceback: bool = traceback_option()
    color: bool = color_option()


@click.command(
    "tool",
    epilog=examples(
        "devhost tool --tools examples/helpdesk",
        'devhost tool --mcp "npx -y @modelcontextprotocol/server-everything"',
        'devhost tool --tools examples/helpdesk search_manual --arg terms="deleted files"',
    ),
)
@takes(ToolOptions, ModelOptions, HostOptions)
def tool(options: ToolOptions, models: ModelOptions, hosting: HostOptions) -> int:
    """Call one tool and show every message.

    Without NAME, list the tools with their parameters.
    """
    folders = options.directories or (() if options.servers else (nearest_plugin(),))
    plugins = [PluginDeclaration.read(folder) for folder in dict.fromkeys(map(real_path, folders))]
    servers, credentials = read_servers(options.servers, options.credentials)
    console = open_console(stderr=options.as_json, color=options.color)
    view = ToolView(console, ViewOptions(traceback=options.traceback), Screen(console))
    with connected(servers, hosting.limits, _Starting(view.screen)) as of_servers:
        there_are = list(tools_of(plugins, of_servers))
        if not there_are:
            raise ParameterError(f"no tools: {', '.join(map(str, folders)) or 'the server'} has none; give --tools DIR")
        if options.tool is not None:
            found = find_tool(there_are, options.tool)
            texts = read_credentials(plugins, credentials, os.environ)
            return _shown_call(found, texts, options, models, hosting, view)
    for line in tool_lines(there_are):
        console.print(line, soft_wrap=True)
    for notice in (notice for tool in of_servers for notice in tool.notices):
        view.note(notice)
    return 0


def _shown_call(  # noqa: PLR0913, PLR0917 - what a call is made of
    found: Found, credentials: Texts, options: ToolOptions, models: ModelOptions, hosting: HostOptions, view: ToolView
) -> int:
    model = tool_model(models)
    with run_folder("tool", options.trace) as folder, FileServer(ToolFileStore(folder)) as server:
        given = [given_file(text, hosting.limits) for text in options.files]
        asked = ask(found, dict(pairs(options.arguments, "--arg")), given, credentials, server)
        if isinstance(asked.source, ToolSetup):
            asked = replace(asked, source=replace(asked.source, is_validated=not models.unvalidated))
        shown = Secrets(asked.source.secrets).masked(asked.parameters)
        view.open(found.name, shown, model.description, asked.source.notices)
        sent = {"tool": found.name, "sent": shown, "notices": list(asked.source.notices)}
        try:
            with tool_traced(options.trace, asked, model.description, hosting.transport) as watcher:
                storage = hosting.storage_beside(options.trace)
                models.plugins.tell(Watchers(view.screen, watcher))
                calls = BackwardsCalls(
                    model, [], server=server, storage=storage, limits=hosting.limits, opaque_body="drop"
                )
                outcome = _called(asked, calls, server.store, hosting, view, watcher=watcher)
        except HostError as error:
            if options.as_json:
                print_json({**sent, **ToolOutcome(error=RunError(type(error).__name__, str(error))).report()})
            raise
    view.close(outcome)
    if options.as_json:
        print_json({**sent, **outcome.report()})
    return int(bool(outcome.error or (hosting.strict and outcome.findings)))


class _Starting(Watcher):
    """What servers print is shown only if one does not start: the call has its own notices."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def starting(self, plugins: Sequence[str]) -> None:
        self._screen.starting(plugins)


class _Collected(Watcher):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def printed(self, plugin: str, text: str) -> None:
        del plugin  # there is one
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
    with ExitStack() as started:
        tool: Tool
        if isinstance(asked.source, McpTool):
            tool = asked.source
        else:
            view.screen.starting([asked.source.declaration.manifest.name])
            plugin = start_tool_plugin(
                asked.source,
                limits=options.limits,
                installs=not options.uninstalled,
                watcher=Watchers(collected, view.screen, watcher),
                secrets=Secrets(asked.source.secrets),
                transport=options.transport,
            )
            started.enter_context(plugin)
            view.screen.starting([])
            tool = PluginTool(plugin, asked.source.tools[0], asked.source, options.limits)
        outcome = call_directly(tool, asked, calls, store, options.limits, view.show)
    if calls.fault is not None:
        raise calls.fault
    outcome.printed = collected.lines
    return outcome
