"""`devhost run --watch` runs again when a file of the plugin or the script changes."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from watchfiles import Change

from devhost.cli.run import is_source
from support.plugins import PUPPET, TOOLBOX
from support.waiting import PATIENCE, printed_until

START = "from devhost.__main__ import start; start()"


@pytest.mark.processes
def test_a_changed_script_is_run_again_until_ctrl_c(tmp_path: Path) -> None:
    plugin = Path(shutil.copytree(PUPPET, tmp_path / "a plugin"))
    script = Path(shutil.copy(TOOLBOX / "script.yaml", tmp_path / "script.yaml"))
    command = ["run", "--plugin", str(plugin), "--script", str(script), "--query", "{query}", "--watch", "--no-color"]
    query = '[{"say": "hello"}]'
    waiting = f"waiting for a change in {plugin}, {script}; Ctrl-C ends\n"
    process = subprocess.Popen(
        [sys.executable, "-c", START, *(query if each == "{query}" else each for each in command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
        start_new_session=True,
    )
    try:
        first = printed_until(process, lambda said: waiting in said)
        with touching(plugin / "main.py"):
            changed = printed_until(process, lambda said: "changed: " in said)
        second = printed_until(process, lambda said: waiting in said)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        last, _ = process.communicate(timeout=PATIENCE)

    assert first.startswith(f"watching {plugin}, {script}: a changed file runs the command again, Ctrl-C ends it\n")
    assert "hello" in first
    assert str(plugin / "main.py") in changed
    assert "hello" in second
    assert (process.returncode, last) == (0, "")


@contextmanager
def touching(file: Path) -> Iterator[None]:
    """Again and again: the first time could be before the file is watched."""
    enough = threading.Event()

    def touch() -> None:
        while not enough.wait(0.1):
            file.touch()

    thread = threading.Thread(target=touch)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/p/strategies/a.py", True),
        ("/p/strategies/a.yaml", True),
        ("/p/prompt/a.md", True),
        ("/p/.venv/lib/a.py", False),
        ("/p/strategies/__pycache__/a.pyc", False),
        ("/p/memory.sqlite3", False),
        ("/p/run.jsonl", False),
    ],
)
def test_only_what_a_person_edits_is_watched(path: str, expected: bool) -> None:  # noqa: FBT001 - a table
    assert is_source(Change.modified, path) == expected
