"""The console's forms of a run: made from the strategy's YAML, checked before anything starts, and started."""

import os
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from devhost.console import again
from devhost.console.new_run import NewRun, form_of
from support.console import ConsoleClient, start_instead, words
from support.plugins import CHARTS, GATEWAY, PUPPET, TOOLBOX
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
def before(help_desk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleClient]:
    folder = tmp_path_factory.mktemp("again")
    shutil.copy(help_desk, folder / "before.jsonl")
    console = ConsoleClient(folder, ROOT)
    yield console
    console.close()


def opened(**given: str) -> NewRun:
    return form_of({**PUPPETS, **given}, None)


def ours(**given: str) -> NewRun:
    return form_of({**APPROVED, **given}, ROOT)


def texts(form: NewRun) -> dict[str, str]:
    return {field.name: field.text for field in form.fields if field.text}


def refused(page: str) -> tuple[str, str, str]:
    """The target, which is an element of the page, the label and the sentence of what is wrong above the form."""
    found = re.search(r'<a href="#([^"]+)">([^<]*)</a>: ([^<]*)</p></div>', page)
    assert found, page
    assert f' id="{found[1]}"' in page
    return found[1], found[2], unescape(found[3])


# --- fields ----------------------------------------------------------------------------------------------------------


def test_each_declared_parameter_is_a_field_with_what_the_yaml_says_of_it() -> None:
    fields = {field.name: field for field in opened().fields}

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
    assert fields["rounds"].declared.default == 3
    assert fields["mood"].options == [("calm", "Calm"), ("wild", "Wild")]
    assert fields["loud"].declared.label.en_US == "Loud"


def test_the_fields_hold_what_the_scenario_sets_and_nothing_of_it_is_a_change() -> None:
    form = ours()

    assert (texts(form)["approval_required"], texts(form)["maximum_iterations"]) == ("request_order", "8")
    assert form.setup.question.startswith("Café Lindqvist, C-3001. Please order 40 packs")
    assert (form.mistake, form.changed) == (None, {})
    form.setup.check(Path)
    typed = {f"p.{name}": text for name, text in texts(form).items()}
    assert ours(**{**typed, "p.answer_criteria": "short"}).changed == {"p.answer_criteria": "short"}


# --- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "target", "sentence"),
    [
        ({"p.rounds": "many"}, "p.rounds", "rounds must be a number, got 'many'"),
        ({"p.query": "  "}, "p.query", "the question is empty"),
        ({"plugin": str(TOOLBOX)}, "plugin", "has no agent strategy"),
        ({"plugin": "/nowhere"}, "plugin", "/nowhere is not a plugin: manifest.yaml is missing"),
        ({"source": "script:/nowhere.yaml", "p.query": "?"}, "source", "/nowhere.yaml"),
        ({"source": "flow:/nowhere.yml", "p.query": "?"}, "source", "/nowhere.yml"),
        ({"tools": "/nowhere"}, "tools", "/nowhere is not a plugin"),
        ({"tools": str(CHARTS)}, "tools", "CHARTS_API_KEY set in its environment"),
        ({"real": "plugin", "model_plugin": str(TOOLBOX), "p.query": "?"}, "model_plugin", "has no models"),
        ({"real": "plugin", "model_plugin": str(GATEWAY), "p.query": "?"}, "real", "give the name of the model"),
        ({"mcp": "a=one\na=two", "p.query": "?"}, "mcp", "a"),
        ({"files": "/nowhere.png"}, "files", "/nowhere.png"),
        ({"source": "none", "p.query": "?"}, "real", "no model is configured"),
    ],
)
def test_what_cannot_be_is_said_with_a_link_to_its_field_and_nothing_starts(
    console: ConsoleClient, given: dict[str, str], target: str, sentence: str
) -> None:
    page = console.post("/new", 422, **{**PUPPETS, **given})

    found = refused(page)
    assert found[0] == target
    assert sentence in found[2]
    assert list(console.console.folder.path.iterdir()) == []


def test_keys_and_credentials_stay_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("OPENAI_API_KEY", "sk-secret"), ("CHARTS_API_KEY", "s3cret")):
        monkeypatch.setenv(name, value)
    asked = {"real": "yes", "source": "none", "p.query": "?", "tools": str(CHARTS)}

    setup = opened(**asked, completion="verbosity=low").setup
    setup.check(Path)

    assert os.environ["CHARTS_API_KEY"] == "s3cret", "reading took nothing out of it"
    assert "secret" not in setup.model_dump_json()
    assert "--completion" in setup.arguments(Path)


# --- what a new form begins with --------------------------------------------------------------------------------------


def test_the_first_choice_is_the_first_example_of_the_folder(console: ConsoleClient) -> None:
    assert re.findall(r'<option value="([^"]+)" selected>', console.get("/new"))[0] == "example:answers"


# --- runs that are started --------------------------------------------------------------------------------------------


def test_what_a_child_printed_that_could_not_start_is_shown_whole(
    console: ConsoleClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_instead(monkeypatch, r"print('\x1b[31mno <plugin>\x1b[0m'); raise SystemExit(2)")

    said = console.get(f"/runs/{console.start('over', **MAIL)}")

    assert "The run ended before the strategy was asked." in said
    assert ">no &lt;plugin&gt;</pre>" in said


# --- a run once more --------------------------------------------------------------------------------------------------


def test_the_form_has_the_rounds_and_the_values_of_the_run(before: ConsoleClient) -> None:
    html = before.get(AGAIN)
    page = words(html)

    assert f'href="{AGAIN}"' in before.get("/runs/before")
    assert "after round 1, which calls search_manual, search_manual" in page
    assert "You answer customers of Fumikura" in re.findall(r'name="p\.instruction"[^>]*>\n?([^<]+)<', html)[0]
    assert re.search(r'name="p\.maximum_iterations" value="4"', html)
    assert "A real model shows what another instruction leads to" in page
    assert "there is no run" in before.get("/runs/none/again", status=404)


@pytest.mark.parametrize(
    ("target", "given", "sentence"),
    [
        ("p.maximum_iterations", {"p.maximum_iterations": "many"}, "maximum_iterations"),
        ("script", {"answers": "script", "script": "no.yaml"}, "no.yaml"),
        ("script", {"answers": "script"}, "choose the script"),
    ],
)
def test_what_a_fork_cannot_be_is_said_with_a_link_to_its_field_and_nothing_starts(
    before: ConsoleClient, target: str, given: dict[str, str], sentence: str
) -> None:
    names = before.console.folder.names()

    found = refused(before.post(AGAIN, 422, **given))

    assert (found[0], before.console.folder.names()) == (target, names)
    assert sentence in found[2]


def test_a_fork_starts_with_what_was_changed(before: ConsoleClient) -> None:
    plan = again.form_of(before.console, "before", {"p.instruction": "It's brief", "at": "1", "live": "yes"})
    trace = str(before.console.folder.trace("before"))

    assert plan.setup.arguments(before.console.folder.trace) == (
        *("fork", trace, "--at", "1", "--instruction", "It's brief"),
        *("--live-tools", "--plugin", str(ROOT), "--scripted"),
    )
    plan.setup.check(before.console.folder.trace)
