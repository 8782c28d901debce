"""The forms of Human Input nodes, read from the DSL and answered by a script, at the terminal or in the console."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import click
from pydantic import Field
from rich.console import Console
from rich.text import Text

from devhost.errors import FlowFileError, ParameterError, UnansweredFormError, naming
from devhost.flow.document import DifyModel, FlowFile
from devhost.script import Ask, FormAnswer, GivenAnswers
from devhost.terminal.chat_view import typed_lines
from devhost.terminal.tables import printable
from devhost.text import Secrets, worded
from devhost.trace.flow import FIELD, TIMEOUT, AskedField, Button, FlowNode, FormAsked

# A form as the DSL declares it (graphon 0.5.0, `nodes/human_input/entities.py`; 0.8.0 leaves these fields to Dify).

HUMAN_INPUT = "human-input"
LATE = "timeout"
"""The name of `TIMEOUT` in scripts and at the terminal."""


class ValueSource(DifyModel):
    """A constant, or the variable that holds the value."""

    type: Literal["constant", "variable"] = "constant"
    selector: tuple[str, ...] = ()
    value: Any = None


class FormField(DifyModel):
    """A field of a form. Fields for files are not supported."""

    name: str = Field(alias="output_variable_name")
    type: Literal["paragraph", "select"] = "paragraph"
    default: ValueSource | None = None
    option_source: ValueSource | None = None


class Form(DifyModel):
    """The form of a Human Input node. devhost ignores delivery methods and the time until the timeout."""

    node: FlowNode
    content: str = Field("", alias="form_content")
    """The form's text in Markdown, with `{{#$output.NAME#}}` in place of each field."""
    inputs: tuple[FormField, ...] = ()
    buttons: tuple[Button, ...] = Field(alias="user_actions", min_length=1)
    """The buttons of the form. The last one is the timeout if an edge leaves the node at the timeout."""

    @classmethod
    def of(cls, file: FlowFile, node: FlowNode) -> Self:
        with worded(lambda why: FlowFileError(f"{node} is not a form that devhost plays: {why}")):
            form = cls.model_validate({**node.data, "node": node})
        if not any(edge.get("source") == node.id and edge.get("sourceHandle") == TIMEOUT for edge in file.edges):
            return form
        return form.model_copy(update={"buttons": (*form.buttons, Button(id=TIMEOUT, title=LATE))})


def choices_of(buttons: Sequence[Button]) -> Sequence[str]:
    """Returns the names that a script may use for the buttons."""
    return [LATE if button.id == TIMEOUT else button.id for button in buttons]


def forms_of(file: FlowFile) -> Iterator[FlowNode]:
    return (node for node in file.nodes.values() if node.type == HUMAN_INPUT)


def wrong_forms(file: FlowFile) -> Iterator[str]:
    for node in forms_of(file):
        try:
            Form.of(file, node)
        except FlowFileError as error:
            yield str(error)


# Answers to forms from a script's `answers`. The names of buttons and fields are checked before the flow starts.


def answer_of(form: FormAsked, given: FormAnswer, ask: Ask | None) -> FormAnswer:
    """Returns the answer to a form, from a script or from a person. `ask` is None if no person can be asked.

    Raises UnansweredFormError if the form stays open. The flow then stays paused.
    """
    if given.button == TIMEOUT:
        return given
    refused = form.refused(form.values)
    missing = [each for each in form.fields if each.name in refused]
    wrong = [f"{each.name}: {refused[each.name]}" for each in missing if not _is_open(each, given)]
    if wrong:
        raise UnansweredFormError(f"{form.node}: {'; '.join(wrong)}")
    if given.button and not missing:
        return FormAnswer(given.button, form.values)
    if ask is None:
        raise UnansweredFormError(_how_to_answer(form, given, missing))
    return ask(form, given)


def _is_open(asked: AskedField, given: FormAnswer) -> bool:
    """Returns whether a person can still fill in a field whose value Dify does not accept."""
    return not asked.text and asked.name not in given.values and (asked.type != "select" or bool(asked.options))


def _how_to_answer(form: FormAsked, given: FormAnswer, missing: Sequence[AskedField]) -> str:
    if given.button:
        choices = {}
    else:
        choices = {form.node.id: choices_of(form.buttons)}
    choices |= {f"{form.node.id}.{each.name}": each.options or ["VALUE"] for each in missing}
    there_are = "; ".join(f"{name}: {' or '.join(values)}" for name, values in choices.items())
    return f"{form.node} asks a person. Write into the script, beside the question of this turn, answers: {there_are}"


def scripted_answers(file: FlowFile, answers: Mapping[str, str], place: str) -> GivenAnswers:
    """Parses the `answers` of a turn: a key NODE chooses a button, and a key NODE.FIELD sets a value.

    Error messages begin with `place`, the location of the answers.
    """
    forms = []
    if answers:
        forms = [Form.of(file, node) for node in forms_of(file)]
    given: dict[str, FormAnswer] = {}
    for target, value in answers.items():
        form, name = _found(forms, target, place)
        before = given.get(form.node.id, FormAnswer())
        if not name:
            given[form.node.id] = replace(before, button=_button(form, value, place))
        elif name in (names := [each.name for each in form.inputs]):
            given[form.node.id] = replace(before, values={**before.values, name: value})
        else:
            raise ParameterError(f"{place}: answers: {form.node} has no field {name!r}; {naming(names)}")
    return given


