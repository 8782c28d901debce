"""What a command line asks for, put together: an example's script, a strategy, and the values of its parameters."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from devhost.casting import cast_parameters
from devhost.declaration import Parameter, Strategy
from devhost.errors import ParameterError
from devhost.script import Script
from devhost.wire import JsonObject

SCRIPT = "script.yaml"
PICKED = ("model-selector", "array[tools]")
"""Parameters that devhost fills itself, as the node's pickers do."""


@dataclass(frozen=True)
class Example:
    name: str
    directory: Path
    script: Script

    @classmethod
    def read(cls, examples: Path, name: str) -> "Example":
        names = sorted(file.parent.name for file in examples.glob(f"*/{SCRIPT}"))
        if name not in names:
            raise ParameterError(
                f"there is no example {name!r}; there are: {', '.join(names) or f'none in {examples}'}"
            )
        return cls(name, examples / name, Script.read(examples / name / SCRIPT))


def parse_assignments(assignments: Iterable[str]) -> JsonObject:
    """KEY=VALUE pairs; a value that is JSON is what it says, any other is a text."""
    values: JsonObject = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise ParameterError(f"--param {assignment!r} is not KEY=VALUE")
        try:
            values[key] = json.loads(text)
        except ValueError:
            values[key] = text
    return values


def parameter_values(strategy: Strategy, script: Script, query: str, given: Mapping[str, object]) -> JsonObject:
    """The script's values, over them the question, over them what the command line gives."""
    settable = [parameter.name for parameter in strategy.parameters if _settable(parameter)]
    values = {**script.params, "query": query, **given}
    for name in values:
        if name not in settable:
            raise ParameterError(
                f"{strategy.identity.name} has no parameter {name!r} to set; there are: {', '.join(settable)}"
            )
    # A value that cannot be cast is said now, before any plugin is started; the host casts again, with the rest.
    cast_parameters((parameter for parameter in strategy.parameters if _settable(parameter)), values)
    return values


def _settable(parameter: Parameter) -> bool:
    return parameter.type not in PICKED
