"""What a killed console started, in the next console: it goes on, says so, and can be stopped."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from devhost.console.children.left import left_process, note
from devhost.console.runs.folder import OUTPUT, SETUP
from devhost.console.runs.setup import Setup
from tests.devhost.conftest import PUPPET
from tests.devhost.console import ConsoleClient, words
from tests.devhost.waiting import wait_for

CASE = {"name": "a", "query": "[]", "turns": [{"text": "x"}], "expect": {"text": {"contains": "x"}}}


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConsoleClient]:
    """The console before; its processes write nothing, and end when they are stopped."""
    monkeypatch.setattr("devhost.console.children.child.START", "import time; time.sleep(3600)")
    console = ConsoleClient(tmp_path, PUPPET)
    yield console
    console.close()


@pytest.fixture
def console(killed: ConsoleClient) -> ConsoleClient:
    return ConsoleClient(killed.console.folder.path, PUPPET)


@pytest.mark.parametrize("setup", [Setup(question="?"), Setup(kind="fork", of="before")], ids=["chat", "fork"])
def test_a_run_goes_on_and_is_stopped(killed: ConsoleClient, console: ConsoleClient, setup: Setup) -> None:
    Setup().write(killed.console.folder.beside("before", SETUP))
    name = killed.console.start("", setup)
    child = killed.console.children.of(name)
    assert child is not None

    page = words(console.get(f"/runs/{name}"))
    refused = console.post(f"/runs/{name}/steer", 400, do="say", words="More?", told="0")
    console.post(f"/runs/{name}/steer", do="stop")
    wait_for(lambda: child.exit_code is not None, "the end")

    assert f"The run goes on in process {child.pid}." in page
    assert "start it again" in refused
    assert "The run ended before the strategy was asked" in words(console.get(f"/runs/{name}/state"))


def test_an_evaluation_goes_on_is_not_started_twice_and_is_stopped(
    killed: ConsoleClient, console: ConsoleClient, tmp_path: Path
) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump({"cases": [CASE]}))
    killed.post("/suite/run", file=str(file))
    (child,) = killed.console.children._children.values()

    going_on = words(console.get(f"/suite?file={file}"))
    console.post("/suite/run", file=str(file))
    assert console.console.children._children == {}
    console.post("/suite/stop", file=str(file))
    wait_for(lambda: child.exit_code is not None, "the end")

    assert "running 0 of" in going_on
    assert "running" not in words(console.get(f"/suite?file={file}"))


def test_another_process_with_the_same_number_is_left_alone(tmp_path: Path) -> None:
    output = tmp_path / f"run{OUTPUT}"

    assert left_process(output) is None
    note(os.getpid(), ("fork", "before.jsonl"), output)
    assert left_process(output) is None
    (tmp_path / "run.process.json").write_text(json.dumps({"pid": "none"}))
    assert left_process(output) is None
