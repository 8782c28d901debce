"""The parameters of a traced run as settings of a script.

In: the parameters as the node sent them. Out: `params` and `variables` of a script with which the node sends the same,
and the run's pickers: its model and its tools.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from devhost.node.memory import files_among
from devhost.node.parameters import Constant, read_setting
from devhost.plugin.casting import is_file
from devhost.protocol.wire import JsonObject
from devhost.scenario.attached import FILES

QUERY = "query"
NODE = "recorded"
"""The node whose variables hold values that a script could not write as constants."""
LONGEST_NAME = 30
"""Characters of a variable's name."""


@dataclass(frozen=True)
class Settings:
    params: JsonObject
    variables: JsonObject


def settings(parameters: Mapping[str, object]) -> Settings:
    """Without the question; empty values are left out, because Dify sends the default for them."""
    params: JsonObject = {}
    variables: JsonObject = {}
    for name, value in parameters.items():
        if name == QUERY or value in (None, "", [], {}) or _is_picked(value):
            continue
        if is_file(value) or (isinstance(value, list) and all(map(is_file, value))):
            params[name] = {"variable": FILES}
        elif _is_plain(value):
            params[name] = value
        else:
            variable = f"{NODE}.{name[:LONGEST_NAME]}"
            params[name], variables[variable] = {"variable": variable}, value
    return Settings(params, variables)


def _is_plain(value: object) -> bool:
    """Whether a constant is sent as it is: no reference to a variable in it, and not the form of a selector."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "{{#" not in text and not text.startswith("sys.") and read_setting({"constant": value}) == _read(value)


def _read(value: object) -> object:
    return Constant(value) if not isinstance(value, dict) else read_setting(value)


def _is_picked(value: object) -> bool:
    return _is_model(value) or (isinstance(value, list) and bool(value) and all(map(_is_tool, value)))


def _is_model(value: object) -> bool:
    return isinstance(value, dict) and value.get("type") == "model-selector"


def _is_tool(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("identity"), dict) and "runtime_parameters" in value


def tools_in(parameters: Mapping[str, object]) -> list[JsonObject]:
    """As Dify described them to the strategy."""
    return [item for value in parameters.values() if _is_picked(value) and isinstance(value, list) for item in value]


def model_in(parameters: Mapping[str, object]) -> JsonObject:
    """What the strategy was told of its model; empty without one."""
    return next((value for value in parameters.values() if isinstance(value, dict) and _is_model(value)), {})


def model_card(parameters: Mapping[str, object]) -> JsonObject:
    """As the key `model` of a script."""
    selector: dict[str, Any] = model_in(parameters)
    entity = selector.get("entity") or {}
    properties = entity.get("model_properties") or {}
    facts = {
        "name": selector.get("model"),
        "features": entity.get("features"),
        "context_size": properties.get("context_size"),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def files_in(parameters: Mapping[str, object]) -> Iterator[JsonObject]:
    """The files of the question, each once."""
    yield from {str(file.get("url")): file for file in files_among(parameters)}.values()
