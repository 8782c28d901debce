"""The parameters of an Agent node as Dify builds them before a run: resolved from its settings, then cast.

In: what the node holds for each parameter (a constant, which may be a template, or a variable's selector) and the
workflow's variables. Out: every declared parameter as the plugin receives it, or a `NodeParameterError` with the
words that the node shows.

A setting is written `{"variable": "node.name"}` for a selector and `{"constant": VALUE}` for a constant that looks
like one; any other value but a `Picked` is a constant.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from devhost.errors import NodeParameterError, ParameterError
from devhost.node.variables import NodeVariables
from devhost.plugin.casting import PLUGIN_FILE, cast_parameters, is_file
from devhost.plugin.keys.parameters import Parameter
from devhost.protocol.wire import JsonObject
from devhost.text.json_value import typed_json


@dataclass(frozen=True)
class Constant:
    """Dify replaces references in a value of any type; a text may be a template."""

    value: object


@dataclass(frozen=True)
class Selector:
    path: tuple[str, ...]


@dataclass(frozen=True)
class Picked:
    """A model or tools, which the node's own pickers describe: sent as it is."""

    value: object


type Setting = Constant | Selector | Picked


def read_setting(value: object) -> Setting:
    match value:
        case Picked():
            return value
        case {"constant": constant, **rest} if not rest:
            return Constant(constant)
        case {"variable": str(path), **rest} if not rest:
            return Selector(tuple(path.split(".")))
        case {"variable": other, **rest} if not rest:
            raise ParameterError(f"{{variable: {other!r}}}: name the variable as NODE.NAME, such as start.items")
        case _:
            return Constant(value)


def node_parameters(
    declared: Iterable[Parameter], settings: Mapping[str, Setting], variables: NodeVariables
) -> JsonObject:
    """A parameter without a setting gets its default, as one whose setting is empty does."""
    declared = list(declared)
    values = {
        parameter.name: resolved(settings[parameter.name], variables)
        for parameter in declared
        if parameter.name in settings
    }
    return {name: _sent(value) for name, value in cast_parameters(declared, values).items()}


def _sent(value: object) -> object:
    """A file, or a list of files, as a plugin gets it (dify-api, `convert_parameters_to_plugin_format`)."""
    match value:
        case dict() if is_file(value):
            return {key: value[key] for key in PLUGIN_FILE if key in value}
        case [*files] if files and all(map(is_file, files)):
            return [_sent(file) for file in files]
        case _:
            return value


def resolved(setting: Setting, variables: NodeVariables) -> object:
    """The value before the cast."""
    match setting:
        case Selector(path):
            variable = variables.get(path)
            if variable is None:
                raise NodeParameterError(f"Variable '{list(path)}' does not exist")
            return variable.value
        case Constant(value):
            return _filled(value, variables)
        case Picked(value):
            return value


def _filled(value: object, variables: NodeVariables) -> object:
    """Other values than texts become JSON, are filled as texts are, and are read again."""
    if isinstance(value, str):
        return variables.filled(value)
    try:
        filled = variables.filled(json.dumps(value, ensure_ascii=False))
    except TypeError:
        return variables.filled(str(value))
    try:
        return typed_json(filled)
    except ValueError:
        return filled
