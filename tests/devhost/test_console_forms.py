"""The console's forms of a run: made from the strategy's YAML, checked before anything starts, and started."""

import json
import re
import shlex
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from devhost.cli.commands import COMMANDS, main
from devhost.console.forms import read_values
from devhost.console.new_run import NewRun, planned
from support.console import ConsoleClient, start_instead, words
from support.lending import Lender
from support.plugins import CHARTS, PUPPET, TOOLBOX
from tests.devhost import ROOT

AGAIN = "/runs/before/again"
SCRIPT = str(TOOLBOX / "script.yaml")
PUPPETS = {"plugin": str(PUPPET), "source": f"script:{SCRIPT}", "p.query": "[]"}
MAIL, APPROVED = ({"source": f"example:{name}"} for name in ("injection/mail", "order_entry/approved"))


@pytest.fixture(autouse=True)
def without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CHARTS_API_KEY", "CHARTS_REGION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ConsoleClient]:
    console = ConsoleClient(tmp_path, ROOT)
    yield console
    console.close()


@pytest.fixture(scope="module")
def before(lender: Lender, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleClient]:
    """With a run of the help desk: two searches in the first round, an answer in the second."""
    folder = tmp_path_factory.mktemp("again")
    with lender.lends():
        assert main(["run", "--example", "helpdesk", "--json", "--trace", str(folder / "before.jsonl")]) == 0
    console = ConsoleClient(folder, ROOT)
    yield console
    console.close()


def form_of(environment: dict[str, str] | None = None, **given: str) -> NewRun:
    return planned(read_values({**PUPPETS, **given}.items()), None, environment or {})


def ours(**given: str) -> NewRun:
    return planned(read_values({**APPROVED, **given}.items()), ROOT, {})


def texts(form: NewRun) -> dict[str, str]:
    return {field.name: field.text for field in form.fields if field.text}


def above(page: str) -> tuple[str, list[tuple[str, str, str]]]:
    """The sentence above the form, and the target, label and sentence of each mistake; each leads to an element."""
    box = re.search(r'<div class="problem-text mistakes"[^>]*><p>(.*?)</p>(.*?)</div>', page, re.DOTALL)
    assert box, page
    links = re.findall(r'<li><a href="#([^"]+)">(.*?)</a>: (.*?)</li>', box[2], re.DOTALL)
    assert all(f' id="{target}"' in page for target, *_ in links)
    return box[1], [(target, label, unescape(sentence)) for target, label, sentence in links]


def command_in(page: str) -> list[str]:
    found = re.search(r'aria-label="Command">([^<]*)</pre>', page)
    assert found
    return shlex.split(unescape(found[1]))


# --- fields ----------------------------------------------------------------------------------------------------------


def test_each_declared_parameter_is_a_field_with_what_the_yaml_says_of_it() -> None:
    fields = {field.name: field for field in form_of().fields}

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
    assert fields["mood"].options == [("calm", "Calm"), ("wild", "Wild")]
    assert fields["loud"].label == "Loud"


def test_the_fields_hold_what_the_scenario_sets_and_nothing_of_it_is_a_change() -> None:
    form = ours()

    assert texts(form)["approval_required"] == "request_order"
    assert texts(form)["maximum_iterations"] == "8"
    assert form.question is not None
    assert form.question.text.startswith("Café Lindqvist, C-3001. Please order 40 packs")
    assert "request_order" in form.tools
    assert (form.mistakes, form.changed) == ({}, {})
    assert "For what is special" in str({field.name: field.declared.help for field in form.fields}["instruction"])


def test_another_scenario_keeps_what_was_typed_where_it_fits() -> None:
    first = ours()
    held = {f"was.{field.name}": field.base for field in first.fields} | {f"p.{n}": t for n, t in texts(first).items()}
    held |= {"p.instruction": "Be brief.\r\nVery.", "p.answer_criteria": "short"}
    other = planned(read_values({**held, "source": "example:helpdesk"}.items()), ROOT, {})

    assert other.changed == {"p.instruction": "Be brief.\nVery.", "p.answer_criteria": "short"}
    assert "approval_required" not in texts(other), "that was the other scenario's"
    puppet = planned(read_values({**held, **PUPPETS, "p.mood": "cheerful"}.items()), ROOT, {})
    assert texts(puppet) == {"rounds": "2"}, "of its script: it has no such parameters, and no such mood"


