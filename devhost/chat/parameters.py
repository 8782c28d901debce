"""The strategy's parameters during a chat. In: KEY=VALUE. Out: the scenario with that value, or a ParameterError."""

from dataclasses import replace

from devhost.errors import ParameterError
from devhost.protocol.wire import JsonObject
from devhost.scenario.scenario import Scenario
from devhost.scenario.settings import parse_assignments, typed_settings


def changed(scenario: Scenario, assignment: str, *, raw: bool) -> Scenario:
    """As if the assignment had been the command's last --param; what a run refuses is not checked here."""
    new = parse_assignments([assignment], option="/param")
    if "query" in new:
        raise ParameterError("/param query: a question is typed in the chat")
    given = new if raw else typed_settings(scenario.strategy, [assignment])
    return replace(scenario, given={**scenario.given, **given})


def settings_of(scenario: Scenario) -> JsonObject:
    """Those that the script or a person sets; all others have their defaults."""
    return {**({} if scenario.script is None else scenario.script.params), **scenario.given}
