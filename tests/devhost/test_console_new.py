"""The form of a new run: made from the strategy's YAML, checked before anything starts, and started as a child."""

import re
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from devhost.cli.commands import COMMANDS
from devhost.console import once
from devhost.console.children import Children
from devhost.console.form_plan import Plan, planned
from devhost.console.forms import Choices
from devhost.console.once import Once
from devhost.console.runs import SETUP, RunFolder, Setup
from devhost.console.server.app import application
from devhost.console.views.console import Console
from support.console import start_instead, words
from support.plugins import CHARTS, PUPPET, TOOLBOX
from support.tracing import tracing
from support.waiting import PATIENCE, MovableClock, wait_for
from tests.devhost import ROOT

PORT, TOKEN = 8765, "t0k3n"
HOME = f"http://127.0.0.1:{PORT}"
PUPPETS = {"plugin": str(PUPPET), "source": "script", "script": str(TOOLBOX / "script.yaml"), "tools": str(TOOLBOX)}
MAIL = {"source": "example:injection/mail"}
APPROVED = {"source": "example:order_entry/approved"}


def plan_of(environment: dict[str, str] | None = None, question: str = "[]", **given: str) -> Plan:
    typed = {**PUPPETS, "p.query": question, **given}
    return planned(Choices.read(typed.items()), None, environment or {})


def ours(**given: str) -> Plan:
    return planned(Choices.read({**APPROVED, **given}.items()), ROOT, {})


def texts(plan: Plan) -> dict[str, str]:
    return {field.name: field.text for field in plan.fields if field.text}


def changed(plan: Plan) -> list[str]:
    return [field.name for field in plan.fields if field.changed]


# --- fields ----------------------------------------------------------------------------------------------------------


def test_each_declared_parameter_is_a_field_with_what_the_yaml_says_of_it() -> None:
    fields = {field.name: field for field in plan_of().fields}

    assert {name: field.widget for name, field in fields.items()} == {
        "model": "shown",
        "tools": "shown",
        "rounds": "number",
        "loud": "select",
        "mood": "select",
        "files": "json",
        "approval": "text",
        "state": "text",
    }
    assert (fields["rounds"].default, fields["rounds"].bounds) == ("3", "at most 9")
    assert fields["mood"].options == (("calm", "Calm"), ("wild", "Wild"))
    assert fields["loud"].label == "Loud"


def test_the_fields_hold_what_the_scenario_sets_and_nothing_of_it_is_a_change() -> None:
    plan = ours()

    assert texts(plan)["approval_required"] == "request_order"
    assert texts(plan)["maximum_iterations"] == "8"
    assert plan.question is not None
    assert plan.question.text.startswith("Café Lindqvist, C-3001. Please order 40 packs")
    assert "request_order" in plan.tools
    assert (plan.mistakes, changed(plan), plan.setup.parameters) == ({}, [], {})
    assert {field.name: field.help for field in plan.fields}["instruction"].startswith("For what is special")


def test_another_scenario_keeps_what_was_typed_where_it_fits() -> None:
    first = ours()
    held = {f"was.{field.name}": field.base for field in first.fields} | {f"p.{n}": t for n, t in texts(first).items()}
    held |= {"p.instruction": "Be brief.\r\nVery.", "p.answer_criteria": "short"}
    other = planned(Choices.read({**held, "source": "example:helpdesk"}.items()), ROOT, {})

    assert changed(other) == ["instruction", "answer_criteria"]
    assert texts(other)["instruction"] == "Be brief.\nVery."
    assert "approval_required" not in texts(other), "that was the other scenario's"

    puppet = planned(Choices.read({**held, **PUPPETS, "p.mood": "cheerful"}.items()), ROOT, {})
    assert texts(puppet) == {"rounds": "2"}, "of its script: it has no such parameters, and no such mood"


