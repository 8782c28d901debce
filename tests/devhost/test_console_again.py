"""The console's form of a run that is run again: what there is to change, what cannot be, and what starts."""

import re
import shlex
from collections.abc import Iterator

import pytest

from devhost.cli.commands import main
from devhost.console.runs import SETUP, Setup
from support.console import ConsoleClient, words
from support.lending import Lender
from tests.devhost import ROOT

AGAIN = "/runs/before/again"


@pytest.fixture(scope="module")
def console(lender: Lender, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleClient]:
    """With a run of the help desk: two searches in the first round, an answer in the second."""
    folder = tmp_path_factory.mktemp("again")
    with lender.lends():
        assert main(["run", "--example", "helpdesk", "--json", "--trace", str(folder / "before.jsonl")]) == 0
    console = ConsoleClient(folder, ROOT)
    yield console
    console.close()


@pytest.fixture(autouse=True)
def without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def started(console: ConsoleClient) -> set[str]:
    return set(console.console.folder.names()) - {"before"}


def test_the_form_has_the_rounds_the_values_of_the_run_and_the_tools_that_would_run(console: ConsoleClient) -> None:
    html = console.get(AGAIN)
    page = words(html)

    assert f'href="{AGAIN}"' in console.get("/runs/before")
    assert "after round 1, which calls search_manual, search_manual" in page
    assert "after round 2, which answers" in page
    assert "You answer customers of Fumikura" in re.findall(r'name="p\.instruction"[^>]*>\n?([^<]+)<', html)[0]
    assert re.search(r'name="p\.maximum_iterations" value="4"', html)
    assert "These will really run: search_manual, search_qa" in page


@pytest.mark.parametrize(
    ("field", "given", "sentence"),
    [
        ("at", {"at": "7"}, "there is no round '7' to go on from; there are 0 to 2"),
        ("turn", {"turn": "2"}, "there is no turn '2'; there are 1 to 1"),
        ("p.maximum_iterations", {"p.maximum_iterations": "many"}, "maximum_iterations"),
        ("script", {"answers": "script", "script": "no.yaml"}, "no.yaml"),
        ("script", {"answers": "script"}, "name the file"),
        ("model", {"answers": "real"}, "a real model needs OPENAI_API_KEY"),
    ],
)
def test_a_mistake_is_said_beside_its_field_and_nothing_starts(
    console: ConsoleClient, field: str, given: dict[str, str], sentence: str
) -> None:
    before = started(console)

    html = console.post(AGAIN, 422, **given)

    told = re.findall(rf'<p class="error" id="wrong-{field}">(.*?)</p>', html, re.DOTALL)
    assert told, html
    assert sentence in told[0].replace("&#39;", "'")
    link = re.search(r'Nothing was started: 1 value is wrong\.</p><ul>\s*<li><a href="#([^"]+)">', html)
    assert link
    assert f'id="{link[1]}"' in html
    assert started(console) == before


def test_only_what_was_changed_is_sent_and_both_runs_stand_side_by_side(console: ConsoleClient) -> None:
    text = "Be brief.\r\nAnswer <i>once</i>."
    kept = {"p.maximum_iterations": "4", "was.maximum_iterations": "4"}

    there = console.post(AGAIN, 303, **{"at": "1", "p.instruction": text, **kept})

    name = there.removeprefix("/compare/before/")
    assert started(console) >= {name}
    setup = Setup.read(console.console.folder.beside(name, SETUP))
    assert setup.parameters == {"instruction": "Be brief.\nAnswer <i>once</i>."}
    assert (setup.kind, setup.of, setup.at, setup.live_tools) == ("fork", "before", 1, False)
    assert console.get(f"{there}/events").endswith("event: end\ndata: \n\n")  # until it has ended
    page = console.get(there)
    assert "The second run repeats round 1 of the first." in words(page)
    assert "In the second run, the model's turns are recorded ones:" in words(page)
    assert "A real model shows what another instruction leads to" in words(console.get(AGAIN))
    assert "Answer &lt;i&gt;once&lt;/i&gt;." in page
    assert "tool calls" in words(page)
    command = words(page).partition("The same in a terminal")[2].partition("--scripted")[0]
    assert shlex.split(command)[:5] == ["devhost", "fork", str(console.console.folder.trace("before")), "--at", "1"]


def test_tools_run_only_if_that_was_chosen(console: ConsoleClient) -> None:
    page = words(console.post(AGAIN, 200, do="check", live="yes"))

    assert "--live-tools --example helpdesk" in page


def test_the_command_is_that_of_the_form(console: ConsoleClient) -> None:
    changed = {"at": "1", "p.instruction": "Be brief."}

    shown = console.post(f"{AGAIN}/command", 200, **changed)

    assert shlex.split(shown)[:5] == ["devhost", "fork", str(console.console.folder.trace("before")), "--at", "1"]
    assert "--instruction 'Be brief.'" in shown
    assert console.post(f"{AGAIN}/command", 200, **{**changed, "at": "7"}) == ""


def test_a_check_without_mistakes_says_that_all_fits(console: ConsoleClient) -> None:
    assert 'role="status">Everything fits: Run again starts this run.<' in console.post(AGAIN, 200, do="check")


def test_a_reset_field_has_the_value_of_the_run_again(console: ConsoleClient) -> None:
    changed = {"p.instruction": "Something else", "was.instruction": "Was"}

    assert "Something else</textarea>" in console.post(AGAIN, 200, do="check", **changed)
    assert "Something else" not in console.post(AGAIN, 200, do="reset instruction", **changed)


def test_a_run_that_is_not_there_cannot_be_run_again(console: ConsoleClient) -> None:
    assert "there is no run" in console.get("/runs/none/again", status=404)
