"""Forms of Human Input nodes, and the answers to them from scripts and people."""

import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from devhost.errors import FlowFileError, ParameterError, UnansweredFormError
from devhost.flow.checks import check_flow
from devhost.flow.document import FlowFile
from devhost.flow.forms import AskAtTerminal, Form, FormAnswer, answer_of, ask_by_line, scripted_answers
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets
from devhost.trace.flow import TIMEOUT, AskedField, FormAsked
from support.flow_documents import START, Edge, chain, chatflow, node

ACTIONS = [{"id": "ok", "title": "Approve"}, {"id": "no", "title": "Reject"}]
INPUTS = [
    {
        "type": "paragraph",
        "output_variable_name": "reason",
        "default": {"type": "constant", "value": "none of tk-12345"},
    },
    {
        "type": "select",
        "output_variable_name": "when",
        "option_source": {"type": "constant", "value": ["now", "later"]},
    },
]


@pytest.fixture
def file(tmp_path: Path) -> FlowFile:
    content = "Send it with tk-12345?\n\n{{#$output.reason#}}"
    form = node("human-input", "form", inputs=INPUTS, user_actions=ACTIONS, form_content=content)
    other = node("human-input", "other", user_actions=ACTIONS)
    edges: list[Edge] = [("start", "form"), ("form", "other", TIMEOUT)]
    return FlowFile.read(chatflow(tmp_path, [START, form, other], edges))


class NoVariables:
    def rendered(self, template: str) -> str:
        return template

    def value(self, selector: Sequence[str]) -> object:
        raise AssertionError(selector)


type Asked = Callable[[Mapping[str, str]], FormAsked]


@pytest.fixture
def form(file: FlowFile) -> Asked:
    """The form, of which a script fills in some fields."""
    return lambda values: Form.of(file, file.nodes["form"]).asked("f1", NoVariables(), values)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "node 'Form' (form) is not a form that devhost plays: user_actions: Field required"),
        (
            {"user_actions": ACTIONS, "inputs": [{"output_variable_name": "a", "type": "file"}]},
            "inputs[0].type: Input should be 'paragraph' or 'select'",
        ),
    ],
)
def test_a_node_that_is_not_a_form_is_told_before_the_flow_starts(
    tmp_path: Path, data: dict[str, Any], sentence: str
) -> None:
    file = FlowFile.read(chatflow(tmp_path, [START, node("human-input", "form", **data)], chain("start", "form")))

    with pytest.raises(FlowFileError) as error:
        check_flow(file, {}, None)
    assert sentence in str(error.value)


def test_answers_name_a_node_by_id_or_title_and_a_button_by_id_or_title(file: FlowFile) -> None:
    given = scripted_answers(file, {"form": "Approve", "Form.when": "now", "form.reason": "a", "other": "no"}, "s.yaml")

    assert given == {"form": FormAnswer("ok", {"when": "now", "reason": "a"}), "other": FormAnswer("no")}
    assert scripted_answers(file, {"form": "timeout"}, "s.yaml") == {"form": FormAnswer(TIMEOUT)}


@pytest.mark.parametrize(
    ("target", "value", "sentence"),
    [
        ("agent.x", "1", "the flow has no form 'agent.x'; forms: node 'Form' (form), node 'Other' (other)"),
        ("form", "maybe", "node 'Form' (form) has no button 'maybe'; there are: ok, no, timeout"),
        ("other", "timeout", "node 'Other' (other) has no button 'timeout'; there are: ok, no"),
        ("form.why", "x", "node 'Form' (form) has no field 'why'; there are: reason, when"),
    ],
)
def test_an_answer_that_no_form_takes_is_refused(file: FlowFile, target: str, value: str, sentence: str) -> None:
    with pytest.raises(ParameterError) as error:
        scripted_answers(file, {target: value}, "s.yaml")
    assert str(error.value) == f"s.yaml: answers: {sentence}"


