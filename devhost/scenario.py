"""What a command line asks for, put together: an example's script, a strategy, and the values of its parameters."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from devhost.casting import cast_parameters
from devhost.declaration import Parameter, Strategy
from devhost.errors import ParameterError
from devhost.script import Script
from devhost.tool_setup import ToolSetup
from devhost.wire import JsonObject

SCRIPT = "script.yaml"
SCENARIOS = "scenarios"
"""The folder of an example's other scripts."""
PICKED = ("model-selector", "array[tools]")
"""Parameters that devhost fills itself, as the node's pickers do."""


@dataclass(frozen=True)
class Example:
    name: str
    directory: Path
    script: Script

    @classmethod
    def read(cls, examples: Path, name: str, scenario: str | None = None) -> "Example":
        names = sorted(file.parent.name for file in examples.glob(f"*/{SCRIPT}"))
        if name not in names:
            raise ParameterError(
                f"there is no example {name!r}; there are: {', '.join(names) or f'none in {examples}'}"
            )
        return cls(name, examples / name, Script.read(_script_file(examples / name, scenario)))


def _script_file(example: Path, scenario: str | None) -> Path:
    if scenario is None:
        return example / SCRIPT
    names = sorted(file.stem for file in (example / SCENARIOS).glob("*.yaml"))
    if scenario not in names:
        raise ParameterError(
            f"the example {example.name} has no scenario {scenario!r}; there are: {', '.join(names) or 'none'}"
        )
    return example / SCENARIOS / f"{scenario}.yaml"


@dataclass(frozen=True)
class Scenario:
    """What a command line asks for, apart from the question."""

    name: str
    """The example's; empty without one."""
    script: Script | None
    """Without one, only a real model can answer."""
    plugin: Path
    strategy: Strategy
    tools: tuple[ToolSetup, ...]
    given: JsonObject
    """Parameters of the strategy, over the script's."""

    @property
    def description(self) -> str:
        return "" if self.script is None else self.script.description

    def question(self, query: str | None) -> str:
        if query is not None:
            return query
        if self.script is None:
            raise ParameterError("there is nothing to ask: give --query TEXT, or a script that has a query")
        return self.script.query

    def values(self, question: str, *, raw: bool = False) -> JsonObject:
        params = {} if self.script is None else self.script.params
        return parameter_values(self.strategy, params, question, self.given, raw=raw)


def parse_assignments(assignments: Iterable[str], *, option: str = "--param") -> JsonObject:
    """KEY=VALUE pairs; a value that is JSON is what it says, any other is a text."""
    values: JsonObject = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise ParameterError(f"{option} {assignment!r} is not KEY=VALUE")
        try:
            values[key] = json.loads(text)
        except ValueError:
            values[key] = text
    return values


def parameter_values(
    strategy: Strategy, params: Mapping[str, object], query: str, given: Mapping[str, object], *, raw: bool = False
) -> JsonObject:
    """The script's values, over them the question, over them what the command line gives; raw ones go unchecked."""
    settable = [parameter.name for parameter in strategy.parameters if _settable(parameter)]
    values = {**params, "query": query, **given}
    if raw:
        return values
    for name in values:
        if name not in settable:
            raise ParameterError(
                f"{strategy.identity.name} has no parameter {name!r} to set; there are: {', '.join(settable)}"
            )
    values |= {
        parameter.name: json.dumps(values[parameter.name], ensure_ascii=False)
        for parameter in strategy.parameters
        # On the command line an object looks like JSON; in the node's text field it is the text that was typed.
        if parameter.type == "string" and isinstance(values.get(parameter.name), dict | list)
    }
    # A value that cannot be cast is said now, before any plugin is started; the host casts again, with the rest.
    cast_parameters((parameter for parameter in strategy.parameters if _settable(parameter)), values)
    return values


def _settable(parameter: Parameter) -> bool:
    return parameter.type not in PICKED
