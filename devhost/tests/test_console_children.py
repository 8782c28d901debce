"""The console's children: real processes, which end with all that they started."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from devhost.console.children import Child, Children
from devhost.errors import ConsoleError
from support.console import start_instead
from support.plugins import PUPPET, TOOLBOX
from support.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.processes


@pytest.fixture
def children() -> Iterator[Children]:
    children = Children(most=2)
    yield children
    children.end()


def processes_of(leader: int) -> list[int]:
    """Of its session, without those that only wait to be reaped."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and os.getsid(int(entry.name)) == leader:
                    found.append(int(entry.name))
            except (ProcessLookupError, FileNotFoundError):
                continue
    return found


def asked(*steps: object) -> str:
    return json.dumps(json.dumps(steps))


def start(children: Children, folder: Path, name: str = "run", script: Path = TOOLBOX / "script.yaml") -> Child:
    plugins = ("--plugin", str(PUPPET), "--tools", str(TOOLBOX), "--script", str(script), "--scripted")
    trace = ("--trace", str(folder / f"{name}.jsonl"))
    return children.start(name, ("chat", *plugins, *trace, "--json-lines", "--no-color"), folder / f"{name}.txt")


def ends(trace: Path) -> int:
    """A letter of several bytes may be there in part."""
    if trace.is_file():
        return trace.read_bytes().decode(errors="replace").count('"event": "end"')
    return 0


def test_a_child_that_is_ended_leaves_no_plugin(children: Children, tmp_path: Path) -> None:
    child = start(children, tmp_path)
    assert child.tell(asked({"say": "two\nlines"}), after=0)
    assert not child.tell(asked({"say": "of another window"}), after=0)
    wait_for(lambda: ends(tmp_path / "run.jsonl") == 1, "the turn")
    leader = child._process.pid
    assert len(processes_of(leader)) == 3, "devhost, strategy, tools"

    child.end()

    wait_for(lambda: child.exit_code is not None, "the end")
    wait_for(lambda: not processes_of(leader), "the end of the plugins")
    assert not child.tell(asked({"say": "too late"}))
    assert child.told == 1


def test_stop_ends_a_turn_and_the_conversation_goes_on(children: Children, tmp_path: Path) -> None:
    slow = tmp_path / "slow.yaml"
    trace = tmp_path / "run.jsonl"
    turns = [{"text": ["tick "] * 2 * PATIENCE, "delay": 0.5}]
    slow.write_text(yaml.safe_dump({"query": "?", "turns": turns, "otherwise": turns}))
    child = start(children, tmp_path, script=slow)
    child.tell(asked({"ask": "x"}, {"say": "never said"}))
    wait_for(lambda: "tick" in child.output.read_text(errors="replace"), "the first turn")

    child.stop()
    child.tell(asked({"say": "second"}))

    wait_for(lambda: ends(trace) == 2, "the second turn")
    assert "stopped: 1 model call" in child.output.read_text()


def test_only_so_many_go_on_at_once(children: Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_instead(monkeypatch, "import time; time.sleep(3600)")
    first = start(children, tmp_path, "first")
    with pytest.raises(ConsoleError, match="first is already running"):
        start(children, tmp_path, "first")
    start(children, tmp_path, "second")
    with pytest.raises(ConsoleError, match="2 runs are in progress, and no more are allowed: end one of first, second"):
        start(children, tmp_path, "third")

    first.end()
    wait_for(lambda: first.exit_code is not None, "the end of the first")
    start(children, tmp_path, "third")

    children.end()
    assert not any(map(children.is_running, ("first", "second", "third")))
