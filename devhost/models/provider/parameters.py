"""The parameters of a model: as rules for the entity, and checked as a model plugin's SDK checks them.

In: an API and a model's name; the node's completion parameters. Out: `parameter_rules` entries; the parameters that
reach the provider. What no rule names is dropped, a wrong type or option is an error, in the SDK's words (0.10.2).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from devhost.models.provider import catalog
from devhost.protocol.wire import JsonObject

type Api = Literal["responses", "chat"]
_MOST_TOKENS = 128_000


def parameter_rules(api: Api, model: str) -> tuple[JsonObject, ...]:
    return tuple(_rules(api, model))


def _rules(api: Api, model: str) -> Iterator[JsonObject]:
    efforts = catalog.facts_of(model).efforts
    ours = catalog.is_openais(model)
    yield _rule("max_tokens", "int", min=1, max=_MOST_TOKENS if ours else None)
    if not efforts:
        yield _rule("temperature", "float", min=0, max=2)
        yield _rule("top_p", "float", min=0, max=1)
        if api == "chat":
            yield _rule("presence_penalty", "float", min=-2, max=2)
            yield _rule("frequency_penalty", "float", min=-2, max=2)
            yield _rule("seed", "int")
    if efforts or not ours:
        yield _rule("reasoning_effort", "string", options=list(efforts))
    if api == "responses" and (efforts or not ours):
        yield _rule("reasoning_summary", "string", options=["auto", "concise", "detailed"])
    if api == "responses" and catalog.has_reasoning_modes(model):
        yield _rule("reasoning_mode", "string", options=["standard", "pro"])
        yield _rule("reasoning_context", "string", options=["auto", "current_turn", "all_turns"])
    if catalog.has_verbosity(model):
        yield _rule("verbosity", "string", options=["low", "medium", "high"])
    yield _rule("response_format", "string", options=["text", "json_object", "json_schema"])
    yield _rule("json_schema", "text")
    if ours:
        yield _rule("service_tier", "string", options=["auto", "default", "flex", "priority"])


def _rule(name: str, kind: str, **more: object) -> JsonObject:
    label = {"en_US": name}
    common = {"name": name, "use_template": None, "label": label, "type": kind, "help": None, "required": False}
    return {**common, "default": None, "min": None, "max": None, "precision": None, "options": [], **more}


def settle(params: Mapping[str, object], rules: Iterable[JsonObject]) -> JsonObject:
    """What reaches the provider; ValueError in the SDK's words."""
    settled: JsonObject = {}
    for rule in rules:
        value = params.get(rule["name"])
        if value is not None:
            _check(rule, value)
            settled[rule["name"]] = value
    return settled


def guesses(params: Mapping[str, object], rules: Iterable[JsonObject]) -> Iterator[str]:
    """What the SDK lets pass although it does not fit, because Python counts true and false as whole numbers."""
    for rule in rules:
        value = params.get(rule["name"])
        if isinstance(value, bool):
            yield f"{rule['name']} is {str(value).lower()}, not a number: Dify sends it all the same"


def _check(rule: JsonObject, value: object) -> None:
    begin = f"Model Parameter {rule['name']} should be"
    kinds: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "string": (str,), "text": (str,)}
    if not isinstance(value, kinds[rule["type"]]):
        raise ValueError(f"{begin} {'string' if rule['type'] == 'text' else rule['type']}.")  # noqa: TRY004 - as the SDK
    if isinstance(value, int | float):
        if rule["min"] is not None and value < rule["min"]:
            raise ValueError(f"{begin} greater than or equal to {rule['min']}.")
        if rule["max"] is not None and value > rule["max"]:
            raise ValueError(f"{begin} less than or equal to {rule['max']}.")
    if rule["options"] and value not in rule["options"]:
        raise ValueError(f"{begin} one of {rule['options']}.")
