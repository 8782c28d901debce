"""The forms that start a run: fields from a strategy's YAML or a flow's Start node, and what is wrong in them."""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

from starlette.responses import Response
from starlette.status import HTTP_422_UNPROCESSABLE_CONTENT

from devhost.console.folder import refusal
from devhost.console.setup import QUESTION, TYPED, Setup, Values, assignments, model_options, paths_in, typed
from devhost.console.web import Console
from devhost.errors import HostError
from devhost.flow.document import FlowFile, start_fields
from devhost.hosting import BASE_URL, KEY, ModelOptions
from devhost.plugin.declaration import I18n, Option, Parameter, Strategy
from devhost.scenario import PICKED

WAS = "was."
"""Before the name of a parameter: the text that the scenario had when the form was made."""
RESET = "reset "
"""Before the name of a parameter, in the value of the button that resets it."""
NUL = "a NUL character cannot be part of a command"


def read_values(pairs: Iterable[tuple[str, str]]) -> Values:
    """Without what was typed into the field that the button resets. Browsers send CR LF at the end of a line."""
    given = {name: text.replace("\r\n", "\n") for name, text in pairs}
    do = given.get("do", "")
    if do.startswith(RESET):
        given.pop(f"{TYPED}{do.removeprefix(RESET)}", None)
    return {name: text if name.startswith((TYPED, WAS)) else text.strip() for name, text in given.items()}


# One field of the form for each parameter that the strategy declares, or for each input of the flow.

type Widget = Literal["text", "json", "number", "select", "shown"]
type Options = Sequence[tuple[str, str]]
"""To choose from: value and label of each."""
NOT_EDITED = PICKED | {"secret-input"}
"""Picked types, and secrets, which belong into no form."""
KINDS: Mapping[object, str] = {"number": "number", "checkbox": "boolean", "select": "select", "json_object": "object"}
"""By the type of a field of the Start node, that of a parameter; all others are texts."""


@dataclass(frozen=True)
class Field:
    declared: Parameter
    base: str
    """What the scenario sets, as text; empty for nothing."""
    text: str
    mistake: str = ""

    @classmethod
    def of(cls, declared: Parameter, base: object, values: Values) -> Self:
        """With what was typed, if it is not what the form held, and is among what there is to choose from."""
        was, name = as_text(base), declared.name
        text, options = values.get(TYPED + name), dict(_options(declared))
        is_kept = text is not None and text != values.get(WAS + name) and (not options or text in {"", *options})
        return cls(declared, was, text if text is not None and is_kept else was)

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def label(self) -> str:
        return self.declared.label.en_US

    @property
    def default(self) -> str:
        return as_text(self.declared.default)

    @property
    def options(self) -> Options:
        return _options(self.declared)

    @property
    def widget(self) -> Widget:
        """A scenario may set any parameter to a variable, which only a text can show."""
        kind, texts = self.declared.type, (self.base, self.text)
        if kind in NOT_EDITED:
            return "shown"
        if kind == "number" and all(map(_is_number, texts)):
            return "number"
        if self.options and all(text in {"", *dict(self.options)} for text in texts):
            return "select"
        return "text" if kind in {"string", "number", "boolean", "select"} else "json"

    @property
    def changed(self) -> bool:
        return self.text != self.base

    @property
    def bounds(self) -> str:
        """In words; empty without any."""
        low, high = self.declared.min, self.declared.max
        if low is not None and high is not None:
            return f"between {low:g} and {high:g}"
        if low is not None:
            return f"at least {low:g}"
        return "" if high is None else f"at most {high:g}"

    @property
    def wrong(self) -> str:
        """What is wrong with the text, whatever else the form holds; empty if nothing is."""
        if "\0" in self.text:
            return NUL
        if not self.changed or not self.text.strip() or not _is_number(self.text):
            return ""  # a variable, or what the check of the type refuses
        low, high = self.declared.min, self.declared.max
        least, most = (-math.inf if low is None else low), (math.inf if high is None else high)
        return "" if least <= float(self.text) <= most else f"must be {self.bounds}"


def _options(declared: Parameter) -> Options:
    if declared.type == "boolean":
        return [("true", "true"), ("false", "false")]
    return [] if declared.multiple else [(option.value, option.label.en_US) for option in declared.options]


def fields_of(strategy: Strategy, set_by_scenario: Mapping[str, object], values: Values) -> tuple[Field, ...]:
    """Those of all parameters but the question; what was typed is kept where it fits."""
    asked = (parameter for parameter in strategy.parameters if parameter.name != QUESTION)
    return tuple(Field.of(parameter, set_by_scenario.get(parameter.name), values) for parameter in asked)


def inputs_of(file: FlowFile, set_by_script: Mapping[str, object], values: Values) -> tuple[Field, ...]:
    """Those of the flow's Start node."""
    return tuple(
        Field.of(_as_parameter(name, field), set_by_script.get(name, field.get("default")), values)
        for name, field in start_fields(file).items()
    )


def _as_parameter(name: str, field: Mapping[str, object]) -> Parameter:
    listed, kind = field.get("options"), field.get("type")
    about = "A path after @, such as @picture.png." if "file" in str(kind) else ""
    options = listed if isinstance(listed, list) else []
    return Parameter(
        name=name,
        label=I18n(en_US=str(field.get("label") or name)),
        type=KINDS.get(kind, "string"),
        options=tuple(Option(value=str(each), label=I18n(en_US=str(each))) for each in options),
        help=I18n(en_US=about) if about else None,
    )


