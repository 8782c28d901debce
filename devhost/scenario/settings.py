"""Values for a strategy's parameters, as the node's panel would hold them.

In: `--param` assignments, or a script's params. Out: settings as `node.parameters` reads them, checked against the
declaration before any process starts.
"""

import json
from collections.abc import Iterable, Iterator, Mapping

from devhost.errors import ParameterError
from devhost.node.parameters import Constant, node_parameters, read_setting
from devhost.node.variables import NodeVariables
from devhost.plugin.declaration import Strategy
from devhost.plugin.keys.parameters import Parameter
from devhost.protocol.wire import JsonObject
from devhost.text.json_value import typed_json

PICKED = frozenset({"model-selector", "array[tools]"})
"""Types of parameters that devhost fills itself, as the node's pickers do."""
TEXT_FIELDS = frozenset({"string", "secret-input", "select"})


def parse_assignments(assignments: Iterable[str], *, option: str = "--param") -> JsonObject:
    """KEY=VALUE pairs; a value that is JSON is parsed, any other is a text."""
    return {key: json_or_text(text) for key, text in pairs(assignments, option)}


def typed_settings(strategy: Strategy, assignments: Iterable[str]) -> JsonObject:
    """`--param KEY=VALUE` pairs: a text field holds what is typed, other widgets hold what the JSON says."""
    declared = {parameter.name: parameter for parameter in strategy.parameters}
    settings: JsonObject = {}
    for name, text in pairs(assignments, "--param"):
        value = json_or_text(text)
        is_text = name in declared and _is_text_field(declared[name]) and read_setting(value) == Constant(value)
        settings[name] = text if is_text else value
    return settings


def checked_settings(strategy: Strategy, values: Mapping[str, object], variables: NodeVariables) -> JsonObject:
    """The values as settings; ParameterError for unknown parameters and for values that Dify's node refuses."""
    settable = [parameter for parameter in strategy.parameters if parameter.type not in PICKED]
    names = [parameter.name for parameter in settable]
    for name in values:
        if name not in names:
            raise ParameterError(
                f"{strategy.identity.name} has no parameter {name!r} to set; there are: {', '.join(names)}"
            )
    settings = {
        parameter.name: _in_widget(parameter, values[parameter.name])
        for parameter in settable
        if parameter.name in values
    }
    node_parameters(settable, {name: read_setting(value) for name, value in settings.items()}, variables)
    return settings


def pairs(assignments: Iterable[str], option: str) -> Iterator[tuple[str, str]]:
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise ParameterError(f"{option} {assignment!r} is not KEY=VALUE")
        yield key, text


def json_or_text(text: str) -> object:
    try:
        return typed_json(text)
    except ValueError:
        return text


def _is_text_field(parameter: Parameter) -> bool:
    """A number without both bounds is typed, too; with them it is a slider."""
    is_slider = parameter.min is not None and parameter.max is not None
    return parameter.type in TEXT_FIELDS or (parameter.type == "number" and not is_slider)


def _in_widget(parameter: Parameter, value: object) -> object:
    """An object or a list in a script's params becomes JSON in a text field, as a person would type it."""
    is_plain = isinstance(value, dict | list) and read_setting(value) == Constant(value)
    return json.dumps(value, ensure_ascii=False) if parameter.type == "string" and is_plain else value
