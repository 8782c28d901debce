"""devhost/docs/your-own-agent.md: a reader who copies its blocks in their order sees what it shows."""

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost.cli.commands import main
from tests.support.pages import ROOT

PAGE = (ROOT / "devhost" / "docs" / "your-own-agent.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ([\w./-]+)\n")
"""The first line of a block that is a file."""
PREPARES = ("python3.12 ", ". ", "pip ", "export ")
"""Commands that make the environment in which this test runs."""
NEEDS_AN_INDEX = "devhost package "


def typed(line: str) -> int:
    """The exit code of a command of the page."""
    program, *words = shlex.split(line)
    if program == "rm":
        for path in (path for word in words for path in Path().glob(word)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return 0
    assert program == "devhost", f"not a command that this test knows: {line}"
    return main([*words, "--no-install"] if line.startswith(NEEDS_AN_INDEX) else words)


def lines(block: str) -> Iterator[str]:
    return (line for line in block.splitlines() if line and not line.startswith(PREPARES))


def test_the_blocks_of_the_page_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEVHOST_PLUGIN", str(ROOT))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    seen = dict.fromkeys(("sh", "text", "file"), 0)
    said = ""
    for language, block in BLOCK.findall(PAGE):
        if language == "sh":
            failed = [line for line in lines(block) if typed(line) != 0]
            said = "".join(capsys.readouterr())
            assert failed == [], said
        elif language == "text":
            assert [line for line in lines(block) if line not in said] == [], said
        else:
            named = FILE.match(block)
            assert named, f"a block without a file's name: {block}"
            Path(named[1]).write_text(block[named.end() :], encoding="utf-8")
        seen[language if language in seen else "file"] += 1
    assert min(seen.values()) > 2
