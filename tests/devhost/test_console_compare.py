"""The console's page of two runs beside each other."""

import shutil
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.console.setup import SETUP, Setup
from support.console import ConsoleClient, words
from support.lending import Lender
from tests.devhost.test_fork import LATER
from tests.devhost.test_recording import script


@pytest.fixture(scope="module")
def console(lender: Lender, help_desk: Path, tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """A run of the help desk; a fork of it, whose model searches for something else."""
    folder = tmp_path_factory.mktemp("compare")
    later = script(folder / "later.yaml", query="More?", turns=LATER)
    before = folder / "before.jsonl"
    after = folder / "after.jsonl"
    shutil.copy(help_desk, before)
    with lender.lends():
        changed = ("--instruction", "Be <b>brief</b>.", "--script", str(later), "--live-tools")
        assert main(["fork", str(before), "--at", "1", *changed, "--json", "--trace", str(after)]) == 0
    values = {"at": "1", "source": "example:helpdesk", "script": str(later), "live": "yes"}
    Setup(kind="fork", of="before", values=values).write(folder / f"after{SETUP}")
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


def test_runs_of_the_list_are_compared_the_older_one_first(console: ConsoleClient) -> None:
    assert console.leads_to("/compare?run=after&run=before") == "/compare/before/after"
    for odd in ("a%2Fb", "before%3Fx=1", ".."):
        assert "there is no run" in console.get(f"/compare?run={odd}&run=before", status=404)
    assert "choose two" in console.get("/compare?run=after", status=400)
    assert "there is no run" in console.get("/compare/before/none", status=404)
