"""What cannot be, beside the field in which it stands; nothing is started for it.

In: a scenario without the form's values, and its fields. Out: a sentence by the name of the field.
"""

from collections.abc import Sequence
from dataclasses import replace

from devhost.console.forms.choices import TYPED
from devhost.console.forms.fields import Field, is_schema
from devhost.console.forms.model import NUL
from devhost.errors import HostError
from devhost.scenario.fitting import CHANGE_THE_TURNS, refuse_misfit
from devhost.scenario.scenario import Scenario
from devhost.scenario.settings import typed_settings
from devhost.text.json_schema import validator_of
from devhost.text.json_value import typed_json


def mistakes_of(scenario: Scenario, fields: Sequence[Field], question: str, *, scripted: bool) -> dict[str, str]:
    """By the name of the field in the form; under an empty name, what belongs to none."""
    changed = [field for field in fields if field.changed]
    found = {f"{TYPED}{field.name}": sentence for field in changed if (sentence := _in_itself(field))}
    whole = _refused(scenario, changed, question)
    if whole and not found:
        refused = {field.name: _refused(scenario, [field], question) for field in changed}
        own = {f"{TYPED}{name}": sentence for name, sentence in refused.items() if sentence}
        found = own if own and not _refused(scenario, [], question) else {"": whole}
    if not found and scripted:
        return _misfit(scenario, changed)
    return found


def _in_itself(field: Field) -> str:
    if "\0" in field.text:
        return NUL
    if is_schema(field.name) and field.text.strip():
        return _wrong_schema(field.text)
    if field.bounds and field.text.strip():
        try:
            number = float(field.text)
        except ValueError:
            return ""  # a variable, or what the check of the type refuses
        too_low = field.low is not None and number < field.low
        too_high = field.high is not None and number > field.high
        return f"must be {field.bounds}" if too_low or too_high else ""
    return ""


def _wrong_schema(text: str) -> str:
    try:
        schema = typed_json(text)
    except ValueError as error:
        return f"not JSON: {error}"
    if isinstance(schema, dict) and set(schema) == {"variable"}:
        return ""
    if not isinstance(schema, dict):
        return "a JSON Schema must be an object"
    try:
        validator_of(schema)
    except ValueError as error:
        return f"not a JSON Schema: {error}"
    return ""


def _refused(scenario: Scenario, changed: Sequence[Field], question: str) -> str:
    try:
        _with(scenario, changed).check(question)
    except HostError as error:
        return str(error)
    return ""


def _misfit(scenario: Scenario, changed: Sequence[Field]) -> dict[str, str]:
    try:
        refuse_misfit(_with(scenario, changed))
    except HostError as error:
        names = [field.name for field in changed if field.name in CHANGE_THE_TURNS]
        return {f"{TYPED}{names[0]}" if names else "source": str(error)}
    return {}


def _with(scenario: Scenario, changed: Sequence[Field]) -> Scenario:
    return replace(
        scenario, given=typed_settings(scenario.strategy, [f"{field.name}={field.text}" for field in changed])
    )
