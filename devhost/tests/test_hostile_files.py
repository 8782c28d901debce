"""Files that somebody else made: they are refused in one sentence, and no reader waits, fills the memory or ends."""

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.console import listing as store
from devhost.console.runs import OUTPUT, SETUP, TRACE, Setup
from devhost.errors import DeclarationError
from devhost.text import MOST_BYTES, read_yaml
from support.console import ConsoleClient, words
from support.plugins import PUPPET

ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{number}: &a{number} [{f'*a{number - 1}, ' * 9}]\n" for number in range(1, 9))
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{number}: &a{number} [*a{number - 1}]\n" for number in range(1, 2_000))
NO_FILE = "it is not a regular file"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """Nothing writes to it: who opens it as usual waits without end."""
    os.mkfifo(tmp_path / "pipe.yaml")
    return tmp_path / "pipe.yaml"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ConsoleClient]:
    console = ConsoleClient(tmp_path, PUPPET)
    yield console
    console.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "is nested too deeply to be read: at most 100 levels"),
        ("- " * 50_000, "is nested too deeply to be read: at most 100 levels"),
        (CHAIN, "is nested too deeply to be read: at most 100 levels"),
        (ALIASES, "stands for more than 1,000,000 values"),
        ("x" * (MOST_BYTES + 1), "cannot be read: it has more than 5 MiB"),
    ],
    ids=["brackets", "lists", "chain", "aliases", "large"],
)
def test_what_costs_too_much_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(DeclarationError, match=said):
        read_yaml(file)


def test_a_hundred_levels_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("[" * 100 + "]" * 100)
    assert read_yaml(file)


def test_what_is_not_a_regular_file_is_refused(pipe: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(pipe)
    for file in (pipe, link, Path("/dev/zero")):
        with pytest.raises(DeclarationError, match=NO_FILE):
            read_yaml(file)


def test_a_plugin_that_is_a_loop_of_links_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for command in (["check", str(loop)], ["package", str(loop)], ["run", "--query", "?", "--tools", str(loop)]):
        assert main(command) != 0
        printed = capsys.readouterr()
        assert "manifest.yaml" in printed.out + printed.err


def test_the_console_answers_for_files_that_have_no_end(console: ConsoleClient, pipe: Path) -> None:
    (loop := pipe.with_name("loop.yaml")).symlink_to(loop)
    pipe.with_name("loop.results.jsonl").symlink_to("loop.results.jsonl")
    assert console.post("/suite/stop", file=str(loop))
    assert "Too many levels" in words(console.get(f"/suite?file={loop}", 400))
    for file in (str(pipe), "/dev/zero"):
        assert NO_FILE in words(console.get(f"/suite?file={file}", 400))
        assert NO_FILE in words(console.post("/suite/command", 400, file=file))


def test_a_folder_of_runs_may_hold_pipes(console: ConsoleClient) -> None:
    folder = console.console.folder
    for name in ("no_trace", "no_output"):
        Setup().write(folder.beside(name, SETUP))
    for file in (folder.beside("no_trace", TRACE), folder.beside("no_output", OUTPUT), folder.beside("none", SETUP)):
        os.mkfifo(file)
    os.mkfifo(folder.path / store.FILE)

    assert NO_FILE in words(console.get("/runs/no_trace", 400))
    assert "The run ended before" in words(console.get("/runs/no_output/state"))
    assert console.get("/")


ENDLESS = "CREATE VIEW {} AS WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a) SELECT n, n, n FROM a"


@pytest.mark.parametrize("name", ["summaries", "summaries_1"])
def test_an_index_of_somebody_else_runs_nothing(console: ConsoleClient, name: str) -> None:
    index = console.console.folder.path / store.FILE
    with contextlib.closing(sqlite3.connect(index)) as forged:
        forged.execute(ENDLESS.format(f'"{name}" (name, stamp, summary)'))
        forged.execute("PRAGMA user_version = 1")

    assert console.get("/")
    with contextlib.closing(sqlite3.connect(index)) as made:
        assert made.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall() in ([], [(store.TABLE,)])


def test_an_index_that_is_a_link_changes_nothing_elsewhere(console: ConsoleClient, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with contextlib.closing(sqlite3.connect(elsewhere)) as other:
        other.execute("CREATE TABLE summaries (mine TEXT)")
    before = elsewhere.read_bytes()
    (console.console.folder.path / store.FILE).symlink_to(elsewhere)

    assert console.get("/")

    assert elsewhere.read_bytes() == before


def test_a_folder_of_runs_names_no_process_to_end(console: ConsoleClient) -> None:
    """Older consoles noted processes in such files."""
    folder = console.console.folder
    Setup().write(folder.beside("run", SETUP))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        folder.beside("run", ".process.json").write_text(f'{{"pid": {other.pid}, "arguments": []}}')

        assert "start it again" in console.post("/runs/run/steer", 400, do="stop")
        assert "start it again" in console.post("/runs/run/steer", 400, do="kill")

        other.communicate(b"\n")
    assert other.returncode == 0
