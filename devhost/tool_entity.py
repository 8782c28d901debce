"""A declared tool as the dictionary that Dify sends to a strategy.

The shape is ToolEntity's JSON plus `runtime_parameters`, `credential_id` and `provider_type`; form parameters have the
value that the node's panel would hold, which is their cast default when nobody touched it.
"""

from typing import Any

from devhost.casting import cast_parameter
from devhost.declaration import Parameter, Tool, ToolProvider
from devhost.wire import JsonObject


def tool_entity(provider_id: str, provider: ToolProvider, tool: Tool) -> JsonObject:
    return {
        "identity": {
            **tool.identity.model_dump(mode="json", exclude={"icon"}),
            "provider": provider_id,
            "icon": provider.identity.icon,
        },
        "parameters": [_parameter(parameter) for parameter in tool.parameters],
        "description": tool.description.model_dump(mode="json"),
        "output_schema": tool.output_schema or {},
        "has_runtime_parameters": tool.has_runtime_parameters,
        "runtime_parameters": {
            parameter.name: cast_parameter(parameter, None) for parameter in tool.parameters if parameter.form == "form"
        },
        "credential_id": None,
        "provider_type": "builtin",
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    described = parameter.model_dump(mode="json")
    described["options"] = [
        {"value": option.value, "label": option.label.model_dump(mode="json"), "icon": None}
        for option in parameter.options
    ]
    return described
