"""The tools of an Agent node, as Dify sends them to a strategy (dify-api, Agent node's runtime support, 1.17.0).

In: the value of the node's tools picker, the tools that there are, the workflow's variables. Out: a ToolEntity's JSON
for each tool that is switched on, with the panel's values; or a `NodeParameterError` with the words of the node.
"""

from collections.abc import Iterator, Mapping, Sequence

from devhost.errors import NodeParameterError
from devhost.node.named_tools import meant_tool
from devhost.node.parameters import Constant, Selector, resolved
from devhost.node.variables import NodeVariables
from devhost.plugin.casting import FILES, cast_parameter
from devhost.plugin.keys.parameters import Parameter
from devhost.protocol.wire import JsonObject

BY_HAND = 0
"""`auto` of a parameter that the panel sets; the model sets the others."""


def agent_tools(entries: object, there_are: Sequence[JsonObject], variables: NodeVariables) -> list[JsonObject]:
    """`there_are`: each as a ToolEntity's JSON."""
    filled = resolved(Constant(entries or []), variables)
    if not isinstance(filled, list):
        raise NodeParameterError("a variable's text in the settings of a tool breaks the JSON of the tools")
    return [_tool(entry, there_are, variables) for entry in enabled_tools(filled)]


def enabled_tools(entries: object) -> list[JsonObject]:
    listed = entries if isinstance(entries, list) else []
    return [entry for entry in listed if isinstance(entry, dict) and entry.get("enabled")]


def _tool(entry: JsonObject, there_are: Sequence[JsonObject], variables: NodeVariables) -> JsonObject:
    entity = _entity(str(entry.get("provider_name")), str(entry.get("tool_name")), there_are)
    by_hand = dict(_by_hand(entry.get("parameters") or {}, variables))
    settings = dict(_settings(entry.get("settings") or {}, variables))
    declared = [Parameter.model_validate(parameter) for parameter in entity["parameters"]]
    for parameter in declared:
        if parameter.required and parameter.type in FILES:
            raise NodeParameterError(f"file type parameter {parameter.name} not supported in agent")
    described = (entry.get("extra") or {}).get("description") or entity["description"]["llm"]
    return {
        **entity,
        "parameters": [
            {**parameter, "form": "form"} if parameter["name"] in by_hand else parameter
            for parameter in entity["parameters"]
        ],
        "description": {**entity["description"], "llm": described},
        "runtime_parameters": {
            **{
                parameter.name: cast_parameter(parameter, settings.get(parameter.name))
                for parameter in declared
                if parameter.form == "form"
            },
            **by_hand,  # Dify casts these only when the tool is called
        },
        "credential_id": entry.get("credential_id"),
    }


def _entity(provider: str, name: str, there_are: Sequence[JsonObject]) -> JsonObject:
    by_name = {(tool["identity"]["provider"], tool["identity"]["name"]): tool for tool in there_are}
    found = meant_tool(provider, name, by_name)
    if found is None:
        raise NodeParameterError(f"tool {name} of provider {provider} not found")
    return by_name[found]


def _by_hand(parameters: Mapping[str, object], variables: NodeVariables) -> Iterator[tuple[str, object]]:
    """What is left empty is the model's."""
    for name, parameter in parameters.items():
        match parameter:
            case {"auto": auto, "value": value} if auto == BY_HAND:
                if (set_by_hand := _value(value, variables)) is not None:
                    yield name, set_by_hand


def _settings(settings: Mapping[str, object], variables: NodeVariables) -> Iterator[tuple[str, object]]:
    for name, setting in settings.items():
        yield name, _value(setting.get("value") if isinstance(setting, dict) else setting, variables)


def _value(value: object, variables: NodeVariables) -> object:
    """Templates are filled already; older nodes hold the value itself."""
    match value:
        case {"type": "variable", "value": list(path)}:
            return resolved(Selector(tuple(map(str, path))), variables)
        case {"type": "mixed" | "constant", "value": inner}:
            return inner
        case _:
            return value
