"""`devhost tool`: calls one tool of a tool plugin or an MCP server, or lists the tools."""

import os
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter

from devhost.direct import AskedTool, by_parameter, call_directly, find_tool, setup_of
from devhost.errors import ParameterError
from devhost.files import LocalFile
from devhost.host.backwards import PluginStorage
from devhost.host.host import start_tools
from devhost.hosting import HostOptions, ModelOptions, credential_option, mcp_option, started
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend, NoModel
from devhost.options import argument, color_option, command, json_option, option, print_json, traceback_option
from devhost.overview import tool_lines
from devhost.plugin.declaration import PluginDeclaration, ProvidedTool, nearest_plugin
from devhost.scenario import pairs, read_credentials
from devhost.terminal.screen import Screen, ViewOptions, open_console
from devhost.terminal.tool_view import ToolView
from devhost.text import Secrets, real_path
from devhost.tools.entity import typed_values
from devhost.tools.mcp import McpTool, connected, read_servers
from devhost.tools.setup import ToolSetup
from devhost.tools.tool import PluginTool

LISTED: TypeAdapter[list[ProvidedTool]] = TypeAdapter(list[ProvidedTool], config=ConfigDict(defer_build=True))


@dataclass(frozen=True)
class ToolOptions:
    """The options of `devhost tool`."""

    tool: str | None = argument("[NAME]")
    directories: tuple[Path, ...] = option(
        "--tools DIR...", "A Dify tool plugin; by default the nearest plugin, if no --mcp is given. Repeatable."
    )
    servers: tuple[str, ...] = mcp_option("")
    arguments: tuple[str, ...] = option("--arg KEY=VALUE...", "A value for a parameter of the tool; repeatable.")
    files: tuple[str, ...] = option(
        "--file [KEY=]PATH...",
        "A file for a parameter of the tool; its name may be left out if there is only one. Repeatable.",
    )
    credentials: tuple[str, ...] = credential_option()
    as_json: bool = json_option()
    traceback: bool = traceback_option()
    color: bool = color_option()


@command(ToolOptions, ModelOptions, HostOptions)
def tool(options: ToolOptions, models: ModelOptions, hosting: HostOptions) -> int:
    """Call one tool, and show every message.

    Without NAME, the command lists the tools with their parameters; with --json, as they are declared.

    For example:
      devhost tool --tools examples/helpdesk
      devhost tool --mcp "npx -y @modelcontextprotocol/server-everything"
      devhost tool --tools examples/helpdesk search_manual --arg terms="deleted files"
    """
    folders = options.directories or (() if options.servers else (nearest_plugin(),))
    plugins = [PluginDeclaration.read(folder) for folder in dict.fromkeys(map(real_path, folders))]
    servers, credentials = read_servers(options.servers, options.credentials)
    console = open_console(stderr=options.as_json, color=options.color)
    view = ToolView(console, ViewOptions(traceback=options.traceback), Screen(console))
    with connected(servers, hosting.limits, view.screen) as of_servers:
        there_are = [*(tool for plugin in plugins for tool in plugin.tools), *(each.provided for each in of_servers)]
        if not there_are:
            raise ParameterError(f"no tools: {', '.join(map(str, folders)) or 'the server'} has none; give --tools DIR")
        if options.tool is not None:
            found = find_tool(there_are, options.tool)
            is_scripted = models.asks_the_script()
            if is_scripted:
                models.refuse_for_a_script()
            model = NoModel() if is_scripted else models.open(os.environ)
            texts = read_credentials(plugins, credentials, os.environ)
            given = typed_values(found.declared, dict(pairs(options.arguments, "--arg")))
            files = by_parameter(found.declared, [_file(text, hosting.limits) for text in options.files])
            source: ToolSetup | McpTool | None = next((each for each in of_servers if each.provided is found), None)
            if source is None:
                plugin = next(plugin for plugin in plugins if found in plugin.tools)
                source = replace(setup_of(plugin, found, given, texts), is_validated=not models.unvalidated)
            models.plugins.tell(view.screen)
            return _called(AskedTool.of(found, given, files), source, model, options, hosting, view)
    if options.as_json:
        print_json({"tools": LISTED.dump_python(there_are, mode="json")})
        return 0
    for line in tool_lines(there_are):
        console.print(line, soft_wrap=True)
    return 0


def _called(  # noqa: PLR0913, PLR0917 - the parts of a call
    asked: AskedTool,
    source: ToolSetup | McpTool,
    model: ModelBackend,
    options: ToolOptions,
    hosting: HostOptions,
    view: ToolView,
) -> int:
    given = {name: [file.path.name for file in named] for name, named in asked.files.items()}
    shown = Secrets(source.secrets).masked({**asked.parameters, **given})
    name = asked.tool.names[-1]
    view.open(name, shown, model.description, source.notices)
    plugins = () if isinstance(source, McpTool) else (source,)
    storage = PluginStorage(hosting.storage)
    begin = partial(start_tools, plugins, transport=hosting.transport, watcher=view.screen, storage=storage)
    with started(begin, "tool", hosting, None) as host:
        running = source if isinstance(source, McpTool) else host.tools[0]
        limits = hosting.limits
        if isinstance(running, PluginTool) and "call_seconds" in limits.model_fields_set:
            running.end_as_an_agents_call()
        outcome = call_directly(running, asked, host, host.calls(model, []), view.show)
    view.close(outcome)
    if options.as_json:
        print_json({"tool": name, "sent": shown, "notices": list(source.notices), **asdict(outcome)})
    return int(bool(outcome.error or (hosting.strict and (outcome.findings or outcome.told_an_error))))


def _file(text: str, limits: HostLimits) -> tuple[str, LocalFile]:
    """Reads `KEY=PATH` or `PATH`. A text that is the path of an existing file is always read as a path."""
    key, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        key = ""
        path = text
    return key, LocalFile.read(Path(path), limits)
