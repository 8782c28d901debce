"""Open conversations hold processes: the console ends one for a new run or a deletion, but none that has work."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from devhost.console.children import Children
from devhost.console.runs import RunFolder
from devhost.console.server.app import application
from devhost.console.views.console import Console
from support.console import HOME, PORT, TOKEN, words
from support.plugins import PUPPET, TOOLBOX
from support.waiting import wait_for
from tests.devhost import ROOT

QUICK = {"plugin": str(PUPPET), "source": "script", "script": str(TOOLBOX / "script.yaml"), "p.query": "[]"}
MAIL = {"source": "example:injection/mail"}

pytestmark = pytest.mark.processes


class Browser:
    def __init__(self, folder: Path, children: Children) -> None:
        console = Console(RunFolder(folder), plugin=ROOT, children=children)
        self._client = TestClient(application(console, PORT, TOKEN), base_url=HOME, follow_redirects=False)
        self._client.get(f"/?token={TOKEN}")

    def get(self, path: str) -> str:
        return self._client.get(path).text

    def post(self, path: str, status: int, **form: str) -> str:
        answer = self._client.post(path, data=form, headers={"origin": HOME})
        assert answer.status_code == status, answer.text
        return answer.headers["location"] if status == 303 else answer.text

    def start(self, given: dict[str, str], until: str) -> str:
        """The name of a run that waits."""
        name = self.post("/new", 303, do="start", **given).removeprefix("/runs/")
        self.wait(name, until)
        return name

    def wait(self, name: str, until: str) -> None:
        wait_for(lambda: re.findall(r'data-state="(\w+)"', self.get(f"/runs/{name}/state")) == [until], until)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    children = Children(most=2)
    yield Browser(tmp_path, children)
    children.end()


def test_the_conversation_that_has_waited_longest_ends_for_another_and_says_so(browser: Browser) -> None:
    first, second = browser.start(QUICK, "question"), browser.start(QUICK, "question")
    assert "can go on" in words(browser.get("/"))
    browser.post(f"/runs/{first}/steer", 303, do="say", words="[]", told="1")
    browser.wait(first, "question")

    browser.start(QUICK, "question")

    assert "The console ended this conversation, so that another run" in browser.get(f"/runs/{second}/state")
    browser.wait(first, "question")


def test_what_waits_for_approval_is_not_ended_but_named_with_its_page(browser: Browser) -> None:
    waiting = [browser.start(MAIL, "approval") for _ in range(2)]

    page = browser.post("/new", 400, do="start", **QUICK)

    assert "2 runs go on, and no more may" in page
    assert re.findall(r'<li><a href="/runs/([^"]+)">', page) == waiting


def test_a_conversation_that_waits_is_deleted_and_its_process_ends(browser: Browser, tmp_path: Path) -> None:
    name = browser.start(QUICK, "question")

    assert "Its conversation is open, and ends with this." in words(browser.get(f"/delete?run={name}"))
    assert browser.post("/delete", 303, run=name) == "/"

    assert (tmp_path / "deleted" / name / f"{name}.jsonl").is_file()
    assert not list(tmp_path.glob(f"{name}*"))
