"""Which tools the nodes of a flow name, and which of them no given plugin has."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from devhost.flow.document import FlowFile, FlowNode
from devhost.node.agent_tools import enabled_tools
from devhost.node.named_tools import ToolName, meant_tool
from devhost.plugin.declaration import PluginDeclaration, Strategy


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
    file: FlowFile, strategies: Iterable[Strategy], plugins: Iterable[PluginDeclaration]
) -> Iterator[str]:
    """`plugins`: those of --tools and --example."""
    there_are = [name for plugin in plugins for name in _names(plugin)]
    listed = ", ".join(f"{provider}/{name}" for provider, name in there_are) or "no tools"
    missing: dict[tuple[str, str], list[NamedTool]] = {}
    for tool in named_tools(file, strategies):
        if meant_tool(tool.provider, tool.name, there_are) is None:
            missing.setdefault((tool.node.id, tool.provider), []).append(tool)
    for (_, provider), tools in missing.items():
        names = ", ".join(tool.name for tool in tools)
        yield (
            f"{tools[0].node} uses {names} of {provider}: no given plugin has that; there are: {listed}. "
            "Give the folder of the tool plugin with --tools DIR"
        )


def _names(plugin: PluginDeclaration) -> Iterator[ToolName]:
    for provider in plugin.tool_providers:
        for tool in provider.tools:
            yield plugin.provider_id(provider), tool.identity.name
