"""What the console's forms say of a mistake, of a check without one, and of what they are filled with at first."""

import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Literal

import pytest

from devhost.console.runs import Setup
from support.console import ConsoleClient, words
from support.plugins import CHARTS, PUPPET, TOOLBOX
from tests.devhost import ROOT

PUPPETS = {"source": "script", "script": str(TOOLBOX / "script.yaml"), "tools": str(TOOLBOX), "p.query": "[]"}


@pytest.fixture(autouse=True)
def without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CHARTS_API_KEY", "CHARTS_REGION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[ConsoleClient]:
    console = ConsoleClient(tmp_path, ROOT)
    yield console
    console.close()


@pytest.fixture
def puppet(tmp_path: Path) -> Iterator[ConsoleClient]:
    console = ConsoleClient(tmp_path, PUPPET)
    yield console
    console.close()


def above(page: str) -> tuple[str, list[tuple[str, str, str]]]:
    """The sentence above the form, and the target, label and sentence of each mistake in it."""
    box = re.search(r'<div class="problem-text mistakes"[^>]*><p>(.*?)</p>(.*?)</div>', page, re.DOTALL)
    assert box, page
    links = re.findall(r'<li><a href="#([^"]+)">(.*?)</a>: (.*?)</li>', box[2], re.DOTALL)
    for target, *_ in links:
        assert f' id="{target}"' in page, f"{target} leads nowhere"
    return box[1], [(target, label, unescape(sentence)) for target, label, sentence in links]


def test_an_empty_question_is_one_mistake_beside_its_field(puppet: ConsoleClient) -> None:
    page = puppet.post("/new", 422, do="start", **{**PUPPETS, "p.query": " "})

    assert above(page) == (
        "Nothing was started: 1 value is wrong.",
        [("p.query", "Question", "a question needs words")],
    )
    assert re.findall(r'<p class="error" id="([^"]+)">', page) == ["wrong-p.query"]


def test_each_wrong_value_is_named_above_the_form_with_a_link_to_its_field(ours: ConsoleClient) -> None:
    wrong = {"p.answer_schema": '{"a": ', "p.maximum_iterations": "0", "p.query": ""}

    told, mistakes = above(ours.post("/new", 422, do="start", **wrong))

    assert told == "Nothing was started: 3 values are wrong."
    assert {target: label for target, label, _ in mistakes} == {
        "p.query": "Question",
        "p.answer_schema": "Answer schema",
        "p.maximum_iterations": "Max iterations",
    }
    assert next(sentence for target, _, sentence in mistakes if target == "p.answer_schema").startswith("not JSON: ")


@pytest.mark.parametrize(
    ("given", "target", "label"),
    [
        ({"tools": "/nowhere"}, "tools", "More tool plugins"),
        ({"files": "/nowhere.png"}, "files", "Files"),
        ({"script": "/nowhere.yaml"}, "script", "Script file"),
        ({"plugin": "/nowhere"}, "plugin", "Strategy plugin"),
        ({"source": "none"}, "source", "Scenario"),
        ({"real": "yes"}, "scripted", "Real model"),
    ],
)
def test_the_link_leads_to_what_can_be_corrected(
    puppet: ConsoleClient, given: dict[str, str], target: str, label: str
) -> None:
    told, mistakes = above(puppet.post("/new", 200, do="check", **{**PUPPETS, **given}))

    assert told == "Nothing can start yet: 1 value is wrong."
    assert [each[:2] for each in mistakes] == [(target, label)]


def test_a_check_without_mistakes_says_that_all_fits(puppet: ConsoleClient) -> None:
    chosen, checked = (puppet.post("/new", 200, do=do, **PUPPETS) for do in ("load", "check"))

    assert "Everything fits" not in chosen
    status = re.search(r'role="status">(Everything fits[^<]+)<', checked)
    assert status
    assert status[1] == "Everything fits: Start begins this run."
    assert not list(puppet.console.folder.path.iterdir())


def test_the_first_choice_is_the_example_of_the_demo(ours: ConsoleClient) -> None:
    assert re.findall(r'<option value="([^"]+)" selected>', ours.get("/new"))[1] == "example:helpdesk"


def test_a_credential_that_may_be_missing_is_no_mistake(puppet: ConsoleClient) -> None:
    page = puppet.post("/new", 200, do="check", **{**PUPPETS, "tools": str(CHARTS)})

    assert "CHARTS_API_KEY is not set, and is required" in words(page)
    assert "CHARTS_REGION is optional, and not set" in words(page)
    assert '<span class="error">is not set' not in page.partition("CHARTS_REGION")[2]


def chosen(console: ConsoleClient) -> str:
    plugin = re.search(r'name="plugin" value="([^"]*)"', console.get("/new"))
    assert plugin
    return plugin[1]


def started(folder: Path, name: str, plugin: Path, at: float, kind: Literal["chat", "fork"] = "chat") -> None:
    file = folder / f"{name}.setup.json"
    Setup(kind=kind, question="?", plugin=plugin).write(file)
    os.utime(file, (at, at))


def test_a_new_run_begins_with_the_plugin_that_was_chosen_last(tmp_path: Path) -> None:
    console = ConsoleClient(tmp_path)
    assert not chosen(console)

    started(tmp_path, "first", ROOT, at=1)
    started(tmp_path, "second", PUPPET, at=2)
    started(tmp_path, "fork", ROOT, at=3, kind="fork")
    assert chosen(console) == str(PUPPET)
    assert "gpt5_function_calling" in console.get(f"/new?plugin={ROOT}")

    started(tmp_path, "third", tmp_path / "gone", at=4)
    assert not chosen(console)


def test_a_plugin_of_the_command_line_comes_first_until_another_one_is_chosen(puppet: ConsoleClient) -> None:
    folder = puppet.console.folder.path
    started(folder, "yesterday", ROOT, at=puppet.console.began - 1)
    assert not chosen(puppet)

    started(folder, "today", ROOT, at=puppet.console.began + 1)
    assert chosen(puppet) == str(ROOT)