# --- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "field", "sentence"),
    [
        ({"p.rounds": "10"}, "p.rounds", "must be at most 9"),
        ({"p.rounds": "many"}, "p.rounds", "rounds must be a number, got 'many'"),
        ({"p.state": "a\0b"}, "p.state", "a NUL character"),
        ({"p.files": "a\0b"}, "p.files", "a NUL character"),
        ({"p.query": "  "}, "p.query", "a question needs words"),
        ({"plugin": str(TOOLBOX)}, "plugin", "has no agent strategy"),
        ({"plugin": "/nowhere"}, "plugin", "/nowhere is not a plugin: manifest.yaml is missing"),
        ({"source": "script:/nowhere.yaml", "p.query": "?"}, "source", "/nowhere.yaml"),
        ({"source": "flow:/nowhere.yml", "p.query": "?"}, "source", "/nowhere.yml"),
        ({"tools": "/nowhere"}, "tools", "/nowhere is not a plugin"),
        ({"tools": str(CHARTS)}, "tools", "CHARTS_API_KEY in the environment"),
        ({"files": "/nowhere.png"}, "files", "/nowhere.png"),
        ({"source": "none", "p.query": "?"}, "source", "without a script only a real model can answer"),
        ({"real": "yes"}, "model", "a real model needs OPENAI_API_KEY or OPENAI_BASE_URL"),
    ],
)
def test_what_cannot_be_is_said_beside_its_field(given: dict[str, str], field: str, sentence: str) -> None:
    form = form_of(None, **given)

    assert list(form.mistakes) == [field]
    assert sentence in form.mistakes[field]
    assert form.command == ""


def test_a_real_model_is_checked_and_its_key_stays_in_the_environment() -> None:
    environment = {"OPENAI_API_KEY": "sk-secret"}
    asked = {"real": "yes", "source": "none", "api": "chat", "p.query": "?"}
    good = form_of(environment, **asked, completion="verbosity=low")

    assert (good.mistakes, good.setup.values["completion"]) == ({}, "verbosity=low")
    assert "sk-secret" not in good.setup.model_dump_json()
    assert "no_such" in form_of(environment, **asked, completion="no_such=1").mistakes["model"]
    assert "there is no API 'x'" in form_of(environment, **{**asked, "api": "x"}).mistakes["model"]


def test_credentials_stay_in_the_environment(console: ConsoleClient) -> None:
    environment = {"CHARTS_API_KEY": "s3cret"}
    given = form_of(environment, tools=str(CHARTS))

    assert given.credentials == (("CHARTS_API_KEY", True, True), ("CHARTS_REGION", False, False))
    assert (given.mistakes, environment) == ({}, {"CHARTS_API_KEY": "s3cret"}), "reading took nothing out of it"
    assert "s3cret" not in repr(given)
    page = console.post("/new", 200, do="load", **{**PUPPETS, "tools": str(CHARTS)})
    assert "CHARTS_API_KEY is not set, and is required" in words(page)
    assert "CHARTS_REGION is optional, and not set" in words(page)


def test_each_wrong_value_is_named_above_the_form_with_a_link_to_its_field(console: ConsoleClient) -> None:
    wrong = {"p.maximum_iterations": "0", "p.query": "", "p.instruction": "<script>"}
    page = console.post("/new", 422, do="start", **wrong)

    told, mistakes = above(page)
    assert told == "Nothing was started: 2 values are wrong."
    labels = {"p.query": "Question", "p.maximum_iterations": "Max iterations"}
    assert {target: label for target, label, _ in mistakes} == labels
    assert {f"wrong-{name}" for name in labels} == set(re.findall(r'<p class="error" id="([^"]+)">', page))
    assert "<script>" not in page.partition("<body")[2]
    assert [file.name for file in console.console.folder.path.iterdir()] == []


# --- what a new form begins with --------------------------------------------------------------------------------------


