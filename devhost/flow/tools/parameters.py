"""Tool nodes set only parameters that their tools have."""

from collections.abc import Iterable, Iterator

from devhost.flow.document import FlowFile
from devhost.node.named_tools import meant_tool
from devhost.plugin.declaration import PluginDeclaration


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