def question_of(query: str, values: Values) -> Field:
    return Field.of(Parameter(name=QUESTION, label=I18n(en_US="Question"), type="string"), query, values)


def as_text(value: object) -> str:
    """As a person would type it: JSON for anything but a text."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) else None)


def _is_number(text: str) -> bool:
    try:
        return not text or float(text) == float(text)
    except ValueError:
        return False


# A form as it was read, and the page that answers it.


@dataclass(frozen=True, kw_only=True)
class RunForm:
    values: Values
    mistakes: Mapping[str, str] = field(default_factory=dict)
    """By the name of the field; under an empty name stands what belongs to none."""
    fields: tuple[Field, ...] = ()
    question: Field | None = None
    setup: Setup = field(default_factory=Setup)
    command: str = ""
    """For a terminal; empty while there is a mistake."""

    @property
    def can_be_real(self) -> bool:
        """Whether a model behind an API can be asked."""
        return can_be_real(os.environ)

    @property
    def changed(self) -> dict[str, str]:
        """The texts of changed parameters, by their names in the form."""
        return {TYPED + each.name: each.text for each in self.fields if each.changed}

    @property
    def settings(self) -> tuple[str, ...]:
        """The same as --param has it."""
        return assignments({each.name: each.text for each in self.fields if each.changed})

    def judged(self, mistakes: Mapping[str, str], trace_of: Callable[[str], Path]) -> Self:
        """With each mistake at its field, or else with the command."""
        fields = tuple(replace(each, mistake=mistakes.get(TYPED + each.name, "")) for each in self.fields)
        question = self.question and replace(self.question, mistake=mistakes.get(TYPED + QUESTION, ""))
        command = "" if mistakes else typed(self.setup.arguments(trace_of))
        return replace(self, mistakes=mistakes, fields=fields, question=question, command=command)


def answered(console: Console, template: str, form: RunForm, do: str, start: Callable[[], Response]) -> Response:
    """`do`: "start" starts what fits; with anything else, the form comes back with what is wrong in it."""
    if do == "start" and not form.mistakes:
        return start()
    return console.page(template, HTTP_422_UNPROCESSABLE_CONTENT if do == "start" else 200, form=form, asked=do)


def wrong_texts(fields: Iterable[Field]) -> dict[str, str]:
    return {TYPED + each.name: each.wrong for each in fields if each.wrong}


def wrong_paths(values: Values, *names: str) -> dict[str, str]:
    """Paths that no file can have."""
    return {name: why for name in names for path in paths_in(values, name) if (why := refusal(path))}


PLACES = {"credential": "tools", "set": "tools", "completion": "model", "api": "model"}
"""The fields in which a person corrects what errors name otherwise."""


IN_A_FORM: Mapping[str, str] = {
    r"Give the folder of the tool plugin with --tools DIR": "Tick its folder under Settings, Tool plugins",
    r"an MCP server of this name with --mcp \S+": "write an MCP server of this name into the script, under mcp",
    r"allow it with --allow-\w+": "allow it under Settings",
    r"give it with --input .*": "fill it in under Settings",
    r"--input (?=\S+: )": "",
    r"give the other plugin with --plugin DIR": "choose the other plugin under Settings, Strategy plugin",
    r"--live-tools: the trace names no example, so say which tools: --tools DIR": (
        "the run names no example and no tool plugin: clear this tick"
    ),
    r"give --script FILE with what it answers": "choose a script with what it answers",
}
"""What a sentence of a command says of its options, and what helps in a form."""


def _in_a_form(sentence: str) -> str:
    for of_command, words in IN_A_FORM.items():
        sentence = re.sub(of_command, words, sentence)
    return sentence


def tried[T](read: Callable[[], T], places: Mapping[str, str]) -> tuple[T | None, dict[str, str]]:
    """What is read, or the mistake that is found. `places`: as `PLACES`, of this form."""
    try:
        return read(), {}
    except HostError as error:
        kind, _, name = error.field.partition(".")
        place = f"{TYPED}{name}" if kind == "param" else {**PLACES, **places}.get(kind, kind)
        return None, {place: _in_a_form(str(error))}
    except (OSError, ValueError) as error:
        return None, {places.get("", ""): str(error)}


# The model of a form: a scripted one, or one behind an API.


def can_be_real(environment: Mapping[str, str]) -> bool:
    return not ModelOptions().asks_the_script(environment)


def wrong_model(values: Values, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Why the real model that was chosen cannot be asked."""
    asked = model_options(values)
    if not can_be_real(environment):
        yield "model", f"a real model needs {KEY} or {BASE_URL} in the environment of devhost ui"
    elif "\0" in f"{asked.name}{asked.completion}":
        yield "model", NUL
    elif asked.api not in {None, "responses", "chat"}:
        yield "model", f"there is no API {asked.api!r}; there are: responses, chat"
    else:
        _, mistakes = tried(lambda: asked.choose(None, "", dict(environment)), {})
        yield from (("model", sentence) for sentence in mistakes.values())
