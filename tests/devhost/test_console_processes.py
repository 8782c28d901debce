"""Open conversations hold processes: the console ends one for a new run or a deletion, but none that has work."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost.console.children import Children
from support.console import ConsoleClient, words
from support.plugins import PUPPET, TOOLBOX
from support.waiting import wait_for
from tests.devhost import ROOT

QUICK = {"plugin": str(PUPPET), "source": f"script:{TOOLBOX / 'script.yaml'}", "p.query": "[]"}
MAIL = {"source": "example:injection/mail"}

pytestmark = pytest.mark.processes


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ConsoleClient]:
    console = ConsoleClient(tmp_path, ROOT, Children(most=2))
    yield console
    console.close()


def test_the_conversation_that_has_waited_longest_ends_for_another_and_says_so(console: ConsoleClient) -> None:
    first, second = console.start("question", **QUICK), console.start("question", **QUICK)
    assert "can go on" in words(console.get("/"))
    console.post(f"/runs/{first}/steer", do="say", words="[]", told="1")
    wait_for(lambda: console.state(first) == "question", "the answer")

    console.start("question", **QUICK)

    assert "The console ended this conversation, so that another run" in console.get(f"/runs/{second}")
    assert console.state(first) == "question"


def test_what_waits_for_approval_is_not_ended_but_named_with_its_page(console: ConsoleClient) -> None:
    waiting = [console.start("approval", **MAIL) for _ in range(2)]

    page = console.post("/new", 400, do="start", **QUICK)

    assert "2 runs go on, and no more may" in page
    assert re.findall(r'<li><a href="/runs/([^"]+)">', page) == waiting


def test_a_conversation_that_waits_is_deleted_and_its_process_ends(console: ConsoleClient, tmp_path: Path) -> None:
    name = console.start("question", **QUICK)

    assert "Its conversation is open, and ends with this." in words(console.get(f"/delete?run={name}"))
    assert console.post("/delete", run=name) == "/"

    assert (tmp_path / "deleted" / name / f"{name}.jsonl").is_file()
    assert not list(tmp_path.glob(f"{name}*"))