# --- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "field", "sentence"),
    [
        ({"p.rounds": "10"}, "p.rounds", "must be at most 9"),
        ({"p.rounds": "many"}, "p.rounds", "rounds: invalid literal"),
        ({"p.state": "a\0b"}, "p.state", "a NUL character"),
        ({"p.query": "  "}, "p.query", "a question needs words"),
        ({"plugin": str(TOOLBOX)}, "plugin", "has no agent strategy"),
        ({"plugin": "/nowhere"}, "plugin", "/nowhere is not a plugin: manifest.yaml is missing"),
        ({"script": "/nowhere.yaml", "p.query": "?"}, "script", "/nowhere.yaml"),
        ({"tools": "/nowhere"}, "tools", "/nowhere is not a plugin"),
        ({"files": "/nowhere.png"}, "files", "/nowhere.png"),
        ({"p.files": "a\0b"}, "p.files", "a NUL character"),
        ({"source": "none", "p.query": "?"}, "source", "without a script only a real model can answer"),
        ({"real": "yes"}, "model", "a real model needs OPENAI_API_KEY or OPENAI_BASE_URL"),
    ],
)
def test_what_cannot_be_is_said_beside_its_field(given: dict[str, str], field: str, sentence: str) -> None:
    mistakes = plan_of(None, "[]", **given).mistakes

    assert list(mistakes) == [field]
    assert sentence in mistakes[field]


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("{", "not JSON: "),
        ("[]", "a JSON Schema must be an object"),
        ('{"type": "thing"}', "not a JSON Schema: "),
        ('{"type": "object"}', "has no turns for a run with this answer_schema"),
    ],
)
def test_an_answer_schema_is_checked(schema: str, sentence: str) -> None:
    mistakes = ours(**{"p.answer_schema": schema}).mistakes

    assert list(mistakes) == ["p.answer_schema"]
    assert sentence in mistakes["p.answer_schema"]


def test_a_real_model_is_checked_and_its_key_stays_in_the_environment() -> None:
    environment = {"OPENAI_API_KEY": "sk-secret"}
    good = plan_of(environment, real="yes", source="none", api="chat", completion="verbosity=low", question="?")
    bad = plan_of(environment, real="yes", completion="no_such=1")

    assert good.mistakes == {}
    assert "no_such" in bad.mistakes["model"]
    assert good.setup.model.completion == {"verbosity": "low"}
    assert "sk-secret" not in good.setup.model_dump_json()


def test_missing_credentials_are_named_and_given_ones_stay_in_the_environment() -> None:
    missing = plan_of(tools=str(CHARTS))
    environment = {"CHARTS_API_KEY": "s3cret"}
    given = plan_of(environment, tools=str(CHARTS))

    assert "CHARTS_API_KEY in the environment" in missing.mistakes["tools"]
    assert [(each.variable, each.required, each.is_set) for each in given.credentials] == [
        ("CHARTS_API_KEY", True, True),
        ("CHARTS_REGION", False, False),
    ]
    assert given.mistakes == {}
    assert environment == {"CHARTS_API_KEY": "s3cret"}, "reading took nothing out of it"
    assert "s3cret" not in repr(given)


# --- the pages -------------------------------------------------------------------------------------------------------


@pytest.fixture
def children() -> Iterator[Children]:
    children = Children()
    yield children
    children.end()


@pytest.fixture
def browser(tmp_path: Path, children: Children) -> TestClient:
    console = Console(RunFolder(tmp_path), plugin=ROOT, children=children)
    browser = TestClient(application(console, PORT, TOKEN), base_url=HOME, follow_redirects=False)
    browser.get(f"/?token={TOKEN}")
    browser.headers["origin"] = HOME
    return browser


def test_the_form_marks_a_changed_field_and_resets_it(browser: TestClient) -> None:
    typed = {**PUPPETS, "p.rounds": "5", "was.rounds": "", "do": "load"}
    marked, reset = browser.post("/new", data=typed), browser.post("/new", data={**typed, "do": "reset rounds"})

    assert 'class="field changed" data-name="rounds"' in marked.text
    assert 'class="field" data-name="rounds"' in reset.text
    assert "--param rounds=5" in marked.text


def test_a_mistake_starts_nothing_and_stands_beside_the_field(browser: TestClient, tmp_path: Path) -> None:
    answer = browser.post("/new", data={**PUPPETS, "p.rounds": "<script>", "p.query": "[]", "do": "start"})

    assert answer.status_code == 422
    assert 'aria-describedby="wrong-p.rounds"' in answer.text
    assert "<script>" not in answer.text.partition("<body>")[2]
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_asked_approved_and_ended_from_its_page(browser: TestClient, tmp_path: Path) -> None:
    started = browser.post("/new", data={**MAIL, "do": "start"})
    assert started.status_code == 303, started.text
    name = started.headers["location"].removeprefix("/runs/")
    assert Setup.read(tmp_path / f"{name}{SETUP}").scenario == "mail"

    def state() -> str:
        found = re.search(r'data-state="(\w+)"', browser.get(f"/runs/{name}/state").text)
        assert found
        return found[1]

    wait_for(lambda: state() == "approval", "a call that waits")
    shown = browser.get(f"/runs/{name}").text
    assert "choir@st-anne.example" in shown.partition("<h3>send_mail</h3>")[2]
    assert "The script&#39;s user says next: no, mention the piano too" in shown

    def steer(do: str, **form: str) -> int:
        return browser.post(f"/runs/{name}/steer", data={"do": do, **form}).status_code

    assert steer("approve", told="0") == 400, "of an older page"
    assert steer("reject", told="1", words="mention the piano") == 303
    wait_for(lambda: state() == "approval", "another call that waits")
    assert "about the piano" in browser.get(f"/runs/{name}/state").text
    assert steer("approve", told="2") == 303
    wait_for(lambda: state() == "question", "the answer")
    assert "The mail to choir@st-anne.example is sent." in browser.get(f"/runs/{name}").text
    assert steer("say", told="3", words=" ") == 400
    assert steer("end") == 303
    wait_for(lambda: state() == "ended", "the end")

    over = browser.get(f"/runs/{name}/state").text
    assert "The conversation has ended." in over
    assert f"/new?from={name}" in over
    assert steer("say", told="3", words="more") == 400
    again = browser.get(f"/new?from={name}").text
    assert '<option value="example:injection/mail" selected>' in again