def test_a_paragraph_that_is_not_given_has_its_default_and_a_timeout_no_fields(form: Asked) -> None:
    given = FormAnswer("ok", {"when": "now"})
    whole = FormAnswer("ok", {"reason": "none of tk-12345", "when": "now"})

    assert answer_of(form(given.values), given, None) == whole
    assert answer_of(form({}), FormAnswer(TIMEOUT), None) == FormAnswer(TIMEOUT)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (FormAnswer(), "answers: form: ok or no or timeout; form.when: now or later"),
        (FormAnswer("ok"), "answers: form.when: now or later"),
        (FormAnswer("ok", {"when": "soon"}), "'soon' is not an option of when; there are: now, later"),
    ],
)
def test_without_a_terminal_what_is_missing_is_said(form: Asked, given: FormAnswer, sentence: str) -> None:
    with pytest.raises(UnansweredFormError) as error:
        answer_of(form(given.values), given, None)
    assert str(error.value).startswith("node 'Form' (form)")
    assert sentence in str(error.value)


def asked(form: Asked, given: FormAnswer, typed: Sequence[str | BaseException]) -> tuple[FormAnswer, list[str]]:
    """The answer, and all lines that the person read; what is hidden begins with tk-."""
    shown, keys = io.StringIO(), iter(typed)

    def prompt(label: str) -> str:
        shown.write(f"{label}\n")
        match next(keys):
            case BaseException() as interruption:
                raise interruption
            case words:
                return words

    ask = AskAtTerminal(Console(file=shown, width=100), prompt, Secrets(["tk-12345"]))
    return answer_of(form(given.values), given, ask), shown.getvalue().splitlines()


def test_a_person_fills_in_the_form(form: Asked) -> None:
    answer, shown = asked(form, FormAnswer(), ["", "3", "LATER", "Approve"])

    assert answer == FormAnswer("ok", {"reason": "none of tk-12345", "when": "later"}, "terminal")
    assert shown == [
        *(
            "Form waits for an answer:",
            "Send it with [secret]?",
            "",
            "[reason]",
            "reason (Enter takes: none of [secret])> ",
        ),
        *("  1  now", "  2  later", "when> ", "Type a number from 1 to 2, or one of the words.", "when> "),
        *("  1  Approve", "  2  Reject", "  3  timeout", "button> "),
    ]
    assert asked(form, FormAnswer("ok", {"when": "now"}), [])[1] == []


@pytest.mark.parametrize("leaving", [KeyboardInterrupt(), EOFError()])
def test_a_person_may_leave_the_form(form: Asked, leaving: BaseException) -> None:
    with pytest.raises(UnansweredFormError, match="was left without an answer: the flow stays paused"):
        asked(form, FormAnswer(), ["x", leaving])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (("ok", {"when": "now"}), FormAnswer("ok", {"reason": "none of tk-12345", "when": "now"}, "console")),
        (("ok", {"reason": "", "when": "now"}), FormAnswer("ok", {"reason": "", "when": "now"}, "console")),
        ((TIMEOUT, {}), FormAnswer(TIMEOUT, {}, "console")),
    ],
)
def test_a_program_answers_the_form_in_a_line_of_json(
    form: Asked, answer: tuple[str, JsonObject], expected: FormAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that do not answer it are passed over: of another form, with a value that Dify refuses, no JSON."""
    button, values = answer
    lines = [{"form": "f0", "button": "ok", "values": {"when": "now"}}, {"form": "f1", "button": "ok", "values": {}}]
    given = [json.dumps(line) for line in (*lines, {"form": "f1", "button": button, "values": values})]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(["?", *given, "null"])))

    assert answer_of(form({}), FormAnswer(), ask_by_line) == expected
    with pytest.raises(UnansweredFormError, match="was left without an answer"):
        answer_of(form({}), FormAnswer(), ask_by_line)


def test_a_form_has_its_fields_in_their_places_and_the_others_at_the_end(form: Asked) -> None:
    before, reason, when = form({}).parts

    assert before == "Send it with tk-12345?\n\n"
    assert [each.name for each in (reason, when) if isinstance(each, AskedField)] == ["reason", "when"]
