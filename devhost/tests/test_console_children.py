"""The console's children: real processes, which end with all that they started."""

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from devhost.console.children import Child, Children
from devhost.errors import ConsoleError
from support.console import start_instead
from support.plugins import PUPPET, TOOLBOX
from support.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.processes
CHAT = ("chat", "--plugin", str(PUPPET), "--tools", str(TOOLBOX))


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


def start(
    children: Children, folder: Path, name: str = "run", script: Path = TOOLBOX / "script.yaml"
) -> tuple[Child, Path]:
    trace = folder / f"{name}.jsonl"
    options = ("--script", str(script), "--scripted", "--trace", str(trace), "--json-lines", "--no-color")
    arguments = (*CHAT, *options)
    return children.start(name, arguments, folder / f"{name}.txt"), trace


def written(file: Path) -> str:
    """So far: a letter of several bytes may be there in part."""
    return file.read_bytes().decode(errors="replace") if file.is_file() else ""


def ends(trace: Path) -> int:
    return written(trace).count('"event": "end"')


def test_a_killed_child_leaves_no_plugin_and_no_zombie(children: Children, tmp_path: Path) -> None:
    child, trace = start(children, tmp_path)
    assert child.tell(asked({"say": "two\nlines"}), after=0)
    assert not child.tell(asked({"say": "of another window"}), after=0)
    wait_for(lambda: ends(trace) == 1, "the turn")
    leader = child._process.pid
    assert len(processes_of(leader)) == 3, "devhost, strategy, tools"

    child.kill()

    wait_for(lambda: child.exit_code == -9, "the end")
    wait_for(lambda: not processes_of(leader), "the end of the plugins")
    assert not Path(f"/proc/{leader}").exists()
    assert not child.tell(asked({"say": "too late"}))
    assert child.told == 1
    wait_for(lambda: child._process.stdin is None or child._process.stdin.closed, "the end of its input")


def test_stop_ends_a_turn_and_has_no_effect_between_two(children: Children, tmp_path: Path) -> None:
    slow = tmp_path / "slow.yaml"
    turns = [{"text": ["tick "] * 2 * PATIENCE, "delay": 0.5}]
    slow.write_text(yaml.safe_dump({"query": "?", "turns": turns, "otherwise": turns}))
    child, trace = start(children, tmp_path, script=slow)
    child.tell(asked({"say": "first"}))
    wait_for(lambda: ends(trace) == 1, "the first turn")

    child.stop()
    child.tell(asked({"say": "second"}))
    wait_for(lambda: ends(trace) == 2, "the second turn")

    child.tell(asked({"ask": "x"}, {"say": "never said"}))
    wait_for(lambda: "tick" in written(child.output), "the third turn")
    child.close_input()
    child.stop()
    wait_for(lambda: child.exit_code == 0, "the end")
    assert "stopped: 1 model call" in written(child.output)


def test_a_child_that_does_not_read_holds_nothing_up(
    children: Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe holds 64 KiB."""
    start_instead(monkeypatch, "import time; time.sleep(3600)")
    child, _ = start(children, tmp_path)
    done: list[bool] = []

    def tell() -> None:
        done.append(child.tell(asked({"say": "x" * 1_000_000}), after=0))
        done.append(child.tell(asked({"say": "a second question"}), after=1))
        child.close_input()
        done.append(child.tell(asked({"say": "after the end of its input"})))

    threading.Thread(target=tell, daemon=True).start()
    wait_for(lambda: len(done) == 3, "three answers")

    assert (done, child.told) == ([True, True, False], 2)
    child.kill()
    wait_for(lambda: child._process.stdin is None or child._process.stdin.closed, "the end of its input")


def test_of_several_that_ask_at_once_one_is_heard(
    children: Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a double click does."""
    start_instead(monkeypatch, "import time; time.sleep(3600)")
    child, _ = start(children, tmp_path)

    with ThreadPoolExecutor() as clicks:
        told = list(clicks.map(lambda _: child.tell(asked({"say": "x"}), after=0), range(20)))

    assert sorted(told) == [*[False] * 19, True]
    assert child.told == 1
    child.kill()


def test_a_child_that_is_told_nothing_ends(tmp_path: Path) -> None:
    script = ("--script", str(TOOLBOX / "script.yaml"), "--scripted")
    child = Child((*CHAT, *script, "--json-lines"), tmp_path / "output.txt", idle_seconds=0.01)
    wait_for(lambda: child.exit_code == 0, "the end")


def test_only_so_many_go_on_at_once(children: Children, tmp_path: Path) -> None:
    first, _ = start(children, tmp_path, "first")
    with pytest.raises(ConsoleError, match="first goes on already"):
        start(children, tmp_path, "first")
    assert children.of("first") is first
    start(children, tmp_path, "second")
    with pytest.raises(ConsoleError, match="2 runs go on, and no more may: end one of first, second"):
        start(children, tmp_path, "third")

    first.kill()
    wait_for(lambda: first.exit_code is not None, "the end of the first")
    start(children, tmp_path, "third")

    leaders = [child._process.pid for child in children._children.values()]
    children.end()
    assert None not in [child.exit_code for child in children._children.values()]
    assert not any(map(processes_of, leaders))


def test_an_argument_that_no_command_can_have_is_a_sentence(children: Children, tmp_path: Path) -> None:
    with pytest.raises(ConsoleError, match=r"the command cannot be started: .*too long"):
        children.start("run", ("chat", "--param", "instruction=" + "x" * 200_000), tmp_path / "output.txt")
    assert children.of("run") is None
