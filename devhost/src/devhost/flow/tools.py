"""The tools and strategies that the nodes of a flow name, and the values of an Agent node's panel."""

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

# The tools that the nodes of a flow name: which of them no given plugin has, and which parameters those do not have.


@dataclass(frozen=True)
class NamedTool:
    node: FlowNode
    tool: ToolName
    said: Mapping[str, Any]
    """What the node says of it: a Tool node all that it has."""

    @property
    def kind(self) -> str:
        """The type of its provider, such as builtin, api, workflow or mcp."""
        key = "type"
        if self.node.type == "tool":
            key = "provider_type"
        return str(self.said.get(key) or "builtin")

    @property
    def parameters(self) -> list[str]:
        """The names of those that the node sets."""
        keys = ("parameters", "settings")
        if self.node.type == "tool":
            keys = ("tool_parameters", "tool_configurations")
        return [name for key in keys for name in _mapping(self.said, key)]

    @property
    def keys(self) -> list[str]:
        """How a script may name it."""
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
    """`servers`: providers of which it is not known what they have."""
    there_are = list(there_are)
    listed = ", ".join(f"{provider}/{name}" for provider, name in there_are) or "no tools"
    for entry in named_entries(file):
        provider, name = entry.tool
        if provider not in servers and meant_tool(provider, name, there_are) is None:
            yield f"{entry.node} uses {name} of {_missing(entry, listed)}let the script answer for it: {STAND_IN}"


STAND_IN = "tool_answers: {NAME: TEXT}"
OF_NO_PLUGIN = {"api": "a custom tool (OpenAPI)", "workflow": "a workflow tool"}
"""What a tool is called, by the type of a provider that exists in Dify's workspace alone."""


def _missing(entry: NamedTool, listed: str) -> str:
    """The provider, and what helps beside a script."""
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
    """Looks at Tool nodes and at the tools of Agent nodes. A tool that is not among these is passed over."""
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
    """Looks at the tools of Agent nodes; the engine itself looks at Tool nodes."""
    for entry in named_entries(file):
        kind = entry.kind
        if kind not in PROVIDER_TYPES:
            what = f"{entry.node} has a tool {entry.tool[1]} of the type {misspelt(kind, PROVIDER_TYPES)}"
            yield f"{what}; {naming(PROVIDER_TYPES)}"


# The strategies that Agent nodes ask for, among the plugins that are given.


@dataclass(frozen=True)
class MeantStrategy:
    plugin: PluginDeclaration
    strategy: Strategy
    is_own: bool
    """False for a strategy of the same name that stands in for that of another provider."""


def meant_strategy(node: FlowNode, plugins: Iterable[PluginDeclaration]) -> MeantStrategy | None:
    """The strategy by the whole id of its provider, else by plugin and provider, else by its name alone.

    A plugin under development may have another author.
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
    """Agent nodes ask for strategies of the plugins that are given, with parameters that these have."""
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
    """A plugin that is given and does not have its own strategy is wrong; another one is missing."""
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


def panel_settings(  # noqa: PLR0913, PLR0917 - what fills a panel
    strategy: Strategy,
    parameters: Mapping[str, Mapping[str, Any]],
    known: NodeVariables,
    model: ModelDescription,
    history: Sequence[JsonObject],
    tools: Sequence[JsonObject],
    *,
    is_legacy: bool = False,
) -> dict[str, object]:
    """NodeParameterError in the words of Dify's node.

    `model`: of the one that answers here. `history`: the node's memory. `tools`: all that there are, each as a
    ToolEntity's JSON. `is_legacy`: of a node without `tool_node_version`, whose tools have plain values as settings.
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
    """A scripted model answers under any name: then it is the node's. Parameters of the command come first.

    A node that has no completion parameters, not even empty ones, gets the defaults that the model declares.
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
