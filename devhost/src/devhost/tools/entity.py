"""The form in which Dify sends a declared tool to a strategy, with the values that its panel sets."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from devhost.errors import NodeParameterError, ParameterError, about, naming
from devhost.node.parameters import NodeVariables
from devhost.plugin.casting import cast_parameter, initial_value
from devhost.plugin.declaration import FILES, Parameter, ProvidedTool, ToolDeclaration
from devhost.protocol.wire import JsonObject

EMPTY_TOOL: JsonObject = {
    "parameters": [],
    "output_schema": {},
    "has_runtime_parameters": False,
    "runtime_parameters": {},
    "credential_id": None,
    "provider_type": "builtin",
}
EMPTY_PARAMETER: JsonObject = {
    **{name: field.default for name, field in Parameter.model_fields.items() if not field.is_required()},
    "options": [],
    "input_schema": None,
}


def tool_entity(provided: ProvidedTool, fixed: Mapping[str, object]) -> JsonObject:
    """Returns the tool's entity with the values of its panel.

    Raises `ParameterError` for a tool that Dify does not offer to an agent: a tool that requires a file, or a tool with
    a missing or invalid value in its panel.
    """
    tool = provided.declared
    if files := refused_parameters(tool.parameters):
        raise ParameterError(
            f"{tool.identity.name} needs a file ({', '.join(files)}), so Dify does not offer it to an agent"
        )
    values = {
        parameter.name: _value(tool, parameter, fixed)
        for parameter in tool.parameters
        if parameter.form == "form" or parameter.name in fixed
    }
    return _in_panel(declared_entity(provided), values)


def declared_entity(provided: ProvidedTool) -> JsonObject:
    """Returns the tool's entity without values in its panel."""
    tool = provided.declared
    return {
        **EMPTY_TOOL,
        "identity": {
            **tool.identity.model_dump(mode="json", exclude={"icon"}),
            "provider": provided.provider_id,
            "icon": provided.provider.identity.icon,
        },
        "parameters": [
            {
                **parameter.model_dump(mode="json"),
                "input_schema": None,  # the daemon has no field for a plugin's schema, so no agent receives it
                "options": [
                    {"value": option.value, "label": option.label.model_dump(mode="json"), "icon": None}
                    for option in parameter.options
                ],
            }
            for parameter in tool.parameters
        ],
        "description": tool.description.model_dump(mode="json"),
        "output_schema": tool.output_schema or {},
        "has_runtime_parameters": tool.has_runtime_parameters,
    }


def filled(entity: JsonObject) -> JsonObject:
    """Returns the entity with the keys that `shortened` omits."""
    parameters = [{**EMPTY_PARAMETER, **parameter} for parameter in entity.get("parameters") or ()]
    return {**EMPTY_TOOL, **entity, "parameters": parameters}


def shortened(entity: JsonObject) -> JsonObject:
    """Returns the entity without keys that have their usual values, for a file that people read."""
    parameters = [_without(parameter, EMPTY_PARAMETER) for parameter in entity.get("parameters") or ()]
    return _without({**entity, "parameters": parameters}, EMPTY_TOOL)


def _without(given: JsonObject, usual: JsonObject) -> JsonObject:
    return {name: value for name, value in given.items() if name not in usual or value != usual[name]}


def refused_parameters(parameters: Iterable[Parameter]) -> list[str]:
    """Returns the required file parameters. With such a parameter Dify refuses the tool in an agent.

    A model cannot pass a file.
    """
    return [parameter.name for parameter in parameters if parameter.required and parameter.type in FILES]


def _in_panel(entity: JsonObject, values: JsonObject) -> JsonObject:
    """Returns the entity with the panel's values. The model cannot set the parameters that the panel sets."""
    parameters = [
        {**parameter, "form": "form"} if parameter["name"] in values else parameter
        for parameter in entity["parameters"]
    ]
    return {**entity, "parameters": parameters, "runtime_parameters": values}


def _value(tool: ToolDeclaration, parameter: Parameter, fixed: Mapping[str, object]) -> object:
    name = f"{tool.identity.name}.{parameter.name}"
    with about(f"set.{name}"):
        try:
            return cast_parameter(parameter, fixed.get(parameter.name))
        except ParameterError as error:
            raise ParameterError(f"{name} needs a valid value: {error}. Set it with --set {name}=VALUE") from error


# Values that a person types for a tool's parameters, converted as the widgets of Dify's panel convert them.

AS_TYPED = frozenset({"string", "secret-input", "select", "dynamic-select", "number", "boolean", "date", "checkbox"})


