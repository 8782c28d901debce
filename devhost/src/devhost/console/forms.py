"""The forms that start a run: fields from a strategy's YAML or a flow's Start node, and what is wrong in them."""

import json
import os
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
from devhost.plugin.declaration import Parameter, Strategy
from devhost.scenario import PICKED
from devhost.text import typed_json, validator_of

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
BOTH = (("true", "true"), ("false", "false"))


@dataclass(frozen=True)
class Field:
    name: str
    label: str
    base: str
    """What the scenario sets, as text; empty for nothing."""
    text: str
    help: str = ""
    widget: Widget = "text"
    default: str = ""
    """As text; empty without one."""
    options: Options = ()
    low: float | None = None
    high: float | None = None
    secret: bool = False
    mistake: str = ""

    @classmethod
    def of(cls, declared: Parameter, base: str, values: Values) -> Self:
        options: Options = BOTH if declared.type == "boolean" else ()
        if declared.type == "select" and not declared.multiple:
            options = [(option.value, option.label.en_US) for option in declared.options]
        text = typed_or(base, declared.name, values, options)
        return cls(
            declared.name,
            declared.label.en_US,
            base,
            text,
            help=declared.help.en_US if declared.help else "",
            widget="shown"
            if declared.type in NOT_EDITED
            else _widget(declared.type, declared.name, options, base, text),
            default=as_text(declared.default),
            options=options,
            low=declared.min,
            high=declared.max,
            secret=declared.type == "secret-input",
        )

    @classmethod
    def of_flow(cls, name: str, declared: Mapping[str, object], base: str, values: Values) -> Self:
        listed = declared.get("options")
        options = [(str(each), str(each)) for each in listed] if isinstance(listed, list) else []
        if declared.get("type") == "checkbox":
            options = list(BOTH)
        text = typed_or(base, name, values, options)
        kind = {"number": "number", "json_object": "object"}.get(str(declared.get("type")), "string")
        files = "A path after @, such as @picture.png." if "file" in str(declared.get("type")) else ""
        return cls(
            name,
            str(declared.get("label") or name),
            base,
            text,
            help=files or ("Required." if declared.get("required") else ""),
            widget=_widget(kind, name, options, base, text),
            options=options,
        )

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

    @property
    def wrong(self) -> str:
        """What is wrong with the text, whatever else the form holds; empty if nothing is."""
        if not self.changed:
            return ""
        if "\0" in self.text:
            return NUL
        if is_schema(self.name) and self.text.strip():
            return _wrong_schema(self.text)
        if not _is_number(self.text) or not self.text.strip():
            return ""  # a variable, or what the check of the type refuses
        number = float(self.text)
        beyond = (self.low is not None and number < self.low) or (self.high is not None and number > self.high)
        return f"must be {self.bounds}" if beyond else ""


def fields_of(strategy: Strategy, set_by_scenario: Mapping[str, object], values: Values) -> tuple[Field, ...]:
    """Those of all parameters but the question; what was typed is kept where it fits."""
    return tuple(
        Field.of(parameter, as_text(set_by_scenario.get(parameter.name)), values)
        for parameter in strategy.parameters
        if parameter.name != QUESTION
    )


def inputs_of(file: FlowFile, set_by_script: Mapping[str, object], values: Values) -> tuple[Field, ...]:
    """Those of the flow's Start node."""
    return tuple(
        Field.of_flow(name, declared, as_text(set_by_script.get(name, declared.get("default"))), values)
        for name, declared in start_fields(file).items()
    )


def question_of(query: str, values: Values) -> Field:
    return Field(QUESTION, "Question", query, typed_or(query, QUESTION, values))


def typed_or(base: str, name: str, values: Values, options: Options = ()) -> str:
    """What was typed into the field, if it is not what the form held, and fits what there is to choose from."""
    text = values.get(TYPED + name)
    if text is None or text == values.get(WAS + name) or (options and text not in {"", *dict(options)}):
        return base
    return text


def as_text(value: object) -> str:
    """As a person would type it: JSON for anything but a text."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) else None)


def _widget(kind: str, name: str, options: Options, *texts: str) -> Widget:
    """A scenario may set any parameter to a variable, which only a text can show."""
    if kind == "number":
        return "number" if all(map(_is_number, texts)) else "text"
    if options:
        return "select" if all(text in {"", *dict(options)} for text in texts) else "text"
    return "text" if kind == "string" and not is_schema(name) else "json"


def is_schema(name: str) -> bool:
    return name.endswith("schema")


def _is_number(text: str) -> bool:
    try:
        return not text or float(text) == float(text)
    except ValueError:
        return False


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


def tried[T](read: Callable[[], T], places: Mapping[str, str]) -> tuple[T | None, dict[str, str]]:
    """What is read, or the mistake that is found. `places`: as `PLACES`, of this form."""
    try:
        return read(), {}
    except HostError as error:
        kind, _, name = error.field.partition(".")
        place = f"{TYPED}{name}" if kind == "param" else {**PLACES, **places}.get(kind, kind)
        return None, {place: str(error)}
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
