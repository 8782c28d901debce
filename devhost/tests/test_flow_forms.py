"""Forms of Human Input nodes, and the answers to them from scripts and people."""

import io
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from devhost.errors import FlowFileError, ParameterError, UnansweredFormError
from devhost.flow.checks import check_flow
from devhost.flow.document import FlowFile
from devhost.flow.forms import AskAtTerminal, answer_of, ask_by_line, scripted_answers
from devhost.script import FormAnswer
from devhost.text import Secrets
from devhost.trace.flow import TIMEOUT, AskedField, Button, FlowNode, FormAsked
from support.flow_documents import START, answer, chain, chatflow, node

ACTIONS = [{"id": "ok", "title": "Approve"}, {"id": "no", "title": "Reject"}]
DEFAULT = "none of tk-12345"
FORM = FormAsked(
    "f1",
    FlowNode("form", "human-input", "Form", {}),
    "Send it with tk-12345?\n\n{{#$output.reason#}}",
    (AskedField("reason", "paragraph", DEFAULT), AskedField("when", "select", options=("now", "later"))),
    (Button("ok", "Approve"), Button("no", "Reject"), Button(TIMEOUT, "timeout")),
)


def form(when: str = "") -> FormAsked:
    """`when`: what the script fills in."""
    return replace(FORM, fields=(FORM.fields[0], replace(FORM.fields[1], text=when)))


@pytest.fixture
def file(tmp_path: Path) -> FlowFile:
    inputs = [{"output_variable_name": name} for name in ("reason", "when")]
    form = node("human-input", "form", inputs=inputs, user_actions=ACTIONS)
    other = node("human-input", "other", user_actions=ACTIONS)
    return FlowFile.read(chatflow(tmp_path, [START, form, other], [("start", "form"), ("form", "other", TIMEOUT)]))


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
        check_flow(file, {}, ())
    assert sentence in str(error.value)


def test_a_button_and_an_edge_without_each_other_are_notices(tmp_path: Path) -> None:
    nodes = [START, node("human-input", "form", user_actions=ACTIONS), answer("Done.")]
    file = chatflow(
        tmp_path, nodes, [("start", "form"), *(("form", "answer", each) for each in ("okay", "no", TIMEOUT))]
    )

    assert check_flow(FlowFile.read(file), {}, ()) == (
        "no edge leaves node 'Form' (form) at 'ok': the flow ends there",
        (
            "an edge leaves node 'Form' (form) at 'okay' (did you mean 'ok'?), which it does not have: the flow never "
            "goes there; there are: ok, no"
        ),
    )


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


@pytest.mark.parametrize(
    ("when", "button", "sentence"),
    [
        ("", "", "answers: form: ok or no or timeout; form.when: now or later"),
        ("", "ok", "answers: form.when: now or later"),
        ("soon", "ok", "when: 'soon' is not one of: now, later"),
    ],
)
def test_without_a_terminal_what_is_missing_is_said(when: str, button: str, sentence: str) -> None:
    with pytest.raises(UnansweredFormError, match=rf"node 'Form' \(form\).*{sentence}"):
        answer_of(form(when), FormAnswer(button), None)
    none = replace(FORM, fields=(AskedField("when", "select"),))
    with pytest.raises(UnansweredFormError, match="when: choose one of: no options"):
        answer_of(none, FormAnswer(), ask_by_line)


def asked(given: FormAnswer, typed: Sequence[str | BaseException], when: str = "") -> tuple[FormAnswer, list[str]]:
    """The answer, and all lines that the person read; what is hidden begins with tk-."""
    shown = io.StringIO()
    keys = iter(typed)

    def prompt(label: str) -> str:
        shown.write(f"{label}\n")
        match next(keys):
            case BaseException() as interruption:
                raise interruption
            case words:
                return words

    ask = AskAtTerminal(Console(file=shown, width=100), prompt, Secrets(["tk-12345"]))
    return answer_of(form(when), given, ask), shown.getvalue().splitlines()


def test_a_person_fills_in_what_the_script_does_not() -> None:
    answer, shown = asked(FormAnswer(), ["", "3", "LATER", "OK"])

    assert answer == FormAnswer("ok", {"reason": DEFAULT, "when": "later"}, "terminal")
    assert shown == [
        *("Form waits for an answer:", "Send it with [secret]?", "", "[reason]"),
        *("reason (Enter takes: none of [secret])> ", "  1  now", "  2  later", "when> "),
        *("Type a number from 1 to 2, or one of the words.", "when> "),
        *("  1  Approve", "  2  Reject", "  3  timeout", "button> "),
    ]
    assert asked(FormAnswer("ok"), [], "now") == (FormAnswer("ok", {"reason": DEFAULT, "when": "now"}), [])
    assert asked(FormAnswer(TIMEOUT), []) == (FormAnswer(TIMEOUT), [])
    for leaving in (KeyboardInterrupt(), EOFError()):
        with pytest.raises(UnansweredFormError, match="was left without an answer: the flow stays paused"):
            asked(FormAnswer(), ["x", leaving])


def test_a_script_answers_every_field_that_has_no_default() -> None:
    """Dify's API answers a form without one with 400, "Missing required inputs", and its page does not send it."""
    fields = (AskedField("reason", "paragraph"), replace(FORM.fields[1], text="now"))
    blank = replace(FORM, fields=fields)
    with pytest.raises(UnansweredFormError, match=r"answers: form\.reason: VALUE"):
        answer_of(blank, FormAnswer("ok"), None)
    with pytest.raises(UnansweredFormError, match="reason: Dify wants a text"):
        answer_of(blank, FormAnswer("ok", {"reason": ""}), None)
    filled = replace(FORM, fields=(replace(fields[0], text="late"), fields[1]))
    assert answer_of(filled, FormAnswer("ok"), None) == FormAnswer("ok", {"reason": "late", "when": "now"})


def test_a_person_types_a_text_into_every_field() -> None:
    blank = replace(FORM, fields=(AskedField("reason", "paragraph"),))
    keys = iter(["", "  ", "late", "ok"])
    shown = io.StringIO()
    ask = AskAtTerminal(Console(file=shown, width=100), lambda _label: next(keys), Secrets())

    assert answer_of(blank, FormAnswer(), ask) == FormAnswer("ok", {"reason": "late"}, "terminal")
    assert shown.getvalue().count("Dify takes no blank field") == 2


def test_a_program_answers_the_form_in_a_line_of_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines that do not answer it are passed over: no JSON, of another form, without a field, or with a blank one."""
    line = {"form": "f1", "button": "ok"}
    filled = [{}, {"reason": " "}, {"reason": "late", "when": "soon"}, {"when": "now"}]
    given = [{**line, "form": "f0", "values": filled[-1]}, *({**line, "values": values} for values in filled), None]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(["?", *map(json.dumps, given)])))

    assert ask_by_line(FORM, FormAnswer()) == FormAnswer("ok", {"reason": DEFAULT, "when": "now"}, "console")
    assert capsys.readouterr().err.splitlines() == [
        "node 'Form' (form): Missing required inputs: when",
        "node 'Form' (form): reason: Dify wants a text; Missing required inputs: when",
        "node 'Form' (form): when: 'soon' is not one of: now, later",
    ]
    with pytest.raises(UnansweredFormError, match="was left without an answer"):
        ask_by_line(FORM, FormAnswer())


def test_a_form_has_its_fields_in_their_places_and_the_others_at_the_end() -> None:
    assert FORM.parts == ["Send it with tk-12345?\n\n", *FORM.fields]
