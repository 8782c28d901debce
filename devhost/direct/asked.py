"""Which tool is called, and with which parameters.

In: plugins, a name, arguments and files. Out: an `AskedTool`, or a `ParameterError` before anything starts. The
parameters are what Dify's Tool node sends: what is given, the defaults, and every parameter of the panel.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from devhost.errors import ParameterError
from devhost.files.local_file import LocalFile
from devhost.files.server import FileServer
from devhost.plugin.casting import FILES, cast_parameter
from devhost.plugin.credentials import filled_credentials
from devhost.plugin.declaration import PluginDeclaration, Tool, ToolProvider
from devhost.plugin.keys.parameters import Parameter
from devhost.protocol.wire import JsonObject
from devhost.tools.setup import OfferedTool, Texts, ToolSetup
from devhost.tools.typed import typed_values


@dataclass(frozen=True)
class AskedTool:
    setup: ToolSetup
    """The plugin with this tool alone."""
    offered: OfferedTool
    parameters: JsonObject = field(repr=False)


@dataclass(frozen=True)
class Found:
    plugin: PluginDeclaration
    provider: ToolProvider
    tool: Tool

    @property
    def provider_id(self) -> str:
        return self.plugin.provider_id(self.provider)


def tools_of(plugins: Iterable[PluginDeclaration]) -> Iterator[Found]:
    for plugin in plugins:
        for provider in plugin.tool_providers:
            for tool in provider.tools:
                yield Found(plugin, provider, tool)


def find_tool(plugins: Sequence[PluginDeclaration], name: str) -> Found:
    """By its name, provider/name, or that with the whole id of the provider."""
    there_are = list(tools_of(plugins))
    named = [found for found in there_are if name in _names(found)]
    if not named:
        names = ", ".join(found.tool.identity.name for found in there_are) or "none"
        raise ParameterError(f"there is no tool {name!r}; there are: {names}")
    if len(named) > 1:
        names = ", ".join(f"{found.provider_id}/{found.tool.identity.name}" for found in named)
        raise ParameterError(f"{name!r} is the name of several tools; say which: {names}")
    return named[0]


def ask(
    found: Found,
    texts: Mapping[str, str],
    files: Sequence[tuple[str, LocalFile]],
    credentials: Texts,
    server: FileServer,
) -> AskedTool:
    """`texts` by parameter; `files` each with a parameter's name, or '' for the tool's only one."""
    given = typed_values(found.tool, texts)
    given |= _given_files(found.tool, files, server)
    provider = found.provider.identity.name
    filled = filled_credentials(
        provider, found.provider.credentials_for_provider, credentials.get(found.provider_id, {})
    )
    offered = OfferedTool(found.provider, found.tool, entity={}, fixed=given)  # no agent sees an entity
    alone = found.plugin.model_copy(update={"tool_providers": (found.provider,)})
    return AskedTool(ToolSetup(alone, (offered,), {provider: filled}), offered, _parameters(found.tool, given))


def _names(found: Found) -> set[str]:
    name = found.tool.identity.name
    return {name, f"{found.provider.identity.name}/{name}", f"{found.provider_id}/{name}"}


def _given_files(tool: Tool, files: Sequence[tuple[str, LocalFile]], server: FileServer) -> dict[str, object]:
    """A list for each: the cast makes one file of it where the parameter takes one."""
    takers = [parameter.name for parameter in tool.parameters if parameter.type in FILES]
    given: dict[str, list[JsonObject]] = {}
    for name, file in files:
        if name not in takers and (name or len(takers) != 1):
            there_are = ", ".join(takers) or "none"
            which = f"{name!r}, which is no parameter for files" if name else "no parameter"
            raise ParameterError(
                f"--file names {which} of {tool.identity.name}; its parameters for files are: {there_are}. "
                "Write --file NAME=PATH"
            )
        given.setdefault(name or takers[0], []).append(server.offer(file))
    return dict(given)


def _parameters(tool: Tool, given: Mapping[str, object]) -> JsonObject:
    """Cast as Dify casts them; a parameter of the panel is always there."""
    missing = [parameter for parameter in tool.parameters if parameter.required and not _has_value(parameter, given)]
    if missing:
        options = " ".join(_option(parameter) for parameter in missing)
        raise ParameterError(f"tool {tool.identity.name} needs {options}")
    return {
        parameter.name: cast_parameter(parameter, given.get(parameter.name))
        for parameter in tool.parameters
        if _has_value(parameter, given) or (parameter.form == "form" and parameter.type not in FILES)
    }


def _has_value(parameter: Parameter, given: Mapping[str, object]) -> bool:
    return parameter.name in given or parameter.default not in (None, "")


def _option(parameter: Parameter) -> str:
    return f"--file {parameter.name}=PATH" if parameter.type in FILES else f"--arg {parameter.name}=VALUE"
