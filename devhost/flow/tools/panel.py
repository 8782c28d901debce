"""The panel of an Agent node: its parameters as settings for a run.

In: `agent_parameters` as in the DSL file. Out: settings as `devhost.node.parameters.read_setting` reads them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devhost.models.backend import ModelDescription
from devhost.node.agent_tools import agent_tools
from devhost.node.parameters import Constant, Picked, resolved
from devhost.node.variables import NodeVariables
from devhost.plugin.declaration import Strategy
from devhost.plugin.keys.parameters import Parameter
from devhost.protocol.wire import JsonObject


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
