"""Files that somebody else made: they are refused in one sentence, and no reader waits, fills the memory or ends."""

import os
from pathlib import Path

import pytest
import yaml

from devhost.cli.commands import main
from devhost.errors import DeclarationError, HostError, ScriptError, TraceError
from devhost.evaluation.suite import Suite
from devhost.reach import AllowedFolders, reaching
from devhost.script import Script
from devhost.text import MOST_BYTES, load_yaml
from devhost.trace import lines
from support.plugins import PUPPET

ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{number}: &a{number} [{f'*a{number - 1}, ' * 9}]\n" for number in range(1, 9))
NO_FILE = "it is not a regular file"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """Nothing writes to it: who opens it as usual waits without end."""
    os.mkfifo(tmp_path / "pipe.yaml")
    return tmp_path / "pipe.yaml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "is nested too deeply to be read: at most 100 levels"),
        ("- " * 50_000, "is nested too deeply to be read: at most 100 levels"),
        (ALIASES, "stands for more than 1,000,000 values"),
        ("a: &a [*a]", r"an alias \(\*\) stands inside the value"),
        ("x" * (MOST_BYTES + 1), "cannot be read: it has more than 5 MiB"),
    ],
    ids=["brackets", "lists", "aliases", "loop", "large"],
)
def test_what_costs_too_much_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(DeclarationError, match=said):
        load_yaml(file)


def test_what_is_not_a_regular_file_is_refused(pipe: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(pipe)
    for file in (pipe, link, Path("/dev/zero")):
        with pytest.raises(DeclarationError, match=NO_FILE):
            load_yaml(file)


def test_a_trace_has_a_largest_size(pipe: Path, tmp_path: Path) -> None:
    large = tmp_path / "large.jsonl"
    with large.open("wb") as file:
        file.truncate(lines.MOST_BYTES + 1)  # a file with a hole: nothing is written, and nothing is read
    for trace, said in ((large, "cannot be read: it has more than 256 MiB"), (pipe, NO_FILE)):
        with pytest.raises(TraceError, match=said):
            lines.read_trace(trace)


def test_a_plugin_that_is_a_loop_of_links_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for command in (["check", str(loop)], ["package", str(loop)], ["run", "--query", "?", "--tools", str(loop)]):
        assert main(command) != 0
        printed = capsys.readouterr()
        assert "manifest.yaml" in printed.out + printed.err


# --- what a script reaches -------------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file beside the folder of the scripts, to which a link in that folder leads."""
    scripts = tmp_path / "scripts"
    (scripts / "below").mkdir(parents=True)
    (scripts / "below" / "note.txt").write_text("note")
    (tmp_path / "private.txt").write_text("private")
    (scripts / "link.txt").symlink_to(tmp_path / "private.txt")
    return tmp_path / "private.txt"


def with_files(outside: Path, *names: str) -> list[dict[str, object]]:
    """Scripts that send these files, in each of the ways there are."""
    files = [name.replace("OUTSIDE", str(outside)) for name in names]
    turns = [{"text": "x"}]
    recorded = [{"tool": "t", "provider": "p", "answer": [{"file": file} for file in files]}]
    return [
        {"query": "?", "turns": turns, "files": files},
        {"query": "?", "turns": turns, "then": [{"query": "!", "turns": turns, "files": files}]},
        {"query": "?", "turns": turns, "recorded": {"calls": recorded}},
    ]


@pytest.mark.parametrize("name", ["OUTSIDE", "../private.txt", "below/../../private.txt", "link.txt"])
def test_a_script_sends_no_file_from_outside_of_its_folder(outside: Path, name: str) -> None:
    script = outside.parent / "scripts" / "script.yaml"
    for data in with_files(outside, "below/note.txt", name):
        script.write_text(yaml.safe_dump(data))
        with pytest.raises(ScriptError, match=r"is outside of the script's folder .*allow it with --allow-files"):
            Script.read(script)
        with reaching(AllowedFolders(folders=(outside.parent,))):
            assert Script.read(script).turns


def test_neither_does_a_flows_script_nor_a_case_of_a_suite(outside: Path) -> None:
    script = outside.parent / "scripts" / "script.yaml"
    for read, data in (
        (Script.of_flow, {"query": "?", "files": ["../private.txt"]}),
        (Script.of_flow, {"query": "?", "then": [{"query": "!", "files": ["link.txt"]}]}),
        (Suite.read, {"cases": [{"name": "a", "query": "?", "files": ["../private.txt"], "turns": [{"text": "x"}]}]}),
    ):
        script.write_text(yaml.safe_dump(data))
        with pytest.raises(HostError, match="is outside of the script's folder"):
            read(script)


def test_a_script_makes_devhost_fetch_nothing(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    message = {"type": "image", "message": {"text": "http://127.0.0.1:9/secret"}}
    call = {"tool": "t", "provider": "p", "answer": [{"message": message}]}
    script.write_text(yaml.safe_dump({"query": "?", "turns": [{"text": "x"}], "recorded": {"calls": [call]}}))
    with pytest.raises(ScriptError, match=r"makes devhost fetch .*: allow it with --allow-http"):
        Script.read(script)
    with reaching(AllowedFolders(http=True)):
        assert Script.read(script).recorded.calls[0].answer[0].message == message


def test_the_options_hold_for_their_command_alone(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = outside.parent / "scripts" / "script.yaml"
    script.write_text(yaml.safe_dump(with_files(outside, "../private.txt")[0]))
    command = ["run", "--plugin", str(PUPPET), "--script", str(script), "--strategy", "none"]
    for options, said in (
        ([], "--allow-files"),
        (["--allow-files", str(outside.parent)], "there is no strategy 'none'"),
        ([], "--allow-files"),
    ):
        assert main([*command, *options]) == 2
        assert said in capsys.readouterr().err
