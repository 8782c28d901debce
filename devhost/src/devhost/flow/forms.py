"""Forms of Human Input nodes: read from the DSL, and answered by options, a script or a person."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import Console
from rich.text import Text

from devhost.errors import FlowFileError, ParameterError, UnansweredFormError
from devhost.files import local_files
from devhost.flow.document import TIMEOUT, Button, FieldKind, FieldValue, FlowFile, Form, FormAnswer, FormField
from devhost.limits import HostLimits
from devhost.scenario import json_or_text
from devhost.terminal.tables import printable
from devhost.text import Secrets, describe
from devhost.trace.flow import FlowNode

# A form as the DSL declares it (graphon 0.5.0, `nodes/human_input/entities.py`; 0.8.0 leaves these fields to Dify).

HUMAN_INPUT = "human-input"
FIELD = re.compile(r"\{\{#\$output\.([a-zA-Z_][a-zA-Z0-9_]{0,29})#\}\}")
"""Where the content of a form has a field."""


class _Data(BaseModel):
    """Delivery methods and the time until the timeout are Dify's matter."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class _Source[Value](_Data):
    """A constant, or the variable that holds the value."""

    type: Literal["constant", "variable"]
    selector: tuple[str, ...] = ()
    value: Value | None = None


class _Input(_Data):
    output_variable_name: str
    type: FieldKind = "paragraph"
    default: _Source[str] | None = None
    option_source: _Source[tuple[str, ...]] | None = None


class Variables(Protocol):
    def rendered(self, template: str) -> str:
        """A text with the values of its variables."""

    def value(self, selector: Sequence[str]) -> object:
        """None for a variable that is not set."""


class DeclaredForm(_Data):
    form_content: str = ""
    inputs: tuple[_Input, ...] = ()
    user_actions: tuple[Button, ...] = Field(min_length=1)

    @classmethod
    def of(cls, node: FlowNode) -> Self:
        try:
            return cls.model_validate(node.data)
        except ValidationError as error:
            raise FlowFileError(f"{node} is not a form: {describe(error)}") from error

    def asked(self, file: FlowFile, node: FlowNode, variables: Variables) -> Form:
        return Form(
            node,
            variables.rendered(self.form_content),
            tuple(_field(each, variables) for each in self.inputs),
            self.user_actions,
            can_time_out(file, node),
        )


def wrong_forms(file: FlowFile) -> Iterator[str]:
    for node in file.nodes.values():
        if node.type == HUMAN_INPUT:
            try:
                DeclaredForm.of(node)
            except FlowFileError as error:
                yield str(error)


def can_time_out(file: FlowFile, node: FlowNode) -> bool:
    return any(edge.get("source") == node.id and edge.get("sourceHandle") == TIMEOUT for edge in file.edges)


def filled_content(form: Form, values: Mapping[str, FieldValue]) -> str:
    """The content with the person's values in the place of the fields; of files their number."""

    def shown(found: re.Match[str]) -> str:
        value = values.get(found[1], found[0])
        if isinstance(value, str):
            return value
        return "[file]" if len(value) == 1 else f"[{len(value)} files]"

    return FIELD.sub(shown, form.content)


def _field(given: _Input, variables: Variables) -> FormField:
    default = "" if given.default is None else _value(given.default, variables)
    options = () if given.option_source is None else _value(given.option_source, variables)
    return FormField(
        given.output_variable_name,
        given.type,
        "" if default is None else str(default),
        tuple(map(str, options)) if isinstance(options, list | tuple) else (),
    )


def _value(source: _Source[Any], variables: Variables) -> object:
    return variables.value(source.selector) if source.type == "variable" else source.value


# Answers to forms from `--answer` and from a script's `answers`, checked before the flow starts.

LATE = "timeout"
"""In the place of a button: the form was not answered in time."""


@dataclass(frozen=True)
class Given:
    """What is said of one form, before it is asked."""

    button: str | None = None
    """Its id, or TIMEOUT."""
    values: Mapping[str, str] = field(default_factory=dict)


type GivenAnswers = Mapping[str, Given]
"""By the node's id."""


type Read = Callable[[FormField, str], FieldValue]
"""What is typed, as the field's value; ParameterError if the field does not take it."""


class Ask(Protocol):
    def __call__(self, form: Form, button: str | None, values: Mapping[str, FieldValue], read: Read, /) -> FormAnswer:
        """Asks a person for what is not given; UnansweredFormError if the person leaves the form."""


