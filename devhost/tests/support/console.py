"""A console without a browser: its application behind starlette's client, which has traded the token already."""

import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from devhost.console.app import application
from devhost.console.children import Children
from devhost.console.folder import RunFolder
from devhost.console.web import Console
from support.waiting import wait_for

PORT = 8765
TOKEN = "t0k3n"
HOME = f"http://127.0.0.1:{PORT}"


class ConsoleClient:
    """Follows no redirect."""

    def __init__(self, runs: Path, plugin: Path | None = None, children: Children | None = None) -> None:
        self.console = Console(RunFolder(runs), plugin, Children() if children is None else children)
        self.client = TestClient(application(self.console, PORT, TOKEN), base_url=HOME, follow_redirects=False)
        self.client.get(f"/?token={TOKEN}")

    def get(self, path: str, status: int = 200) -> str:
        answer = self.client.get(path)
        assert answer.status_code == status, answer.text
        return answer.text

    def leads_to(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def post(self, path: str, status: int = 303, **values: str | Sequence[str]) -> str:
        """Where it leads to, or the page that says why it leads nowhere."""
        given: Mapping[str, str | Sequence[str]] = values
        answer = self.client.post(path, data=dict(given), headers={"origin": HOME})
        assert answer.status_code == status, answer.text
        if status == 303:
            return answer.headers["location"]
        return answer.text

    def state(self, name: str) -> str:
        """What a run waits for, as its page says."""
        found = re.search(r'data-state="(\w+)"', self.get(f"/runs/{name}"))
        assert found
        return found[1]

    def start(self, until: str, **given: str) -> str:
        """The name of a run that the form starts, when its page says what it waits for."""
        name = self.post("/new", 303, do="start", **given).removeprefix("/runs/")
        wait_for(lambda: self.state(name) == until, until)
        return name

    def close(self) -> None:
        self.console.children.end()


def words(html: str) -> str:
    """The text of a page, with one blank between words."""
    reader = _Words()
    reader.feed(html)
    return " ".join(" ".join(reader.found).split())


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def start_instead(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """The console's children run `code` in place of devhost."""

    def command(python: str, _arguments: Sequence[str]) -> list[str]:
        return [python, "-c", code]

    monkeypatch.setattr("devhost.console.children.devhost_command", command)
