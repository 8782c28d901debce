"""One field of the form for each parameter that the strategy's YAML declares.

In: a parameter, what the scenario sets, what was typed. Out: a `Field`, with its text and the widget for it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from devhost.console.forms.choices import QUESTION, Choices
from devhost.plugin.declaration import Strategy
from devhost.plugin.keys.parameters import Parameter
from devhost.scenario.settings import PICKED

type Widget = Literal["text", "json", "number", "select", "shown"]
NOT_EDITED = PICKED | {"secret-input"}
"""Picked types, and secrets, which belong into no form."""


@dataclass(frozen=True)
class Field:
    name: str
    label: str
    help: str
    widget: Widget
    required: bool
    default: str
    """As text; empty without one."""
    options: tuple[tuple[str, str], ...]
    """Value and label."""
    low: float | None
    high: float | None
    base: str
    """What the scenario sets, as text; empty for nothing."""
    text: str
    secret: bool = False
    mistake: str = ""

    @property
    def changed(self) -> bool:
        return self.text != self.base

    @property
    def bounds(self) -> str:
        """In words; empty without any."""
        if self.low is not None and self.high is not None:
            return f"between {self.low:g} and {self.high:g}"
        if self.low is not None:
            return f"at least {self.low:g}"
        return "" if self.high is None else f"at most {self.high:g}"

    def with_mistake(self, sentence: str) -> "Field":
        return replace(self, mistake=sentence)


def fields_of(strategy: Strategy, set_by_scenario: Mapping[str, object], choices: Choices) -> tuple[Field, ...]:
    """Those of all parameters but the question; what was typed is kept where it fits."""
    return tuple(
        _field(parameter, set_by_scenario.get(parameter.name), choices.changed(parameter.name))
        for parameter in strategy.parameters
        if parameter.name != QUESTION
    )


def as_text(value: object) -> str:
    """As a person would type it: JSON for anything but a text."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) else None)


def _field(parameter: Parameter, base: object, typed: str | None) -> Field:
    text = as_text(base)
    options = _options(parameter)
    shown = text if typed is None or (options and typed not in {"", *dict(options)}) else typed
    return Field(
        name=parameter.name,
        label=parameter.label.en_US,
        help=parameter.help.en_US if parameter.help else "",
        widget=_widget(parameter, (text, shown)),
        required=parameter.required,
        default=as_text(parameter.default),
        options=options,
        low=parameter.min,
        high=parameter.max,
        base=text,
        text=shown,
        secret=parameter.type == "secret-input",
    )


def _options(parameter: Parameter) -> tuple[tuple[str, str], ...]:
    if parameter.type == "boolean":
        return (("true", "true"), ("false", "false"))
    if parameter.type == "select" and not parameter.multiple:
        return tuple((option.value, option.label.en_US) for option in parameter.options)
    return ()


def _widget(parameter: Parameter, texts: tuple[str, ...]) -> Widget:
    """A scenario may set any parameter to a variable, which only a text can show."""
    if parameter.type in NOT_EDITED:
        return "shown"
    if parameter.type == "number":
        return "number" if all(map(_is_number, texts)) else "text"
    options = dict(_options(parameter))
    if options:
        return "select" if all(text in {"", *options} for text in texts) else "text"
    return "text" if parameter.type == "string" and not is_schema(parameter.name) else "json"


def is_schema(name: str) -> bool:
    return name.endswith("schema")


def _is_number(text: str) -> bool:
    try:
        return not text or float(text) == float(text)
    except ValueError:
        return False
