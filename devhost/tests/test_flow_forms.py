"""Forms of Human Input nodes, and the answers to them from options, scripts and people."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from devhost.errors import FlowFileError, ParameterError, UnansweredFormError
from devhost.files import LocalFile
from devhost.flow.checks import check_flow
from devhost.flow.document import TIMEOUT, Button, FlowFile, Form, FormAnswer, FormField
from devhost.flow.forms import Answers, AskAtTerminal, Given, read_answers, scripted_answers, together
from devhost.limits import HostLimits
from devhost.text import Secrets
from support.flow_documents import START, Edge, chain, chatflow, node

ACTIONS = [{"id": "ok", "title": "Approve"}, {"id": "no", "title": "Reject"}]
INPUTS = [
    {"type": "paragraph", "output_variable_name": "reason"},
    {
        "type": "select",
        "output_variable_name": "when",
        "option_source": {"type": "constant", "value": ["now", "later"]},
    },
]


@pytest.fixture
def file(tmp_path: Path) -> FlowFile:
    form = node("human-input", "form", inputs=INPUTS, user_actions=ACTIONS)
    other = node("human-input", "other", user_actions=ACTIONS)
    edges: list[Edge] = [("start", "form"), ("form", "other", TIMEOUT)]
    return FlowFile.read(chatflow(tmp_path, [START, form, other], edges))


@pytest.fixture
def form(file: FlowFile) -> Form:
    fields = (FormField("reason", "paragraph", "none"), FormField("when", "select", options=("now", "later")))
    buttons = (Button("ok", "Approve"), Button("no", "Reject"))
    return Form(file.nodes["form"], "Send it?\n\n{{#$output.reason#}}", fields, buttons, can_time_out=True)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "node 'Form' (form) is not a form: user_actions: Field required"),
        ({"user_actions": []}, "user_actions: Tuple should have at least 1 item"),
        (
            {"user_actions": ACTIONS, "inputs": [{"output_variable_name": "a", "type": "date"}]},
            "inputs[0].type: Input should be 'paragraph', 'select', 'file' or 'file-list'",
        ),
        (
            {
                "user_actions": ACTIONS,
                "inputs": [{"output_variable_name": "a", "default": {"type": "constnt", "value": "x"}}],
            },
            "inputs[0].default.type: Input should be 'constant' or 'variable'",
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
    given = read_answers(file, ["form=Approve", "Form.when=now", "form.reason=a=b", "other=no"])

    assert given == {"form": Given("ok", {"when": "now", "reason": "a=b"}), "other": Given("no")}
    assert read_answers(file, ["form=timeout"]) == {"form": Given(TIMEOUT)}


@pytest.mark.parametrize(
    ("assignment", "sentence"),
    [
        ("form", "--answer 'form' is not NODE=BUTTON or NODE.FIELD=VALUE"),
        (
            "agent.x=1",
            "--answer agent.x: the flow has no form 'agent'; forms: node 'Form' (form), node 'Other' (other)",
        ),
        ("form=maybe", "--answer form=maybe: node 'Form' (form) has no button 'maybe'; there are: ok, no, timeout"),
        ("other=timeout", "node 'Other' (other) has no button 'timeout'; there are: ok, no"),
        ("form.why=x", "--answer form.why: node 'Form' (form) has no field 'why'; there are: reason, when"),
        ("form.when=soon", "--answer form.when: 'soon' is not an option of when; there are: now, later"),
    ],
)
def test_an_answer_that_no_form_takes_is_refused(file: FlowFile, assignment: str, sentence: str) -> None:
    with pytest.raises(ParameterError) as error:
        read_answers(file, [assignment])
    assert sentence in str(error.value)


def test_the_command_line_goes_before_the_script(file: FlowFile) -> None:
    scripted = scripted_answers(file, {"form": "no", "form.reason": "of the script", "other": "no"}, "s.yaml")
    given = together(scripted, read_answers(file, ["form=ok", "form.when=now"]))

    assert given == {"form": Given("ok", {"reason": "of the script", "when": "now"}), "other": Given("no")}
    with pytest.raises(ParameterError, match=r"s.yaml: answers: form=x: node 'Form'"):
        scripted_answers(file, {"form": "x"}, "s.yaml")


def test_a_paragraph_that_is_not_given_has_its_default_and_a_timeout_no_fields(form: Form) -> None:
    assert Answers({"form": Given("ok", {"when": "now"})})(form) == FormAnswer("ok", {"reason": "none", "when": "now"})
    assert Answers({"form": Given(TIMEOUT)})(form) == FormAnswer(TIMEOUT)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            Given(),
            "or timeout; form.when is now or later). On the command line: --answer form=ok --answer form.when=now",
        ),
        (
            Given("ok"),
            'answers: {"form.when": "now"} (form.when is now or later). On the command line: --answer form.when=now',
        ),
        (Given("ok", {"when": "soon"}), "'soon' is not an option of when; there are: now, later"),
    ],
)
def test_without_a_terminal_what_is_missing_is_said(form: Form, given: Given, sentence: str) -> None:
    with pytest.raises(UnansweredFormError) as error:
        Answers({"form": given})(form)
    assert str(error.value).startswith("node 'Form' (form) ")
    assert str(error.value).endswith(sentence)


def asked(
    form: Form, given: Given, *typed: str | BaseException, hidden: Sequence[str] = ()
) -> tuple[FormAnswer | None, str, list[tuple[str, str]]]:
    """The answer, what was shown, and what was prompted for."""
    shown, keys, prompts = io.StringIO(), iter(typed), []

    def prompt(label: str, default: str) -> str:
        prompts.append((label, default))
        match next(keys):
            case BaseException() as interruption:
                raise interruption
            case words:
                return words or default

    ask = AskAtTerminal(Console(file=shown, width=100), prompt, Secrets(hidden))
    try:
        return Answers({"form": given}, ask)(form), shown.getvalue(), prompts
    except UnansweredFormError as error:
        return None, str(error), prompts


def test_a_person_fills_in_the_form(form: Form) -> None:
    answer, shown, prompts = asked(form, Given(), "too long", "3", "LATER", "Approve")

    assert answer == FormAnswer("ok", {"reason": "too long", "when": "later"})
    assert prompts == [("reason> ", "none"), ("when> ", ""), ("when> ", ""), ("button> ", "")]
    assert shown.splitlines() == [
        *("Form:", "Send it?", "", "[reason]"),
        *("  1  now", "  2  later"),
        "Type a number from 1 to 2, or one of the words.",
        *("  1  Approve", "  2  Reject", "  3  timeout: not answered in time"),
    ]


def test_a_secret_in_a_form_is_not_shown_and_stays_the_default(form: Form) -> None:
    asks = replace(form, content="Send it with tk-12345?", fields=(FormField("reason", "paragraph", "by tk-12345"),))

    answer, shown, prompts = asked(asks, Given(), "", "1", hidden=["tk-12345"])

    assert answer == FormAnswer("ok", {"reason": "by tk-12345"})
    assert "Send it with [secret]?" in shown
    assert prompts[0] == ("reason (Enter takes the default, which is secret)> ", "")


def test_a_field_for_files_takes_paths(file: FlowFile, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("x")
    a, b = (LocalFile.read(tmp_path / name, HostLimits()) for name in ("a.txt", "b.txt"))
    fields = (FormField("one", "file"), FormField("all", "file-list"))
    form = Form(file.nodes["form"], "", fields, (Button("ok", "Approve"),), can_time_out=False)

    both = json.dumps([str(a.path), str(b.path)])
    assert Answers({"form": Given("ok", {"one": str(a.path), "all": both})})(form).values == {
        "one": (a,),
        "all": (a, b),
    }
    answer, shown, prompts = asked(form, Given("ok"), "gone", str(b.path), str(a.path))
    assert answer == FormAnswer("ok", {"one": (b,), "all": (a,)})
    assert "the file 'gone' cannot be read" in shown
    assert [label for label, _ in prompts] == ["one (path)> "] * 2 + ["all (path, or JSON list of paths)> "]
    with pytest.raises(
        UnansweredFormError, match="cannot take the answer that was given: the file 'gone' cannot be read"
    ):
        Answers({"form": Given("ok", {"one": "gone", "all": "gone"})})(form)


@pytest.mark.parametrize("leaving", [KeyboardInterrupt(), EOFError()])
def test_a_person_may_leave_the_form(form: Form, leaving: BaseException) -> None:
    answer, sentence, _ = asked(form, Given(), "x", leaving)

    assert answer is None
    assert sentence == "node 'Form' (form) was left without an answer: the flow stays paused"
