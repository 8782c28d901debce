"""The tools and strategies that the nodes of a flow name, and the values of an Agent node's panel."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devhost.flow.document import FlowFile
from devhost.models.backend import ModelDescription
from devhost.node.parameters import (
    Constant,
    NodeVariables,
    Picked,
    ToolName,
    agent_tools,
    enabled_tools,
    meant_tool,
    resolved,
)
from devhost.plugin.declaration import Parameter, PluginDeclaration, Strategy
from devhost.protocol.wire import JsonObject
from devhost.trace.flow import FlowNode

# Which tools the nodes of a flow name, and which of them no given plugin has.


@dataclass(frozen=True)
class NamedTool:
    node: FlowNode
    provider: str
    name: str


def named_tools(file: FlowFile, strategies: Iterable[Strategy]) -> Iterator[NamedTool]:
    """`strategies`: those that Agent nodes can have."""
    pickers = {
        strategy.identity.name: [each.name for each in strategy.parameters if each.type == "array[tools]"]
        for strategy in strategies
    }
    for node in file.nodes.values():
        if node.type == "tool":
            provider = node.data.get("provider_id") or node.data.get("provider_name")
            yield NamedTool(node, str(provider), str(node.data.get("tool_name")))
        elif node.type == "agent":
            for picker in pickers.get(str(node.data.get("agent_strategy_name")), ()):
                yield from _of_agent(node, picker)


def _of_agent(node: FlowNode, picker: str) -> Iterator[NamedTool]:
    match node.data.get("agent_parameters"):
        case dict(parameters) if isinstance(parameters.get(picker), dict):
            for entry in enabled_tools(parameters[picker].get("value")):
                yield NamedTool(node, str(entry.get("provider_name")), str(entry.get("tool_name")))


def missing_tools(
    file: FlowFile, strategies: Iterable[Strategy], there_are: Iterable[ToolName], servers: Collection[str] = ()
) -> Iterator[str]:
    """`servers`: providers of which it is not known what they have."""
    there_are = list(there_are)
    listed = ", ".join(f"{provider}/{name}" for provider, name in there_are) or "no tools"
    missing: dict[tuple[str, str], list[NamedTool]] = {}
    for tool in named_tools(file, strategies):
        if tool.provider not in servers and meant_tool(tool.provider, tool.name, there_are) is None:
            missing.setdefault((tool.node.id, tool.provider), []).append(tool)
    for (_, provider), tools in missing.items():
        names = ", ".join(tool.name for tool in tools)
        server = "" if "/" in provider else f", or an MCP server of this name with --mcp {provider}=COMMAND"
        yield (
            f"{tools[0].node} uses {names} of {provider}: no given plugin has that; there are: {listed}. "
            f"Give the folder of the tool plugin with --tools DIR{server}"
        )


def names_of(plugins: Iterable[PluginDeclaration]) -> Iterator[ToolName]:
    for plugin in plugins:
        for provider in plugin.tool_providers:
            for tool in provider.tools:
                yield plugin.provider_id(provider), tool.identity.name


# The panel of an Agent node: its parameters as settings for a run.


@dataclass(frozen=True)
class Panel:
    model: ModelDescription
    """Of the model that answers here."""
    history: Sequence[JsonObject]
    """The node's memory."""
    tools: Sequence[JsonObject]
    """All that there are, each as a ToolEntity's JSON."""

    def settings(
        self, strategy: Strategy, parameters: Mapping[str, Mapping[str, Any]], variables: Mapping[str, object]
    ) -> dict[str, object]:
        """NodeParameterError in the words of Dify's node; `variables` by `node.name`."""
        known = NodeVariables(variables)
        settings: dict[str, object] = {name: _setting(parameter) for name, parameter in parameters.items()}
        for parameter in strategy.parameters:
            if parameter.type in {"model-selector", "array[tools]"}:
                value = parameters.get(parameter.name, {}).get("value")
                settings[parameter.name] = Picked(self._picked(parameter, value, known))
        return settings

    def _picked(self, parameter: Parameter, value: object, variables: NodeVariables) -> object:
        if parameter.type == "array[tools]":
            return agent_tools(value, self.tools, variables)
        return self._selector(resolved(Constant(value or {}), variables))

    def _selector(self, chosen: object) -> JsonObject:
        """A scripted model answers under any name: then it is the node's. Parameters of the command come first."""
        given = chosen if isinstance(chosen, dict) else {}
        answers = self.model.selector(self.history)
        completion = {**(given.get("completion_params") or {}), **answers["completion_params"]}
        selector = {**given, **answers, "completion_params": completion}
        if self.model.scripted and given.get("model"):
            named = {key: given[key] for key in ("provider", "model") if key in given}
            selector |= {**named, "entity": {**answers["entity"], "model": given["model"]}}
        return selector