@dataclass(frozen=True)
class Answers:
    """Answers the forms of a turn."""

    given: GivenAnswers
    ask: Ask | None = None
    """None if there is no terminal."""
    limits: HostLimits = field(default_factory=HostLimits)

    def __call__(self, form: Form) -> FormAnswer:
        given = self.given.get(form.node.id, Given())
        if given.button == TIMEOUT:
            return FormAnswer(TIMEOUT)
        try:
            values = {
                each.name: self._read(each, given.values[each.name])
                for each in form.fields
                if each.name in given.values
            }
        except ParameterError as error:
            raise UnansweredFormError(f"{form.node} cannot take the answer that was given: {error}") from error
        unset = [each for each in form.fields if each.name not in values and each.kind != "paragraph"]
        defaults = {each.name: each.default for each in form.fields if each.kind == "paragraph"}
        if given.button is not None and not unset:
            return FormAnswer(given.button, {**defaults, **values})
        if self.ask is None:
            raise UnansweredFormError(_how_to_answer(form, given, unset))
        known = values if given.button is None else {**defaults, **values}
        return self.ask(form, given.button, known, self._read)

    def _read(self, asked: FormField, text: str) -> FieldValue:
        return field_value(asked, text, self.limits)


def field_value(asked: FormField, text: str, limits: HostLimits) -> FieldValue:
    """Files are given by their paths, several as a JSON list."""
    match asked.kind:
        case "paragraph":
            return text
        case "select":
            if text not in asked.options:
                there_are = ", ".join(asked.options) or "none"
                raise ParameterError(f"{text!r} is not an option of {asked.name}; there are: {there_are}")
            return text
        case "file":
            return local_files([Path(text)], limits)
        case "file-list":
            value = json_or_text(text)
            return local_files([Path(str(path)) for path in (value if isinstance(value, list) else [text])], limits)


def read_answers(file: FlowFile, assignments: Sequence[str]) -> GivenAnswers:
    """Of `--answer`."""
    pairs = []
    for assignment in assignments:
        target, equals, value = assignment.partition("=")
        if not equals or not target:
            raise ParameterError(f"--answer {assignment!r} is not NODE=BUTTON or NODE.FIELD=VALUE")
        pairs.append((target, value))
    return _given(file, pairs, "--answer ")


def scripted_answers(file: FlowFile, answers: Mapping[str, str], place: str) -> GivenAnswers:
    """`answers`: of a turn in a script; `place` says where it is written."""
    return _given(file, answers.items(), f"{place}: answers: ")


def together(first: GivenAnswers, second: GivenAnswers) -> GivenAnswers:
    """The second goes before the first."""
    return {
        node: Given(
            second.get(node, Given()).button or first.get(node, Given()).button,
            {**first.get(node, Given()).values, **second.get(node, Given()).values},
        )
        for node in {**first, **second}
    }


def _given(file: FlowFile, pairs: Iterable[tuple[str, str]], place: str) -> GivenAnswers:
    forms = _forms(file)
    given: dict[str, Given] = {}
    for target, value in pairs:
        form, name = _found(forms, target, place)
        before = given.get(form.node.id, Given())
        if name is None:
            given[form.node.id] = Given(_button(form, value, f"{place}{target}={value}"), before.values)
        else:
            _check(form, name, value, f"{place}{target}")
            given[form.node.id] = Given(before.button, {**before.values, name: value})
    return given


class _NotYet:
    """Before the flow starts, variables have no values."""

    def rendered(self, template: str) -> str:
        return template

    def value(self, selector: Sequence[str]) -> None:
        del selector


def _forms(file: FlowFile) -> Mapping[str, Form]:
    """By id, and by the title if no other form has it."""
    nodes = [node for node in file.nodes.values() if node.type == HUMAN_INPUT]
    forms = {node.id: DeclaredForm.of(node).asked(file, node, _NotYet()) for node in nodes}
    titles = Counter(node.title for node in nodes)
    return {**{node.title: forms[node.id] for node in nodes if titles[node.title] == 1}, **forms}


def _found(forms: Mapping[str, Form], target: str, place: str) -> tuple[Form, str | None]:
    """A title may contain dots."""
    if target in forms:
        return forms[target], None
    node, dot, name = target.rpartition(".")
    if dot and node in forms:
        return forms[node], name
    there_are = ", ".join(dict.fromkeys(str(form.node) for form in forms.values())) or "none"
    raise ParameterError(f"{place}{target}: the flow has no form {node or target!r}; forms: {there_are}")


def _button(form: Form, value: str, place: str) -> str:
    if value in {button.id for button in form.buttons}:
        return value
    for button in form.buttons:
        if button.title == value:
            return button.id
    if value == LATE and form.can_time_out:
        return TIMEOUT
    raise ParameterError(f"{place}: {form.node} has no button {value!r}; there are: {', '.join(buttons_of(form))}")


def buttons_of(form: Form) -> list[str]:
    """What may be given for a button."""
    return [*(button.id for button in form.buttons), *([LATE] if form.can_time_out else ())]


