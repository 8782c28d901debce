"""Whether a script has the turns that a run will ask for.

In: a scenario. Out: nothing, or a ParameterError that names the example's scripts that fit. A script is written for
strategies, and with its own values of the parameters that change what the model is asked.
"""

import shlex
from collections.abc import Iterator

from devhost.errors import ParameterError
from devhost.models.scripted.script import Script
from devhost.scenario.scenario import SCRIPT, Scenario
from devhost.text.json_value import typed_json

CHANGE_THE_TURNS = ("answer_schema", "answer_criteria")
"""Parameters with which a strategy wants other turns: the first an answer as a call, the second judgements."""


def refuse_misfit(scenario: Scenario) -> None:
    """For a scripted model: a real one answers whatever is asked."""
    script, strategy = scenario.script, scenario.strategy.identity.name
    if script is None:
        return
    others = [name for name in CHANGE_THE_TURNS if name in scenario.given and _differs(scenario, script, name)]
    if script.fits and not others:
        return
    lacks = f"{script.place} has no turns for the strategy {strategy}, only for {_listed(script.written_for)}"
    if script.fits:
        lacks = f"{script.place} has no turns for a run with this {_listed(others)}"
    there_are = ", ".join(_fitting(scenario, strategy, others)) or "none here"
    raise ParameterError(f"{lacks}; scripts that have: {there_are}; a real model needs no script: set OPENAI_API_KEY")


def _differs(scenario: Scenario, script: Script, name: str) -> bool:
    return _plain(scenario.given[name]) != _plain(script.params.get(name))


def _plain(value: object) -> object:
    """A text that is JSON and the value itself are the same to the node, and so are blank and missing."""
    if isinstance(value, str):
        try:
            return typed_json(value)
        except ValueError:
            return value.strip() or None
    return value


def _fitting(scenario: Scenario, strategy: str, needed: list[str]) -> Iterator[str]:
    """The options that choose them. A parameter is then the script's own, so it is left out of the command."""
    without = "".join(f" without --param {name}" for name in needed)
    for file in scenario.scripts:
        script = Script.read(file, strategy)
        if script.fits and all(bool(script.params.get(name)) == bool(scenario.given[name]) for name in needed):
            option = f"--example {shlex.quote(scenario.name)}"
            yield (
                f"{option}{without}"
                if file.name == SCRIPT
                else f"{option} --scenario {shlex.quote(file.stem)}{without}"
            )


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return " and ".join(names)
