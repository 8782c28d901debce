"""The Agent node's side of an invocation: which strategy, with which parameters.

In: a plugin's declaration and what the node holds. Out: the request that invokes the strategy.
"""

import contextlib
from collections.abc import Mapping, Sequence

from devhost.errors import ParameterError
from devhost.node.parameters import Constant, Picked, Setting, node_parameters, read_setting, resolved
from devhost.node.variables import NodeVariables
from devhost.plugin.declaration import PluginDeclaration, Strategy, StrategyProvider
from devhost.protocol.wire import JsonObject
from devhost.tools.tool import Tool


def find_strategy(plugin: PluginDeclaration, name: str) -> tuple[StrategyProvider, Strategy]:
    with contextlib.suppress(KeyError):
        return plugin.strategies[name]
    raise ParameterError(f"there is no strategy {name!r}; {plugin.manifest.name} has: {', '.join(plugin.strategies)}")


def declared_outputs(strategy: Strategy) -> frozenset[str]:
    properties = (strategy.output_schema or {}).get("properties")
    return frozenset(properties if isinstance(properties, dict) else ())


def picked_values(strategy: Strategy, model: JsonObject, tools: Sequence[Tool]) -> JsonObject:
    """The values of the node's pickers for model and tools, under the names that the strategy gave them."""
    picked: dict[str, object] = {"model-selector": model, "array[tools]": [tool.entity for tool in tools]}
    return {parameter.name: picked[parameter.type] for parameter in strategy.parameters if parameter.type in picked}


def built_parameters(
    strategy: Strategy, picked: JsonObject, given: Mapping[str, object], variables: Mapping[str, object] | None
) -> JsonObject:
    """`given` are settings as `read_setting` reads them; `variables` by `node.name`."""
    known = NodeVariables(variables or {})
    settings: dict[str, Setting] = {
        name: Picked(_filled(value, known)) for name, value in picked.items() if name not in given
    }
    settings |= {name: read_setting(value) for name, value in given.items()}
    return node_parameters(strategy.parameters, settings, known)


def _filled(picked: object, variables: NodeVariables) -> object:
    """The texts that the panel holds for tools may be templates."""
    if not isinstance(picked, list):
        return picked
    return [
        {
            **tool,
            "runtime_parameters": {
                name: resolved(Constant(value), variables) if isinstance(value, str) else value
                for name, value in tool["runtime_parameters"].items()
            },
        }
        for tool in picked
    ]


def node_request(provider: StrategyProvider, strategy: Strategy, parameters: JsonObject) -> JsonObject:
    return {
        "user_id": "devhost",
        "type": "agent_strategy",
        "action": "invoke_agent_strategy",
        "agent_strategy_provider": provider.identity.name,
        "agent_strategy": strategy.identity.name,
        "agent_strategy_params": parameters,
    }