def _check(form: Form, name: str, value: str, place: str) -> None:
    asked = {each.name: each for each in form.fields}
    if name not in asked:
        raise ParameterError(f"{place}: {form.node} has no field {name!r}; there are: {', '.join(asked) or 'none'}")
    if asked[name].options:  # those of a variable are known when the form is asked
        try:
            field_value(asked[name], value, HostLimits())
        except ParameterError as error:
            raise ParameterError(f"{place}: {error}") from error


def _how_to_answer(form: Form, given: Given, unset: Iterable[FormField]) -> str:
    """For a reader at a command line, and for one in a browser."""
    node = form.node.id
    choices = {} if given.button else {node: buttons_of(form)}
    choices |= {f"{node}.{each.name}": [*each.options] or ["VALUE"] for each in unset}
    such_as = {name: values[0] for name, values in choices.items()}
    options = " ".join(f"--answer {name}={value}" for name, value in such_as.items())
    there_are = "; ".join(f"{name} is {' or '.join(values)}" for name, values in choices.items())
    return (
        f"{form.node} asks a person. Write the answer into the script, beside the question of this turn: "
        f"answers: {json.dumps(such_as, ensure_ascii=False)} ({there_are}). "
        f"On the command line: {options}"
    )


# Asks a person at the terminal: the form's content, its fields one by one, its buttons.

type Prompt = Callable[[str, str], str]
"""In: the prompt, and the text that can be edited. Out: what the person leaves there."""


PATHS = {"file": " (path)", "file-list": " (path, or JSON list of paths)"}


class AskAtTerminal:
    def __init__(self, console: Console, prompt: Prompt, hidden: Secrets) -> None:
        """`hidden` is never shown."""
        self._hidden = hidden
        self._console = console
        self._prompt = prompt

    def __call__(self, form: Form, button: str | None, values: Mapping[str, FieldValue], read: Read) -> FormAnswer:
        content = FIELD.sub(lambda found: f"[{found[1]}]", form.content)
        self._say(f"{form.node.title or form.node.id}:", "bold")
        self._say(content)
        try:
            asked = [each for each in form.fields if each.name not in values]
            filled = {**values, **{each.name: self._field(each, read) for each in asked}}
            chosen = button or self._button(form)
        except (KeyboardInterrupt, EOFError):
            raise UnansweredFormError(f"{form.node} was left without an answer: the flow stays paused") from None
        return FormAnswer(TIMEOUT) if chosen == TIMEOUT else FormAnswer(chosen, filled)

    def _field(self, asked: FormField, read: Read) -> FieldValue:
        if asked.kind == "select":
            return self._choice(asked.name, [(option, option) for option in asked.options])
        hides = self._hidden.masked(asked.default) != asked.default
        hint = " (Enter takes the default, which is secret)" if hides else PATHS.get(asked.kind, "")
        while True:
            typed = self._prompt(f"{printable(asked.name)}{hint}> ", "" if hides else asked.default)
            try:
                return read(asked, asked.default if hides and not typed else typed)
            except ParameterError as error:
                self._say(str(error), "dim")

    def _button(self, form: Form) -> str:
        buttons = [(button.id, button.title) for button in form.buttons]
        late = [(TIMEOUT, f"{LATE}: not answered in time")] if form.can_time_out else []
        return self._choice("button", [*buttons, *late])

    def _choice(self, name: str, choices: Sequence[tuple[str, str]]) -> str:
        """By number, id or title."""
        for number, (_, title) in enumerate(choices, start=1):
            self._say(f"  {number}  {title}")
        while True:
            typed = self._prompt(f"{printable(name)}> ", "").strip()
            for number, choice in enumerate(choices, start=1):
                if typed.casefold() in {str(number), *_names(choice)}:
                    return choice[0]
            self._say(f"Type a number from 1 to {len(choices)}, or one of the words.", "dim")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(printable(self._hidden.masked(text)), style), soft_wrap=True)


def _names(choice: tuple[str, str]) -> Iterator[str]:
    own, title = choice
    yield own.casefold()
    yield LATE if own == TIMEOUT else title.casefold()


def ask_at_terminal(console: Console, hidden: Secrets) -> AskAtTerminal | None:
    """None if standard input is not a terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        return None

    def prompt(label: str, default: str) -> str:
        from prompt_toolkit import PromptSession  # noqa: PLC0415 - slow to import, and only a typed answer needs it
        from prompt_toolkit.output import create_output  # noqa: PLC0415

        session: PromptSession[str] = PromptSession(label, output=create_output(always_prefer_tty=True))
        return session.prompt(default=default).encode(errors="surrogateescape").decode(errors="replace")

    return AskAtTerminal(console, prompt, hidden)
