"""The tools and strategies that the nodes of a flow use, and the values of an Agent node's panel."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devhost.errors import naming
from devhost.flow.document import FlowFile
from devhost.flow.judgement import FlowFinding, Judge, notice
from devhost.models.backend import ModelDescription
from devhost.node.parameters import NodeVariables, PickedValue, UndeclaredValue
from devhost.plugin.declaration import Parameter, PluginDeclaration, Strategy, ToolDeclaration
from devhost.protocol.wire import JsonObject
from devhost.tools.entity import ToolName, agent_tools, enabled_tools, meant_tool
from devhost.trace.flow import FlowNode
from devhost.words import misspelt

# The tools that the nodes of a flow use. Tools that no given plugin has, and parameters that a tool does not have, are
# reported.


@dataclass(frozen=True)
class NamedTool:
    """A tool that a node uses."""

    node: FlowNode
    tool: ToolName
    said: Mapping[str, Any]
    """The node's data about the tool. For a Tool node, this is all of the node's data."""

    @property
    def kind(self) -> str:
        """The type of the tool's provider, such as builtin, api, workflow or mcp."""
        key = "type"
        if self.node.type == "tool":
            key = "provider_type"
        return str(self.said.get(key) or "builtin")

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters that the node sets."""
        keys = ("parameters", "settings")
        if self.node.type == "tool":
            keys = ("tool_parameters", "tool_configurations")
        return [name for key in keys for name in _mapping(self.said, key)]

    @property
    def keys(self) -> list[str]:
        """The names that a script may use for the tool."""
        name = self.tool[1]
        providers = (self.tool[0], self.said.get("provider_name"), self.said.get("provider_show_name"))
        return [name, *(f"{provider}/{name}" for provider in providers if provider)]


def named_entries(file: FlowFile) -> Iterator[NamedTool]:
    for node in file.nodes.values():
        if node.type == "tool":
            provider = node.data.get("provider_id") or node.data.get("provider_name")
            yield NamedTool(node, (str(provider), str(node.data.get("tool_name"))), node.data)
        elif node.type == "agent":
            for setting in _mapping(node.data, "agent_parameters").values():
                yield from (NamedTool(node, name, entry) for name, entry in _enabled(setting))


def _enabled(setting: object) -> Iterator[tuple[ToolName, JsonObject]]:
    if isinstance(setting, dict):
        for entry in enabled_tools(setting.get("value")):
            if "tool_name" in entry:
                yield (str(entry.get("provider_name")), str(entry["tool_name"])), entry


def missing_tools(file: FlowFile, there_are: Iterable[ToolName], servers: Collection[str] = ()) -> Iterator[str]:
    """Yields a sentence for each tool that is missing. `servers` are providers whose tools are not known."""
    there_are = list(there_are)
    listed = ", ".join(f"{provider}/{name}" for provider, name in there_are) or "no tools"
    for entry in named_entries(file):
        provider, name = entry.tool
        if provider not in servers and meant_tool(provider, name, there_are) is None:
            yield f"{entry.node} uses {name} of {_missing(entry, listed)}let the script answer for it: {STAND_IN}"


STAND_IN = "tool_answers: {NAME: TEXT}"
OF_NO_PLUGIN = {"api": "a custom tool (OpenAPI)", "workflow": "a workflow tool"}
"""The names for tools whose provider exists only in Dify's workspace, by the type of the provider."""


def _missing(entry: NamedTool, listed: str) -> str:
    """Returns the end of a sentence that names the missing provider and the options that help."""
    provider = entry.tool[0]
    if entry.kind in OF_NO_PLUGIN:
        shown = entry.said.get("provider_name") or provider
        return f"{shown}, {OF_NO_PLUGIN[entry.kind]}, which is in Dify's workspace alone: "
    server = ""
    if "/" not in provider:
        server = f"or an MCP server of this name with --mcp {provider}=COMMAND, "
    lacks = f"{provider}: no given plugin has that; there are: {listed}"
    return f"{lacks}. Give the folder of the tool plugin with --tools DIR, {server}or "


