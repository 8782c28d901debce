"""Agent nodes ask for a strategy of the plugin that is given, with parameters that it has."""

from collections.abc import Iterator

from devhost.flow.document import FlowFile, FlowNode
from devhost.plugin.declaration import PluginDeclaration

KINDS = ("constant", "mixed", "variable")
"""How a parameter of an Agent or Tool node has its value."""


def of_other_providers(file: FlowFile, plugin: PluginDeclaration) -> Iterator[str]:
    """Notices: a plugin under development may have another author, but hardly another provider."""
    for node in file.nodes.values():
        name, asked = str(node.data.get("agent_strategy_name")), node.data.get("agent_strategy_provider_name")
        if node.type != "agent" or not asked or name not in plugin.strategies:
            continue
        provider = plugin.strategies[name][0].identity.name
        if str(asked).rpartition("/")[2] != provider:
            yield (
                f"{node} asks for {name!r} of {asked}; it is played with that of "
                f"{plugin.manifest.author}/{plugin.manifest.name}/{provider} in {plugin.directory}"
            )


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