def _setting(parameter: Mapping[str, Any]) -> object:
    value = parameter.get("value")
    match parameter.get("type"), value:
        case "variable", list(path):
            return {"variable": ".".join(map(str, path))}
        case _:
            return {"constant": value}


# Tool nodes set only parameters that their tools have.


def unknown_parameters(file: FlowFile, plugins: Iterable[PluginDeclaration]) -> Iterator[str]:
    """`plugins`: those of --tools and --example. A tool that they do not have is not looked at."""
    tools = {
        (plugin.provider_id(provider), tool.identity.name): tool
        for plugin in plugins
        for provider in plugin.tool_providers
        for tool in provider.tools
    }
    for node in file.nodes.values():
        provider = str(node.data.get("provider_id") or node.data.get("provider_name"))
        found = meant_tool(provider, str(node.data.get("tool_name")), list(tools)) if node.type == "tool" else None
        if found is None or tools[found].has_runtime_parameters:
            continue
        declared = [parameter.name for parameter in tools[found].parameters]
        for key in ("tool_parameters", "tool_configurations"):
            given = node.data.get(key)
            for unknown in sorted((given if isinstance(given, dict) else {}).keys() - {*declared}):
                yield (
                    f"{node} sets the parameter {unknown!r}, which {found[1]} does not have; "
                    f"it has: {', '.join(declared) or 'none'}"
                )


# Agent nodes ask for a strategy of the plugin that is given, with parameters that it has.

KINDS = ("constant", "mixed", "variable")
"""How a parameter of an Agent or Tool node has its value."""


def wrong_strategies(file: FlowFile, plugin: PluginDeclaration) -> Iterator[str]:
    for node in file.nodes.values():
        if node.type == "agent":
            yield from _wrong(node, plugin)


def _wrong(node: FlowNode, plugin: PluginDeclaration) -> Iterator[str]:
    name = str(node.data.get("agent_strategy_name") or "")
    if not name:
        yield f"{node} has no agent_strategy_name: choose a strategy in the node"
        return
    if name not in plugin.strategies:
        provider = node.data.get("agent_strategy_provider_name")
        asked = f"{name!r} of {provider}" if provider else repr(name)
        yield (
            f"{node} asks for the strategy {asked}; {plugin.manifest.name} in {plugin.directory} has: "
            f"{', '.join(plugin.strategies) or 'none'}. Choose one of them, or give the other plugin with --plugin DIR"
        )
        return
    strategy = plugin.strategies[name][1]
    declared = {parameter.name: parameter for parameter in strategy.parameters}
    given = node.data.get("agent_parameters")
    if not isinstance(given, dict):
        yield f"{node} has no agent_parameters: fill in the node"
        return
    for unknown in sorted(given.keys() - declared.keys()):
        yield f"{node} sets the parameter {unknown!r}, which {name} does not have; it has: {', '.join(declared)}"
    for parameter_name, setting in given.items():
        match setting:
            case {"type": kind, "value": _} if kind not in KINDS:
                yield f"{node} sets {parameter_name!r} with the type {kind!r}; the types are: {', '.join(KINDS)}"
    for parameter in declared.values():
        if parameter.required and parameter.name not in given and parameter.default is None:
            yield f"{node} does not set the parameter {parameter.name!r}, which {name} needs"