def _found(forms: Sequence[Form], target: str, place: str) -> tuple[Form, str]:
    """Finds a form by its node's id or title, and returns it with the field's name. A title may contain dots."""
    for node, name in ((target, ""), target.rpartition(".")[::2]):
        named = [form for form in forms if form.node.id == node] or [form for form in forms if form.node.title == node]
        if len(named) == 1:
            return named[0], name
    there_are = ", ".join(str(form.node) for form in forms) or "none"
    raise ParameterError(f"{place}: answers: the flow has no form {target!r}; forms: {there_are}")


def _button(form: Form, value: str, place: str) -> str:
    for button in form.buttons:
        if value in {button.id, button.title}:
            return button.id
    there_are = naming(choices_of(form.buttons))
    raise ParameterError(f"{place}: answers: {form.node} has no button {value!r}; {there_are}")


def _left(form: FormAsked) -> UnansweredFormError:
    return UnansweredFormError(f"{form.node} was left without an answer: the flow stays paused")


def ask_by_line(form: FormAsked, _given: FormAnswer) -> FormAnswer:
    """Reads lines of standard input until one answers the form. `null` or the end of the input leaves the form open.

    An answer is {"form": its id, "button": an id, "values": {name: text}}, with only the values that differ from those
    shown. A line that is not an answer is skipped. stderr says which fields Dify would not accept.
    """
    while line := sys.stdin.readline():
        with suppress(ValueError):
            match json.loads(line):
                case {"form": form.form, "button": str(button), "values": dict(given)}:
                    if button == TIMEOUT:
                        return FormAnswer(button, {}, "console")
                    values = {name: str(given.get(name, text)) for name, text in form.values.items()}
                    refused = form.refused(values)
                    lacking = [name for name in refused if name not in given]
                    if not refused:
                        return FormAnswer(button, values, "console")
                    told = [f"{name}: {why}" for name, why in refused.items() if name in given]
                    if lacking:
                        told.append(f"Missing required inputs: {', '.join(lacking)}")
                    click.echo(f"{form.node}: {'; '.join(told)}", err=True)
                case None:
                    break
    raise _left(form)


# Asks a person at the terminal: shows the form's content, then asks for its fields one by one and for a button.


@dataclass
class AskAtTerminal:
    """Asks a person at the terminal to fill in a form."""

    console: Console
    prompt: Callable[[str], str]
    hidden: Secrets
    """The values that are never shown."""
    is_interrupted: bool = False
    """Whether a form was left with Ctrl-C."""

    def __call__(self, form: FormAsked, given: FormAnswer) -> FormAnswer:
        self._say(f"{form.node.title or form.node.id} waits for an answer:", "bold")
        self._say(FIELD.sub(lambda found: f"[{found[1]}]", form.content))
        values = dict(given.values)
        try:
            for each in form.fields:
                if each.name not in values:
                    values[each.name] = self._field(each)
            button = given.button or self._choice("button", [(each.id, each.title) for each in form.buttons])
        except (KeyboardInterrupt, EOFError) as left:
            self.is_interrupted = isinstance(left, KeyboardInterrupt)
            raise _left(form) from None
        return FormAnswer(button, {} if button == TIMEOUT else values, "terminal")

    def _field(self, asked: AskedField) -> str:
        if asked.type == "select":
            return self._choice(asked.name, [(option, option) for option in asked.options])
        default = ""
        if asked.text:
            default = f" (Enter takes: {self._shown(asked.text)})"
        while not (typed := self.prompt(f"{self._shown(asked.name)}{default}> ").strip() or asked.text):
            self._say("Type a text: Dify takes no blank field.", "dim")
        return typed

    def _choice(self, name: str, choices: Sequence[tuple[str, str]]) -> str:
        """Asks for one of the choices by its number, its title, or its name in a script."""
        for number, (_, title) in enumerate(choices, start=1):
            self._say(f"  {number}  {title}")
        while True:
            typed = self.prompt(f"{self._shown(name)}> ").strip().casefold()
            for number, (own, title) in enumerate(choices, start=1):
                if typed in {str(number), title.casefold(), own.casefold()}:
                    return own
            self._say(f"Type a number from 1 to {len(choices)}, or one of the words.", "dim")

    def _shown(self, text: str) -> str:
        return printable(self.hidden.masked(text))

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(Text(self._shown(text), style), soft_wrap=True)


def ask_at_terminal(console: Console, hidden: Secrets) -> AskAtTerminal | None:
    """Returns a callback that asks at the terminal, or None if standard input is not a terminal."""
    is_typed = sys.stdin is not None and sys.stdin.isatty()
    if is_typed:
        return AskAtTerminal(console, lambda label: typed_lines(label)(), hidden)
    return None