def tools_of(plugins: Iterable[PluginDeclaration]) -> dict[ToolName, ToolDeclaration]:
    return {(tool.provider_id, tool.name): tool.declared for plugin in plugins for tool in plugin.tools}


def unknown_parameters(file: FlowFile, tools: Mapping[ToolName, ToolDeclaration]) -> Iterator[str]:
    """Checks Tool nodes and the tools of Agent nodes. A tool that is not in `tools` is skipped."""
    for entry in named_entries(file):
        found = meant_tool(*entry.tool, tools)
        if found is not None and not tools[found].has_runtime_parameters:
            yield from _unknown(entry.node, entry.parameters, entry.tool[1], tools[found].parameters)


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    given = data.get(key)
    if isinstance(given, dict):
        return given
    return {}


def _unknown(node: FlowNode, given: Iterable[str], owner: str, parameters: Iterable[Parameter]) -> Iterator[str]:
    declared = [parameter.name for parameter in parameters]
    for unknown in sorted({*given} - {*declared}):
        there_are = ", ".join(declared) or "none"
        yield (
            f"{node} sets the parameter {misspelt(unknown, declared)}, which {owner} does not have: Dify plays it all "
            f"the same; it has: {there_are}"
        )


PROVIDER_TYPES = ("builtin", "plugin", "api", "workflow", "app", "dataset-retrieval", "mcp")


def wrong_types(file: FlowFile) -> Iterator[str]:
    """Yields a sentence for each tool of an unknown provider type. The engine itself checks only Tool nodes."""
    for entry in named_entries(file):
        kind = entry.kind
        if kind not in PROVIDER_TYPES:
            what = f"{entry.node} has a tool {entry.tool[1]} of the type {misspelt(kind, PROVIDER_TYPES)}"
            yield f"{what}; {naming(PROVIDER_TYPES)}"


# The strategies that Agent nodes use, found in the given plugins.


@dataclass(frozen=True)
class MeantStrategy:
    """The strategy that an Agent node uses, with its plugin."""

    plugin: PluginDeclaration
    strategy: Strategy
    is_own: bool
    """Whether the strategy comes from the provider that the node names. A strategy of the same name can replace it."""


def meant_strategy(node: FlowNode, plugins: Iterable[PluginDeclaration]) -> MeantStrategy | None:
    """Finds a strategy by the full id of its provider, else by plugin and provider, else by its name alone.

    The author may differ while a plugin is under development.
    """
    asked = provider_of(node)
    name = str(node.data.get("agent_strategy_name"))
    having = [(plugin, *plugin.strategies[name]) for plugin in plugins if name in plugin.strategies]
    for depth in (0, 1):
        for plugin, provider, strategy in having:
            if not asked or _behind(plugin.provider_id(provider), depth) == _behind(asked, depth):
                return MeantStrategy(plugin, strategy, is_own=True)
    for plugin, _, strategy in having:
        return MeantStrategy(plugin, strategy, is_own=False)
    return None


def provider_of(node: FlowNode) -> str:
    """The provider of an Agent node's strategy: author/plugin/provider."""
    return str(node.data.get("agent_strategy_provider_name") or "")


def _behind(provider: str, depth: int) -> str:
    return provider.split("/", depth)[-1]


def agent_nodes(file: FlowFile) -> list[FlowNode]:
    return [node for node in file.nodes.values() if node.type == "agent"]


def wrong_strategies(file: FlowFile, plugins: Sequence[PluginDeclaration]) -> Iterator[FlowFinding]:
    """Checks that the given plugins have the strategies that Agent nodes use, with the parameters that they set."""
    for node in agent_nodes(file):
        name = str(node.data.get("agent_strategy_name"))
        meant = meant_strategy(node, plugins)
        if meant is None:
            yield _no_strategy(node, name, plugins)
            continue
        given = _mapping(node.data, "agent_parameters")
        parameters = meant.strategy.parameters
        judge: Judge = "editor"
        if meant.is_own:
            yield from map(notice, _unknown(node, given, name, parameters))
        else:
            judge = "devhost"
            yield notice(
                f"{node} asks for {name} of {provider_of(node)}: {name} of {meant.plugin.manifest.name} stands in. "
                f"Give the folder of the other plugin with --plugin DIR"
            )
        for parameter in parameters:
            if parameter.required and parameter.name not in given and parameter.default is None:
                yield FlowFinding(judge, f"{node} does not set the parameter {parameter.name!r}, which {name} needs")


