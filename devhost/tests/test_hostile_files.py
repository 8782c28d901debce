"""Files that somebody else made: they are refused in one sentence, and no reader waits, fills the memory or ends."""

import os
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.errors import DeclarationError
from devhost.text import MOST_BYTES, load_yaml

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


def test_a_plugin_that_is_a_loop_of_links_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for command in (["check", str(loop)], ["package", str(loop)], ["run", "--query", "?", "--tools", str(loop)]):
        assert main(command) != 0
        printed = capsys.readouterr()
        assert "manifest.yaml" in printed.out + printed.err
