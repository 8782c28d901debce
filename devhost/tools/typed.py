"""Values that a person types for a tool's parameters, as the widgets of Dify's panel would make them.

In: a declaration, and texts by parameter. Out: values, not yet cast by the declaration; a `ParameterError` names the
parameter, and never quotes a value.
"""

import json
from collections.abc import Mapping

from devhost.errors import ParameterError
from devhost.plugin.declaration import Tool
from devhost.plugin.keys.parameters import Parameter

AS_TYPED = frozenset({"string", "secret-input", "select", "dynamic-select", "number", "boolean", "date", "checkbox"})


def typed_values(tool: Tool, texts: Mapping[str, str]) -> dict[str, object]:
    parameters = {parameter.name: parameter for parameter in tool.parameters}
    for name in texts:
        if name not in parameters:
            raise ParameterError(
                f"tool {tool.identity.name} has no parameter {name!r}; there are: {', '.join(parameters) or 'none'}"
            )
    return {name: _typed(tool, parameters[name], text) for name, text in texts.items()}


def _typed(tool: Tool, parameter: Parameter, text: str) -> object:
    where = f"{tool.identity.name}.{parameter.name}"
    if text == "" or (parameter.type in AS_TYPED and not parameter.multiple):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        if parameter.type == "any":
            return text
        raise ParameterError(f"{where} is of type {parameter.type}: write its value as JSON") from error
