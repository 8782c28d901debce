"""Names and schemas as a model sees them, in a form that every API accepts.

Values are checked against the tool's own schema, and the tool is called under its own names.

The rules and their sources are in docs/model-facts.md, "Names and schemas that APIs refuse".
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any

from dify_plugin.entities.model.message import PromptMessageTool

from internal.node.schema import rewritten
from internal.tooling import json_type
from prompt import template

_NAME_LENGTH = 64
_NAME = re.compile(rf"[a-zA-Z0-9_.-]{{1,{_NAME_LENGTH}}}")
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_.-]")


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """A safe name for each of these names that some API refuses, different from all other names.

    The same names in the same order get the same safe names.
    """
    own = list(dict.fromkeys(names))
    taken = set(own)
    safe: dict[str, str] = {}
    for name in own:
        if not _NAME.fullmatch(name):
            safe[name] = _free_name(name, taken)
            taken.add(safe[name])
    return safe


def _free_name(name: str, taken: set[str]) -> str:
    plain = _NOT_IN_A_NAME.sub("_", name[:_NAME_LENGTH])
    if not re.search(r"[a-zA-Z0-9]", plain):
        plain = "parameter"
    numbered = (f"{plain[: _NAME_LENGTH - len(str(number)) - 1]}_{number}" for number in count(2))
    return next(each for each in chain([plain], numbered) if each not in taken)


_TELLS_BY_NAME = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "enum", "const", "patternProperties"}
) | frozenset({"propertyNames", "dependencies", "dependentSchemas", "dependentRequired"})
"""Keywords of an object's schema that may refer to its properties by name."""
_DEFINITIONS = ("#/$defs/", "#/definitions/")


def safe_property_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """A safe name for each property of an object whose name some API refuses.

    Empty if other parts of the schema depend on the own names. Such properties keep their names.
    """
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not _TELLS_BY_NAME.isdisjoint(schema):
        return {}
    safe = safe_names([*properties, *schema.get("required", ())])
    if safe and _is_referred_to(schema):
        return {}
    return safe


def _is_referred_to(schema: Mapping[str, Any]) -> bool:
    """Whether a reference points to the schema itself, or to a part of it that is not a definition."""
    references: list[object] = []

    def collected(part: Mapping[str, Any]) -> Mapping[str, Any]:
        references.extend(part[key] for key in ("$ref", "$dynamicRef", "$recursiveRef") if key in part)
        return part

    rewritten(schema, collected)
    return not all(isinstance(each, str) and each.startswith(_DEFINITIONS) for each in references)


def with_property_names(schema: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The schema of an object with these names for its properties instead of their own."""
    renamed = dict(schema)
    properties = dict(schema.get("properties", {}))
    for own in names.keys() & properties.keys():
        properties[own] = _with_own_name(properties[own], own)
    renamed["properties"] = {names.get(own, own): part for own, part in properties.items()}
    if "required" in schema:
        renamed["required"] = [names.get(own, own) for own in schema["required"]]
    return renamed


def _with_own_name(part: object, own_name: str) -> object:
    """The schema of a property with its own name in the description, since it may mean more than the safe name."""
    if not isinstance(part, Mapping):
        return part
    said = template.OWN_NAME_OF_PARAMETER.format(name=json.dumps(own_name, ensure_ascii=False))
    return {**part, "description": _joined(part, said)}


def _joined(part: Mapping[str, Any], more: str) -> str:
    return "\n".join(filter(None, [str(part.get("description") or ""), more]))


def offered_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a tool's schema, with all schemas in it, in the form that a model sees."""
    offered: dict[str, Any] = rewritten(schema, _offered_part)
    return {**offered, "properties": offered.get("properties", {})}


def _offered_part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return _with_items(_with_options_described(part))


def _with_options_described(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep only texts in an ``enum``, and only if a text is valid; otherwise list the values in the description."""
    options = part.get("enum")
    if not isinstance(options, list):
        return part
    if all(isinstance(option, str) for option in options) and may_be_an_option(part):
        return part
    values = ", ".join(json.dumps(option, ensure_ascii=False) for option in options)
    others = {key: value for key, value in part.items() if key != "enum"}
    return {**others, "description": _joined(part, template.OPTIONS_OF_PARAMETER.format(values=values))}


def may_be_an_option(part: Mapping[str, Any]) -> bool:
    """Whether a value of the schema's type can be one of its options; an array, for instance, cannot be a text."""
    options = part.get("enum")
    types = set(_types(part))
    if not types or not options or not isinstance(options, list):
        return True
    if "integer" in types:
        types.add("number")
    return any(json_type(option).rpartition(" ")[2] in types for option in options)


def _with_items(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give an array's schema ``items`` if it has none; they may then be anything."""
    if "array" not in _types(part) or "items" in part:
        return part
    return {**part, "items": {}}


def _types(part: Mapping[str, Any]) -> list[str]:
    """The types that a schema names. The schema may be unchecked."""
    named = part.get("type")
    if not isinstance(named, list):
        named = [named]
    return [each for each in named if isinstance(each, str)]


MAX_DESCRIPTION = 1_024
"""Maximum characters of a description once a provider has refused a longer one."""


def with_short_descriptions(tools: Sequence[PromptMessageTool]) -> Sequence[PromptMessageTool]:
    """The tools with long descriptions cut to what every provider accepts; the same object if none is long."""
    cut = [_with_short_descriptions(tool) for tool in tools]
    if cut == list(tools):
        return tools
    return cut


def _with_short_descriptions(tool: PromptMessageTool) -> PromptMessageTool:
    parameters = rewritten(tool.parameters, _with_short_description)
    return PromptMessageTool(name=tool.name, description=_cut(tool.description), parameters=parameters)


def _with_short_description(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    description = schema.get("description")
    if not isinstance(description, str):
        return schema
    return {**schema, "description": _cut(description)}


def _cut(description: str) -> str:
    if len(description) <= MAX_DESCRIPTION:
        return description
    return f"{description[: MAX_DESCRIPTION - 2]} …"