def test_a_form_that_is_sent_twice_starts_one_run(
    browser: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a double click does. Two pages start two runs, whatever their forms hold."""
    start_instead(monkeypatch, "pass")
    MovableClock(monkeypatch, once)
    keys = [re.findall(r'name="key" value="(\w+)"', browser.get("/new").text)[0] for _ in range(2)]

    first, again, other = (
        browser.post("/new", data={**MAIL, "do": "start", "key": key}).headers["location"]
        for key in (keys[0], keys[0], keys[1])
    )

    assert first == again != other
    assert {f"/runs/{file.name.removesuffix(SETUP)}" for file in tmp_path.glob(f"*{SETUP}")} == {first, other}


def test_the_second_click_waits_until_the_first_has_started_its_run() -> None:
    starting, begun, go_on = Once(), threading.Event(), threading.Event()
    found: list[str] = []

    def slow() -> str:
        begun.set()
        assert go_on.wait(PATIENCE)
        return "first"

    first = threading.Thread(target=lambda: found.append(starting.name("key", slow)))
    second = threading.Thread(target=lambda: found.append(starting.name("key", lambda: "second")))
    first.start()
    assert begun.wait(PATIENCE)
    second.start()
    go_on.set()
    first.join()
    second.join()

    assert found == ["first", "first"]


def test_a_page_that_is_sent_again_later_starts_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = MovableClock(monkeypatch, once)
    names = iter("abc")
    starting = Once()

    first, at_once = (starting.name("key", lambda: next(names)) for _ in range(2))
    clock.move(once.SECONDS)
    later = starting.name("key", lambda: next(names))

    assert (first, at_once, later) == ("a", "a", "b")


def test_what_a_child_printed_that_could_not_start_is_shown_whole(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = r"print('\x1b[31mno <plugin>\x1b[0m'); raise SystemExit(2)"
    start_instead(monkeypatch, fails)
    name = browser.post("/new", data={**MAIL, "do": "start"}).headers["location"].removeprefix("/runs/")

    wait_for(lambda: 'data-state="ended"' in browser.get(f"/runs/{name}/state").text, "the end")

    said = browser.get(f"/runs/{name}/state").text
    assert "The run could not start: devhost ended with exit code 2." in said
    assert ">no &lt;plugin&gt;</pre>" in said


@pytest.mark.parametrize("has_trace", [False, True])
def test_a_run_that_is_killed_before_its_first_question_says_so(
    browser: TestClient, children: Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_trace: bool
) -> None:
    start_instead(monkeypatch, "import time; time.sleep(3600)")
    name = browser.post("/new", data={**MAIL, "do": "start"}).headers["location"].removeprefix("/runs/")
    if has_trace:
        with tracing(tmp_path / f"{name}.jsonl", query=None):
            pass
    assert "not asked yet" in words(browser.get(f"/runs/{name}").text)
    assert browser.post(f"/runs/{name}/steer", data={"do": "kill"}).status_code == 303
    wait_for(lambda: not children.is_running(name), "the end")

    page, listed = (words(browser.get(path).text) for path in (f"/runs/{name}", "/list"))
    monkeypatch.setattr(children, "_children", {})
    by_another_console = words(browser.get(f"/runs/{name}").text)

    assert "The strategy was never asked." in page
    assert "The run was killed before the strategy was asked." in page
    assert "The run ended before the strategy was asked" in by_another_console
    assert "Run again with one thing changed" not in page
    assert "Start the same again" in page
    assert "killed" in listed.partition("Confirm the choir's booking.")[2]


def test_the_command_of_the_page_is_one_of_devhost(browser: TestClient) -> None:
    page = browser.post("/new", data={**APPROVED, "p.instruction": "It's brief", "was.instruction": "x", "do": "load"})
    command = re.search(r'aria-label="Command">([^<]+)</pre>', page.text)
    assert command
    program, name, *_ = shlex.split(command[1].replace("&#39;", "'").replace("&#34;", '"'))

    assert (program, name in COMMANDS) == ("devhost", True)