def test_the_first_choice_is_the_first_example_of_the_folder(console: ConsoleClient) -> None:
    assert re.findall(r'<option value="([^"]+)" selected>', console.get("/new"))[0] == "example:answers"


# --- runs that are started --------------------------------------------------------------------------------------------


def test_what_a_child_printed_that_could_not_start_is_shown_whole(
    console: ConsoleClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_instead(monkeypatch, r"print('\x1b[31mno <plugin>\x1b[0m'); raise SystemExit(2)")

    said = console.get(f"/runs/{console.start('ended', **MAIL)}")

    assert "The run could not start: devhost ended with exit code 2." in said
    assert ">no &lt;plugin&gt;</pre>" in said


# --- a run once more --------------------------------------------------------------------------------------------------


def test_the_form_has_the_rounds_the_values_of_the_run_and_the_tools_that_would_run(before: ConsoleClient) -> None:
    html = before.get(AGAIN)
    page = words(html)

    assert f'href="{AGAIN}"' in before.get("/runs/before")
    assert "after round 1, which calls search_manual, search_manual" in page
    assert "after round 2, which answers" in page
    assert "You answer customers of Fumikura" in re.findall(r'name="p\.instruction"[^>]*>\n?([^<]+)<', html)[0]
    assert re.search(r'name="p\.maximum_iterations" value="4"', html)
    assert "These will really run: search_manual, search_qa" in page
    assert "A real model shows what another instruction leads to" in page
    assert "there is no run" in before.get("/runs/none/again", status=404)


@pytest.mark.parametrize(
    ("field", "given", "sentence"),
    [
        ("at", {"at": "7"}, "there is no round '7' to go on from; there are 0 to 2"),
        ("turn", {"turn": "2"}, "there is no turn '2'; there are 1 to 1"),
        ("p.maximum_iterations", {"p.maximum_iterations": "many"}, "maximum_iterations"),
        ("script", {"answers": "script", "script": "no.yaml"}, "no.yaml"),
        ("script", {"answers": "script"}, "choose the script"),
        ("model", {"answers": "real"}, "a real model needs OPENAI_API_KEY"),
    ],
)
def test_what_a_fork_cannot_be_is_said_beside_its_field_and_nothing_starts(
    before: ConsoleClient, field: str, given: dict[str, str], sentence: str
) -> None:
    names = before.console.folder.names()

    html = before.post(AGAIN, 422, **given)

    told = re.findall(rf'<p class="error" id="wrong-{field}">(.*?)</p>', html, re.DOTALL)
    assert told, html
    assert sentence in unescape(told[0])
    assert above(html)[0] == "Nothing was started: 1 value is wrong."
    assert before.console.folder.names() == names


def test_a_run_without_a_tool_plugin_has_no_live_tools(before: ConsoleClient) -> None:
    trace = before.console.folder.trace("before")
    header, rest = trace.read_bytes().split(b"\n", 1)
    bare = trace.with_stem("bare")
    bare.write_bytes(b"\n".join([json.dumps({**json.loads(header), "example": ""}).encode(), rest]))

    html = before.post("/runs/bare/again", 422, at="1", live="yes", do="start")
    bare.unlink()

    assert "the run names no example and no tool plugin: clear this tick" in html
    assert "--tools DIR" not in html


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_of_a_form_is_one_of_devhost(console: ConsoleClient, before: ConsoleClient) -> None:
    changed = {"p.instruction": "It's brief", "was.instruction": "x", "do": "load"}

    program, name, *given = command_in(console.post("/new", 200, **APPROVED, **changed))
    forked = command_in(before.post(AGAIN, 200, **changed, at="1", live="yes"))

    assert (program, name in COMMANDS) == ("devhost", True)
    assert "instruction=It's brief" in given
    assert forked[:5] == ["devhost", "fork", str(before.console.folder.trace("before")), "--at", "1"]
    assert forked[5:] == ["--instruction", "It's brief", *LIVE, "--plugin", str(ROOT), "--scripted"]
    assert command_in(before.post(AGAIN, 200, **changed, at="7")) == []


LIVE = ("--live-tools", "--example", "helpdesk")
