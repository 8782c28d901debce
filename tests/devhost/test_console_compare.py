"""The console's page of two runs beside each other."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.console.pages.render import event
from devhost.console.runs import OUTPUT, SETUP, Setup
from support.console import ConsoleClient, words
from support.lending import Lender
from tests.devhost.test_fork import LATER
from tests.devhost.test_recording import script

NAMES = ("before", "after")


@pytest.fixture(scope="module")
def runs(lender: Lender, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the help desk; a fork of it whose model searches for something else; and two that have no trace."""
    folder = tmp_path_factory.mktemp("compare")
    later = script(folder / "later.yaml", query="More?", turns=LATER)
    before, after = (str(folder / f"{name}.jsonl") for name in NAMES)
    with lender.lends():
        assert main(["run", "--example", "helpdesk", "--json", "--trace", before]) == 0
        changed = ("--instruction", "Be <b>brief</b>.", "--script", str(later), "--live-tools")
        assert main(["fork", before, "--at", "1", *changed, "--json", "--trace", after]) == 0
    setup = Setup(kind="fork", of="before", at=1, example="helpdesk", script=later, live_tools=True)
    setup.write(folder / f"after{SETUP}")
    setup.write(folder / f"refused{SETUP}")
    (folder / f"refused{OUTPUT}").write_text("Error: --param <i>colour</i>\n")
    return folder


@pytest.fixture
def console(runs: Path) -> Iterator[ConsoleClient]:
    console = ConsoleClient(runs)
    yield console
    console.close()


def test_two_runs_stand_beside_each_other_with_what_differs_marked(console: ConsoleClient) -> None:
    html = console.get("/compare/before/after")
    page = words(html)

    assert "The second run repeats round 1 of the first." in page
    assert "In the second run, the model's turns are those of a script: a changed instruction" in page
    assert "<ins>" in html
    assert "Be <b>brief</b>." in page  # as text, of the changed instruction
    assert "<b>brief</b>" not in html
    assert '{"language": "en", "terms": "invoices"}' in page
    assert "completion tokens" in page


def test_nothing_is_said_of_recorded_turns_when_the_instruction_is_the_same(console: ConsoleClient) -> None:
    assert "the model's turns are" not in words(console.get("/compare/before/before"))


def test_nothing_is_said_of_recorded_turns_when_a_real_model_was_asked(console: ConsoleClient, runs: Path) -> None:
    header, rest = (runs / "after.jsonl").read_bytes().split(b"\n", 1)
    asked = json.loads(header)
    asked["model"]["scripted"] = False
    (runs / "real.jsonl").write_bytes(b"\n".join([json.dumps(asked).encode(), rest]))

    assert "the model's turns are" not in words(console.get("/compare/before/real"))


def test_calls_that_ran_are_named_and_those_of_the_past_are_not(console: ConsoleClient) -> None:
    page = words(console.get("/compare/before/after"))
    named = page.partition("Calls of tools that ran:")[2].partition("Changed")[0]

    assert '{"language": "en", "terms": "invoices"}' in named
    assert named.count("search_manual") == 2  # of the round that stayed there were two, too


def test_runs_of_the_list_are_compared_the_older_one_first(console: ConsoleClient) -> None:
    assert console.leads_to("/compare?run=after&run=before") == "/compare/before/after"
    for odd in ("a%2Fb", "before%3Fx=1", ".."):
        assert "there is no run" in console.get(f"/compare?run={odd}&run=before", status=404)
    assert "choose two" in console.get("/compare?run=after", status=400)
    assert "there is no run" in console.get("/compare/before/none", status=404)


def test_a_run_that_was_refused_says_why(console: ConsoleClient) -> None:
    html = console.get("/compare/before/refused")

    assert "ended before its strategy was asked" in html
    assert "Error: --param &lt;i&gt;colour&lt;/i&gt;" in html


def test_the_events_of_a_pair_that_ended_are_the_page_and_an_end(console: ConsoleClient) -> None:
    sent = console.get("/compare/before/after/events")

    assert sent.startswith("event: part\ndata: ")
    assert sent.endswith("event: end\ndata: \n\n")
    assert "Calls of tools that ran" in sent


def test_no_text_ends_an_event_or_begins_another_one() -> None:
    sent = event("part", "one\r\ntwo\revent: end\n\nthree")

    assert sent == "event: part\ndata: one\ndata: two\ndata: event: end\ndata: \ndata: three\n\n"
