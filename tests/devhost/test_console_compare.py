"""The console's page of two runs beside each other."""

import fcntl
import json

import pytest

from devhost.cli.commands import main
from devhost.console.folder import OUTPUT
from devhost.console.setup import SETUP, Setup
from devhost.console.web import event
from support.console import ConsoleClient, words
from support.lending import Lender
from tests.devhost.test_fork import LATER
from tests.devhost.test_recording import script


@pytest.fixture(scope="module")
def console(lender: Lender, tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """A run of the help desk; forks of it, whose models search for something else; one that was refused."""
    folder = tmp_path_factory.mktemp("compare")
    later = script(folder / "later.yaml", query="More?", turns=LATER)
    before, after = folder / "before.jsonl", folder / "after.jsonl"
    with lender.lends():
        assert main(["run", "--example", "helpdesk", "--json", "--trace", str(before)]) == 0
        changed = ("--instruction", "Be <b>brief</b>.", "--script", str(later), "--live-tools")
        assert main(["fork", str(before), "--at", "1", *changed, "--json", "--trace", str(after)]) == 0
    values = {"at": "1", "source": "example:helpdesk", "script": str(later), "live": "yes"}
    for name in ("after", "refused"):
        Setup(kind="fork", of="before", values=values).write(folder / f"{name}{SETUP}")
    (folder / f"refused{OUTPUT}").write_text("Error: --param <i>colour</i>\n")
    header, rest = after.read_bytes().split(b"\n", 1)
    asked = json.loads(header)
    asked["model"]["scripted"] = False
    (folder / "real.jsonl").write_bytes(b"\n".join([json.dumps(asked).encode(), rest]))
    return ConsoleClient(folder)


def test_two_runs_stand_beside_each_other_with_what_differs_marked(console: ConsoleClient) -> None:
    html = console.get("/compare/before/after")
    page = words(html)

    assert "The second run repeats round 1 of the first." in page
    assert "In the second run, the model's turns are those of a script: a changed instruction" in page
    assert '<td class="came">' in html
    assert "Be <b>brief</b>." in page  # as text, of the changed instruction
    assert "<b>brief</b>" not in html
    assert "completion tokens" in page


@pytest.mark.parametrize("other", ["before", "real"])
def test_nothing_is_said_of_turns_that_are_the_same_or_those_of_a_real_model(
    console: ConsoleClient, other: str
) -> None:
    assert "the model's turns are" not in words(console.get(f"/compare/before/{other}"))


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


def test_a_run_that_only_waits_for_a_question_does_not_run(console: ConsoleClient) -> None:
    """Another process holds its trace open, as a chat does between two turns."""
    trace = console.console.folder.trace("after")
    with trace.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        page = words(console.get("/compare/before/after"))

    assert "can go on" in page
    assert "The second run goes on" not in page


def test_the_events_of_a_pair_that_ended_are_the_page_and_an_end(console: ConsoleClient) -> None:
    (name, part), end = console.events("/compare/before/after/events")

    assert (name, end) == ("part", ("end", ""))
    assert "completion tokens" in part


def test_no_text_ends_an_event_or_begins_another_one() -> None:
    sent = event("part", "one\r\ntwo\revent: end\n\nthree")

    assert sent == "event: part\ndata: one\ndata: two\ndata: event: end\ndata: \ndata: three\n\n"
