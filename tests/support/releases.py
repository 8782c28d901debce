"""What a version promises to nodes that were saved with an earlier release.

In: what the release declared (tests/releases), what the plugin declares now, and the changelog since. Out: a sentence
for each promise that is broken.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

type Yaml = Mapping[str, Any]


def broken_promises(recorded: Yaml, strategies: Mapping[str, Yaml], changes: str) -> list[str]:
    """`strategies` are the YAML files of today by name; `changes` the changelog's text since the release."""
    strategy = strategies.get(recorded["strategy"])
    if strategy is None:
        return [f"the strategy {recorded['strategy']} was dropped"]
    declared = {parameter["name"]: parameter for parameter in strategy["parameters"]}
    released = {parameter["name"]: parameter for parameter in recorded["parameters"]}
    variables = strategy.get("output_schema", {}).get("properties", {})
    return [
        *(sentence for name in released for sentence in _of_parameter(released[name], declared.get(name), changes)),
        *(sentence for name in declared if name not in released for sentence in _of_new(declared[name], changes)),
        *(
            f"the variable {name} was dropped or is no longer of type {kind}"
            for name, kind in recorded["variables"].items()
            if variables.get(name, {}).get("type") != kind
        ),
    ]


def as_released(value: Any, recorded: Any) -> Any:  # noqa: ANN401 - JSON
    """A copy of outputs of today without the entries of objects that the release did not have."""
    if isinstance(value, dict) and isinstance(recorded, dict):
        return {key: as_released(item, recorded[key]) for key, item in value.items() if key in recorded}
    if isinstance(value, list) and isinstance(recorded, list) and len(value) == len(recorded):
        return [as_released(item, then) for item, then in zip(value, recorded, strict=True)]
    return value


def _of_parameter(released: Yaml, declared: Yaml | None, changes: str) -> Iterator[str]:
    name = released["name"]
    if declared is None:
        yield f"{name} was renamed or dropped"
        return
    if declared["type"] != released["type"]:
        yield f"{name} is of type {declared['type']}, and was of {released['type']}"
    if declared.get("required") and not released.get("required"):
        yield f"{name} has become required"
    if gone := set(released.get("options", ())) - {str(option["value"]) for option in declared.get("options") or ()}:
        yield f"{name} has lost the options {sorted(gone)}"
    if declared.get("scope") and _is_narrower(_parts(declared), _parts(released), declared["type"]):
        yield f"{name} has a narrower scope"
    if _least(declared) > _least(released) or _most(declared) < _most(released):
        yield f"{name} has a narrower range"
    if declared.get("default") != released.get("default") and not _is_told(name, changes):
        yield f"{name} has another default, and the changelog has no line about the default of `{name}`"


def _of_new(declared: Yaml, changes: str) -> Iterator[str]:
    name = declared["name"]
    if declared.get("required"):
        yield f"{name} is new and required: saved nodes do not have it"
    if declared.get("default") and not _is_told(name, changes):
        yield f"{name} is new and on by default, and the changelog has no line about the default of `{name}`"


def _is_narrower(declared: set[str], released: set[str], kind: str) -> bool:
    """The parts of a model's scope are what it must be able to do; those of others are what may be chosen."""
    if kind == "model-selector":
        return bool(declared - released)
    return bool(released - declared)


def _parts(parameter: Yaml) -> set[str]:
    return set(parameter.get("scope", "").split("&"))


def _least(parameter: Yaml) -> float:
    return float(parameter.get("min", float("-inf")))


def _most(parameter: Yaml) -> float:
    return float(parameter.get("max", float("inf")))


def _is_told(name: str, changes: str) -> bool:
    return any(f"`{name}`" in entry and "default" in entry for entry in re.split(r"^- ", changes, flags=re.MULTILINE))
