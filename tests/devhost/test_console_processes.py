"""Open conversations hold processes: so many go on at once, until a person ends one."""

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


def test_when_too_many_go_on_nothing_starts_and_the_page_leads_to_them(console: ConsoleClient) -> None:
    going = [console.start("approval", **MAIL), console.start("question", **QUICK)]
    files = set(console.console.folder.path.iterdir())

    page = console.post("/new", 400, do="start", **QUICK)

    assert "2 runs go on, and no more may" in page
    assert re.findall(r'<li><a href="/runs/([^"]+)">', page) == going
    assert set(console.console.folder.path.iterdir()) == files
    assert "can go on" in words(console.get("/"))


def test_a_conversation_is_ended_and_then_deleted(console: ConsoleClient, tmp_path: Path) -> None:
    name = console.start("question", **QUICK)
    assert "end it before you delete it" in console.post("/delete", 400, run=name)

    console.post(f"/runs/{name}/steer", do="end")
    wait_for(lambda: console.state(name) == "over", "the end")
    assert "The conversation has ended." in words(console.get(f"/runs/{name}"))
    console.post("/delete", run=name)

    assert (tmp_path / "deleted" / f"{name}.jsonl").is_file()
    assert not list(tmp_path.glob(f"{name}*"))
