"""The forms that start a run, with fields from a strategy's YAML or from a flow's Start node."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from starlette.responses import RedirectResponse, Response

from devhost.console.setup import QUESTION, TYPED, Setup, Values
from devhost.console.web import Console
from devhost.errors import HostError
from devhost.flow.document import FlowFile, start_fields
from devhost.page.contents import pretty
from devhost.plugin.declaration import I18n, Option, Parameter, Strategy
from devhost.scenario import PICKED

# One field of the form for each parameter that the strategy declares, or for each input of the flow.

type Widget = Literal["text", "json", "number", "select", "shown"]
type Options = Sequence[tuple[str, str]]
"""The choices of a field, as pairs of value and label."""
KINDS: Mapping[object, str] = {"number": "number", "checkbox": "boolean", "select": "select", "json_object": "object"}
"""The parameter type for each type of Start node field. Fields of all other types become texts."""


@dataclass(frozen=True)
class InputField:
    """A field for one parameter or input."""

    declared: Parameter
    base: str
    """The value from the scenario as a person would type it, which is JSON for anything but a text."""
    text: str
    """The text that the field shows."""

    @classmethod
    def of(cls, declared: Parameter, base: object, values: Values) -> Self:
        if base is None:
            was = ""
        else:
            was = pretty(base)
        return cls(declared, was, values.get(TYPED + declared.name, was))

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def options(self) -> Options:
        if self.declared.type == "boolean":
            return [("true", "true"), ("false", "false")]
        if self.declared.multiple:
            return []
        return [(each.value, each.label.en_US) for each in self.declared.options]

    @property
    def widget(self) -> Widget:
        """The kind of form control. Any parameter may be set to a variable, which only a text field can show."""
        kind = self.declared.type
        texts = (self.base, self.text)
        if kind in PICKED | {"secret-input"}:  # a form must not ask for secrets
            return "shown"
        if kind == "number" and all(map(_is_number, texts)):
            return "number"
        if self.options and all(text in {"", *dict(self.options)} for text in texts):
            return "select"
        if kind in {"string", "number", "boolean", "select", "dynamic-select"}:
            return "text"
        return "json"


def fields_of(strategy: Strategy, set_by_scenario: Mapping[str, object], values: Values) -> tuple[InputField, ...]:
    asked = (parameter for parameter in strategy.parameters if parameter.name != QUESTION)
    return tuple(InputField.of(parameter, set_by_scenario.get(parameter.name), values) for parameter in asked)


def inputs_of(file: FlowFile, set_by_script: Mapping[str, object], values: Values) -> tuple[InputField, ...]:
    return tuple(
        InputField.of(_as_parameter(name, field), set_by_script.get(name, field.get("default")), values)
        for name, field in start_fields(file).items()
    )


def _as_parameter(name: str, field: Mapping[str, object]) -> Parameter:
    listed = field.get("options")
    kind = field.get("type")
    about = ""
    if "file" in str(kind):
        about = "A path after @, such as @picture.png."
    options = []
    if isinstance(listed, list):
        options = listed
    return Parameter(
        name=name,
        label=I18n(en_US=str(field.get("label") or name)),
        type=KINDS.get(kind, "string"),
        options=tuple(Option(value=str(each), label=I18n(en_US=str(each))) for each in options),
        help=I18n(en_US=about) if about else None,
    )


def _is_number(text: str) -> bool:
    try:
        return not text or float(text) == float(text)
    except ValueError:
        return False


# A form and its mistake.


WRONG = (HostError, OSError, ValueError)
"""Errors that reading the values of a form may raise."""


type Labels = Mapping[str, tuple[str, str]]
"""The id and the label of a form field, by the name of a command's option or of an error's field."""
OF_A_COMMAND = (
    (r"Name the plugin's folder.*?, set \w+, or run devhost in it", "Start devhost ui in its folder"),
    ("Give the folder of the tool plugin with --tools DIR", "Tick its plugin at “Tool plugins”"),
    ("so say which tools: --tools DIR", "so give them to devhost fork in a terminal"),
    (r"--(?:input|param) (?=[^ =]+: )", ""),  # in "--input topic: …", the name is enough
    (r"give it with --input \S+", "fill it in"),
    (r"give each with --input \S+", "fill them in"),
    (r"--(?:arg|file) (\S+)=(?:VALUE|PATH)", r"\1"),
    (r"--credential \S+=VALUE, or (\w+) in the environment", r"restart devhost ui with \1 set in its environment"),
)
OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)(?: [A-Z]{2,}\b)?")


def in_words_of_the_page(sentence: str, labels: Labels) -> str:
    """Returns a command's error message with the labels of form fields in place of options."""
    for said, words in OF_A_COMMAND:
        sentence = re.sub(said, words, sentence)
    return OPTION.sub(lambda found: f"“{labels[found[1]][1]}”" if found[1] in labels else found[0], sentence)


@dataclass(frozen=True)
class Mistake:
    """A mistake in a form, as its page reports it."""

    target: str
    """The id of the form element to correct; empty if no single element is wrong."""
    label: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class RunForm(ABC):
    """A form that starts a run."""

    labels: ClassVar[Labels]
    values: Values
    fields: tuple[InputField, ...] = ()
    question: str | None = None
    """The question, or `None` for a workflow, which takes no question."""
    mistake: Mistake | None = None

    @property
    @abstractmethod
    def setup(self) -> Setup:
        """How the form starts a run. Unchanged parameters are left out."""

    @property
    def changed(self) -> dict[str, str]:
        """The texts of the changed parameters by the names of their form fields."""
        return {TYPED + each.name: each.text for each in self.fields if each.text != each.base}

    def refused(self, error: Exception) -> Self:
        """Returns a copy of the form that reports the error as its mistake."""
        kind, _, name = error.field.partition(".") if isinstance(error, HostError) else ("", "", "")
        target, label = self.labels.get(kind, ("", ""))
        if kind in {"param", QUESTION}:
            target = f"{TYPED}{name or kind}"
            label = next((each.declared.label.en_US for each in self.fields if each.name == name), "Question")
        return replace(self, mistake=Mistake(target, label, in_words_of_the_page(str(error), self.labels)))


def submitted(console: Console, template: str, form: RunForm, **shown: object) -> Response:
    """Starts the run that the form describes, or shows the form again with its mistake."""
    try:
        if form.mistake is None:
            form.setup.check(console.folder.trace)
    except WRONG as error:
        form = form.refused(error)
    if form.mistake is not None:
        return console.page(template, 422, form=form, **shown)
    return RedirectResponse(f"/runs/{console.start(form.setup)}", 303)