def _no_strategy(node: FlowNode, name: str, plugins: Sequence[PluginDeclaration]) -> FlowFinding:
    """Reports a missing strategy. Dify's editor objects if the provider was given; otherwise, a plugin is missing."""
    asked = provider_of(node)
    there_are = "; ".join(
        f"{plugin.manifest.name} in {plugin.directory} has: {', '.join(plugin.strategies) or 'none'}"
        for plugin in plugins
    )
    providers = [plugin.provider_id(provider) for plugin in plugins for provider in plugin.strategy_providers]
    if not asked or asked in providers:
        return FlowFinding(
            "editor",
            f"{node} asks for the strategy {name!r}; {there_are}. Choose one of them, or give the other plugin with "
            "--plugin DIR",
        )
    what = f"{node} asks for the strategy {name!r} of {asked}: give the folder of that plugin with --plugin DIR"
    return FlowFinding("given", "; ".join(filter(None, (what, there_are))))


# The panel of an Agent node: its parameters as settings for a run.


def panel_settings(  # noqa: PLR0913, PLR0917 - a panel needs all of these
    strategy: Strategy,
    parameters: Mapping[str, Mapping[str, Any]],
    known: NodeVariables,
    model: ModelDescription,
    history: Sequence[JsonObject],
    tools: Sequence[JsonObject],
    *,
    is_legacy: bool = False,
) -> dict[str, object]:
    """Returns the settings of a run by parameter. Raises NodeParameterError with the message of Dify's node.

    `model` describes the model that answers here. `history` is the node's memory. `tools` are all available tools, each
    as a ToolEntity's JSON. `is_legacy` is true for a node without `tool_node_version`, whose tools have plain values as
    settings.
    """
    declared = {parameter.name for parameter in strategy.parameters}
    settings: dict[str, object] = {
        name: _setting(parameter) for name, parameter in parameters.items() if name in declared
    }
    settings |= {name: UndeclaredValue() for name in parameters if name not in declared}
    for parameter in strategy.parameters:
        value = parameters.get(parameter.name, {}).get("value")
        if parameter.type == "array[tools]":
            settings[parameter.name] = PickedValue(agent_tools(value, tools, known, is_legacy=is_legacy))
        elif parameter.type == "model-selector":
            settings[parameter.name] = PickedValue(_selector(known.filled(value or {}), model, history))
    return settings


def _selector(chosen: object, model: ModelDescription, history: Sequence[JsonObject]) -> JsonObject:
    """Returns the value of a model selector. A scripted model takes its name from the node.

    Completion parameters of the command override those of the node. A node without the key `completion_params` gets the
    defaults that the model declares.
    """
    given = {}
    if isinstance(chosen, dict):
        given = chosen
    answers = model.selector(history)
    rules = answers["entity"].get("parameter_rules") or []
    defaults = {rule["name"]: rule["default"] for rule in rules if rule.get("default") is not None}
    of_the_node = given.get("completion_params", defaults)
    completion = {**(of_the_node or {}), **answers["completion_params"]}
    selector = {**given, **answers, "completion_params": completion}
    if model.scripted and given.get("model"):
        named = {key: given[key] for key in ("provider", "model") if key in given}
        selector |= {**named, "entity": {**answers["entity"], "model": given["model"]}}
    return selector


def _setting(parameter: Mapping[str, Any]) -> object:
    match parameter:
        case {"type": "variable", "value": list(path)}:
            return {"variable": path}
        case _:
            return {"constant": parameter.get("value")}
