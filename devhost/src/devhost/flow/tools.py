"""The tools and strategies that the nodes of a flow name, and the values of an Agent node's panel."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from devhost.flow.document import FlowFile
from devhost.models.backend import ModelDescription
from devhost.node.parameters import NodeVariables, Picked
from devhost.plugin.declaration import Parameter, PluginDeclaration, Strategy, Tool
from devhost.protocol.wire import JsonObject
from devhost.tools.entity import ToolName, agent_tools, enabled_tools, meant_tool
from devhost.trace.flow import FlowNode

# The tools that the nodes of a flow name: which of them no given plugin has, and which parameters those do not have.


def named_tools(file: FlowFile) -> Iterator[tuple[FlowNode, ToolName]]:
    for node in file.nodes.values():
        if node.type == "tool":
            provider = node.data.get("provider_id") or node.data.get("provider_name")
            yield node, (str(provider), str(node.data.get("tool_name")))
        elif node.type == "agent":
            for setting in _mapping(node, "agent_parameters").values():
                for entry in enabled_tools(setting.get("value") if isinstance(setting, dict) else None):
                    if "tool_name" in entry:
                        yield node, (str(entry.get("provider_name")), str(entry["tool_name"]))


def missing_tools(file: FlowFile, there_are: Iterable[ToolName], servers: Collection[str] = ()) -> Iterator[str]:
    """`servers`: providers of which it is not known what they have."""
    there_are = list(there_are)
    listed = ", ".join(f"{provider}/{name}" for provider, name in there_are) or "no tools"
    for node, (provider, name) in named_tools(file):
        if provider not in servers and meant_tool(provider, name, there_are) is None:
            server = f", or an MCP server of this name with --mcp {provider}=COMMAND"
            yield (
                f"{node} uses {name} of {provider}: no given plugin has that; there are: {listed}. "
                f"Give the folder of the tool plugin with --tools DIR{'' if '/' in provider else server}"
            )


def tools_of(plugins: Iterable[PluginDeclaration]) -> dict[ToolName, Tool]:
    return {(tool.provider_id, tool.name): tool.declared for plugin in plugins for tool in plugin.tools}


def unknown_parameters(file: FlowFile, tools: Mapping[ToolName, Tool]) -> Iterator[str]:
    """Of Tool nodes. A tool that is not among these is not looked at."""
    for node, (provider, name) in named_tools(file):
        found = meant_tool(provider, name, tools) if node.type == "tool" else None
        if found is not None and not tools[found].has_runtime_parameters:
            for key in ("tool_parameters", "tool_configurations"):
                yield from _unknown(node, key, name, tools[found].parameters)


def _mapping(node: FlowNode, key: str) -> Mapping[str, Any]:
    given = node.data.get(key)
    return given if isinstance(given, dict) else {}


def _unknown(node: FlowNode, key: str, owner: str, parameters: Iterable[Parameter]) -> Iterator[str]:
    declared = [parameter.name for parameter in parameters]
    for unknown in sorted(_mapping(node, key).keys() - {*declared}):
        there_are = ", ".join(declared) or "none"
        yield f"{node} sets the parameter {unknown!r}, which {owner} does not have; it has: {there_are}"


def wrong_strategies(file: FlowFile, plugin: PluginDeclaration) -> Iterator[str]:
    """Agent nodes ask for a strategy of the plugin that is given, with parameters that it has."""
    for node in file.nodes.values():
        name = str(node.data.get("agent_strategy_name"))
        if node.type != "agent":
            continue
        if name not in plugin.strategies:
            yield (
                f"{node} asks for the strategy {name!r}; {plugin.manifest.name} in {plugin.directory} has: "
                f"{', '.join(plugin.strategies) or 'none'}. Choose one of them, or give the other plugin with "
                "--plugin DIR"
            )
            continue
        parameters = plugin.strategies[name][1].parameters
        yield from _unknown(node, "agent_parameters", name, parameters)
        for parameter in parameters:
            is_set = parameter.name in _mapping(node, "agent_parameters") or parameter.default is not None
            if parameter.required and not is_set:
                yield f"{node} does not set the parameter {parameter.name!r}, which {name} needs"


# The panel of an Agent node: its parameters as settings for a run.


def panel_settings(  # noqa: PLR0913, PLR0917 - what fills a panel
    strategy: Strategy,
    parameters: Mapping[str, Mapping[str, Any]],
    known: NodeVariables,
    model: ModelDescription,
    history: Sequence[JsonObject],
    tools: Sequence[JsonObject],
) -> dict[str, object]:
    """NodeParameterError in the words of Dify's node.

    `model`: of the one that answers here. `history`: the node's memory. `tools`: all that there are, each as a
    ToolEntity's JSON.
    """
    settings: dict[str, object] = {name: _setting(parameter) for name, parameter in parameters.items()}
    for parameter in strategy.parameters:
        value = parameters.get(parameter.name, {}).get("value")
        if parameter.type == "array[tools]":
            settings[parameter.name] = Picked(agent_tools(value, tools, known))
        elif parameter.type == "model-selector":
            settings[parameter.name] = Picked(_selector(known.filled(value or {}), model, history))
    return settings


def _selector(chosen: object, model: ModelDescription, history: Sequence[JsonObject]) -> JsonObject:
    """A scripted model answers under any name: then it is the node's. Parameters of the command come first."""
    given = chosen if isinstance(chosen, dict) else {}
    answers = model.selector(history)
    completion = {**(given.get("completion_params") or {}), **answers["completion_params"]}
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
