"""The parameters of a model, checked by the rules of its entity as a model plugin's SDK checks them.

What no rule names is dropped there; a wrong type or option is an error, in the SDK's words (0.10.2).
"""

import json
from collections.abc import Iterable, Mapping

from devhost.errors import ParameterError, about
from devhost.protocol.wire import JsonObject

_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "int"),
    "float": ((float, int), "float"),
    "boolean": ((bool,), "bool"),
    "string": ((str,), "string"),
    "text": ((str,), "string"),
}
"""By a rule's type: Python's, and the SDK's word for it."""


def settle(params: Mapping[str, object], rules: Iterable[JsonObject]) -> JsonObject:
    """What reaches the provider; ValueError in the SDK's words."""
    settled: JsonObject = {}
    for rule in rules:
        value = params.get(rule["name"])
        if value is not None:
            _check(rule, value)
            settled[rule["name"]] = value
    return settled


def _check(rule: JsonObject, value: object) -> None:
    begin = f"Model Parameter {rule['name']} should be"
    kinds, called = _KINDS[rule["type"]]
    if not isinstance(value, kinds):
        raise ValueError(f"{begin} {called}.")  # noqa: TRY004 - as the SDK
    if isinstance(value, int | float) and rule["type"] != "boolean":
        if rule.get("min") is not None and value < rule["min"]:
            raise ValueError(f"{begin} greater than or equal to {rule['min']}.")
        if rule.get("max") is not None and value > rule["max"]:
            raise ValueError(f"{begin} less than or equal to {rule['max']}.")
    if rule.get("options") and value not in rule["options"]:
        raise ValueError(f"{begin} one of {rule['options']}.")


def checked_completion(model: str, given: Mapping[str, object], rules: Iterable[JsonObject]) -> JsonObject:
    """What `--completion` gives, as the node sends it; ParameterError for what no rule names and what one refuses."""
    by_name = {rule["name"]: rule for rule in rules}
    checked: JsonObject = {}
    for name, value in given.items():
        with about(f"completion.{name}"):
            if name not in by_name:
                there_are = ", ".join(by_name)
                raise ParameterError(f"--completion {name}: {model} takes no such parameter; there are: {there_are}")
            # What the command line reads as JSON is text to Dify where the parameter is a text.
            is_json = by_name[name]["type"] == "text" and not isinstance(value, str)
            checked[name] = json.dumps(value) if is_json else value
            try:
                settle(checked, [by_name[name]])
            except ValueError as error:
                raise ParameterError(f"--completion: {error}") from error
    return checked
