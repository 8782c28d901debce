"""Answers to forms from `--answer` and from a script's `answers`, checked before the flow starts.

In: `NODE=BUTTON` and `NODE.FIELD=VALUE`, with a node's id or title. Out: a `FormAnswer` for each form, or what is
missing as a sentence.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from devhost.errors import ParameterError, UnansweredFormError
from devhost.files.local_file import local_files
from devhost.flow.document import FlowFile
from devhost.flow.form import TIMEOUT, FieldValue, Form, FormAnswer, FormField
from devhost.flow.forms.declared import HUMAN_INPUT, DeclaredForm
from devhost.limits import HostLimits
from devhost.scenario.settings import json_or_text

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
    node = form.node.id
    buttons = [] if given.button else [" or ".join(f"--answer {node}={each}" for each in buttons_of(form))]
    fields = [f"--answer {node}.{each.name}={' | '.join(each.options) or 'VALUE'}" for each in unset]
    answers = ", and ".join(buttons + fields)
    return f"{form.node} asks a person, and there is no terminal to ask at: answer it with {answers}"