def typed_values(tool: ToolDeclaration, texts: Mapping[str, str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, text in texts.items():
        where = f"{tool.identity.name}.{name}"
        with about(f"set.{where}"):
            values[name] = _typed(parameter_of(tool, name), text, where)
    return values


def parameter_of(tool: ToolDeclaration, name: str) -> Parameter:
    """Returns the named parameter. Raises `ParameterError` if the tool does not declare it."""
    parameters = {parameter.name: parameter for parameter in tool.parameters}
    if name not in parameters:
        raise ParameterError(f"tool {tool.identity.name} has no parameter {name!r}; {naming(parameters)}")
    return parameters[name]


def _typed(parameter: Parameter, text: str, where: str) -> object:
    if text == "" or (parameter.type in AS_TYPED and not parameter.multiple):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        if parameter.type == "any":
            return text
        raise ParameterError(f"{where} is of type {parameter.type}: write its value as JSON") from error


# The tools of an Agent node, as Dify sends them to a strategy (dify-api, Agent node's runtime support, 1.17.0).

type ToolName = tuple[str, str]
"""The full id of the provider, author/plugin/provider, and the name of the tool."""


def meant_tool(provider: str, name: str, there_are: Iterable[ToolName]) -> ToolName | None:
    """Finds a tool by the full id of its provider, else by the last part of the id.

    A plugin under development may have another author. Returns `None` if no tool matches, or several do.
    """
    named = [tool for tool in there_are if tool[1] == name]
    if (provider, name) in named:
        return provider, name
    alike = [tool for tool in named if tool[0].rpartition("/")[2] == provider.rpartition("/")[2]]
    if len(alike) == 1:
        return alike[0]
    return None


def agent_tools(
    entries: object, there_are: Sequence[JsonObject], variables: NodeVariables, *, is_legacy: bool = False
) -> list[JsonObject]:
    """Returns the entities of the tools that a node enables.

    `there_are` has the available tools, each as a ToolEntity's JSON. `is_legacy` says that the node has no
    `tool_node_version`.
    """
    filled_in = variables.filled(entries or [])
    if not isinstance(filled_in, list):
        raise NodeParameterError("a variable's text in the settings of a tool breaks the JSON of the tools")
    return [_tool(entry, there_are, variables, is_legacy=is_legacy) for entry in enabled_tools(filled_in)]


def enabled_tools(entries: object) -> list[JsonObject]:
    listed = []
    if isinstance(entries, list):
        listed = entries
    return [entry for entry in listed if isinstance(entry, dict) and entry.get("enabled")]


def _tool(
    entry: JsonObject, there_are: Sequence[JsonObject], variables: NodeVariables, *, is_legacy: bool
) -> JsonObject:
    provider = str(entry.get("provider_name"))
    name = str(entry.get("tool_name"))
    by_name = {(tool["identity"]["provider"], tool["identity"]["name"]): tool for tool in there_are}
    found = meant_tool(provider, name, by_name)
    if found is None:
        raise NodeParameterError(f"tool {name} of provider {provider} not found")
    entity = by_name[found]
    by_hand = {  # the panel sets parameters with `auto` 0; the model sets the others and the empty ones
        key: value
        for key, held in (entry.get("parameters") or {}).items()
        if isinstance(held, dict) and held.get("auto") == 0 and (value := _held(held, variables)) is not None
    }
    held = {key: each.get("value") for key, each in (entry.get("settings") or {}).items() if isinstance(each, dict)}
    declared = [Parameter.model_validate(parameter) for parameter in entity["parameters"]]
    if files := refused_parameters(declared):
        raise NodeParameterError(f"file type parameter {files[0]} not supported in agent")
    resolve: Callable[[JsonObject], object] | None = partial(_resolved, variables=variables)
    if is_legacy:
        resolve = None
    values = panel_values(declared, held, resolve)
    described = (entry.get("extra") or {}).get("description") or entity["description"]["llm"]
    return {
        **_in_panel(entity, {**values, **by_hand}),  # Dify casts values set by hand only when the tool is called
        "description": {**entity["description"], "llm": described},
        "credential_id": entry.get("credential_id"),
    }


def panel_values(
    declared: Iterable[Parameter], given: Mapping[str, object], resolve: Callable[[JsonObject], object] | None
) -> JsonObject:
    """Returns the values that a node's panel sets.

    A node without `tool_node_version` has plain values, which are completed with defaults; `resolve` is `None`. In the
    DSL of a newer node each setting has a type, and `resolve` returns the value of a setting, which is not cast.
    """
    values: JsonObject = {}
    for parameter in declared:
        if parameter.form != "form":
            continue
        setting = given.get(parameter.name)
        if resolve is None:
            values[parameter.name] = initial_value(parameter, setting)
        elif isinstance(setting, dict) and (selector := _selector(parameter, setting)) is not None:
            values[parameter.name] = initial_value(parameter, selector)
        elif isinstance(setting, dict) and setting.get("value") is not None:
            values[parameter.name] = resolve(setting)
    return values


def _selector(parameter: Parameter, setting: JsonObject) -> JsonObject | None:
    """Returns the model or app that a setting selects, in its value or next to its type; `None` for other settings."""
    keys = {"model-selector": ("provider", "model", "model_type"), "app-selector": ("app_id",)}.get(parameter.type)
    for holder in (setting.get("value"), setting):
        if keys and isinstance(holder, dict) and all(isinstance(holder.get(key), str) for key in keys):
            return {
                key: value for key, value in holder.items() if holder is not setting or key not in {"type", "value"}
            }
    return None


def _resolved(setting: JsonObject, variables: NodeVariables) -> object:
    """Returns the value of a setting whose templates are already filled."""
    match setting:
        case {"type": "variable", "value": list(path)}:
            return variables.get([*map(str, path)])
        case _:
            return setting["value"]


def _held(setting: JsonObject, variables: NodeVariables) -> object:
    """Returns a value set by hand. Older nodes store the value without its type."""
    value = setting.get("value")
    if isinstance(value, dict) and "value" in value:
        return _resolved(value, variables)
    return value
