"""The commands that a page shows, as the words that a shell would pass on.

In: a page's text. Out: a `Command` for each line of its shell and text blocks that calls make, devhost, Python or a
script, and the files that the page shows whole; and the place where a reader types them.
"""

import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from devhost.plugin.contents import Contents
from support.lending import Lender
from tests.support.pages import ROOT

_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_OUTPUT = re.compile(r"^```sh\n(?:(?!```)[^\n]*\n)*```\n\n```text\n(?P<output>.*?)^```$", re.DOTALL | re.MULTILINE)
_OF_COMMANDS = frozenset({"", "sh", "bash", "text"})
_CALL = re.compile(
    r"(?:\$ )?((?:[A-Z_]+=\S+ )*)((?:cd|make|devhost|\.venv/bin/\w+|python|scripts/\S+|\.ci/\w+)(?: .*)?)"
)


@dataclass(frozen=True)
class Command:
    line: str
    """As it stands on the page, without its variables."""
    words: tuple[str, ...]
    written: tuple[str, ...] = ()
    """Files to which the shell writes its output."""
    read: tuple[str, ...] = ()
    """Files that the shell gives it as input."""
    variables: str = ""
    """Those that stand in front of it."""

    @property
    def devhost(self) -> list[str] | None:
        """The arguments of devhost; None if it is another program."""
        match self.words:
            case ("devhost" | ".venv/bin/devhost", *arguments):
                return arguments
            case ("python" | ".venv/bin/python", "-m", "devhost", *arguments):
                return arguments
        return None


def shown_commands(text: str) -> Iterator[Command]:
    """The commands of a page's shell and text blocks, in their order."""
    for block in (block for language, block in shown_blocks(text) if language in _OF_COMMANDS):
        yield from commands_of(block)


def commands_of(block: str) -> Iterator[Command]:
    """The commands of one block."""
    for line in re.sub(r"\\\n\s*", "", block).splitlines():
        if found := _CALL.fullmatch(line.strip()):
            yield from _split(found[2], found[1])


def shown_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Each block of a page: its language, empty where it has none, and what stands in it."""
    yield from _BLOCK.findall(text)


def shown_outputs(text: str) -> Iterator[str]:
    """The text blocks that directly follow a block of commands: what these print. Other text blocks are pictures."""
    yield from (found["output"] for found in _OUTPUT.finditer(text))


def shown_files(text: str) -> dict[str, str]:
    """The files that a page shows whole: YAML blocks whose first line is a comment with a name."""
    blocks = [block.partition("\n") for language, block in shown_blocks(text) if language == "yaml"]
    return {found[1]: rest for first, _, rest in blocks if (found := re.fullmatch(r"# ([\w.-]+\.yaml)", first))}


def _split(line: str, variables: str) -> Iterator[Command]:
    """One command for each part of a line that `&&` joins; what reads from a pipe is left out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list[str]()
    written = list[str]()
    read = list[str]()
    piped = list[str]()
    taker = words
    for word in [*lexer, "&&"]:
        match word:
            case ">":
                taker = written
            case "<":
                taker = read
            case "|":
                taker = piped
            case "&&" | "&":
                if words:
                    yield Command(line, tuple(words), tuple(written), tuple(read), variables)
                words = []
                written = []
                read = []
                taker = words
            case _:
                taker.append(word)


@contextmanager
def reader_in(copy: Path, *plugins: str, folders: tuple[str, ...] = ("examples",)) -> Iterator[pytest.MonkeyPatch]:
    """A person in a new copy of the plugin and these folders, without databases, traces and a key.

    These plugins of the copy are started once, and the scripted model does not pause.
    """
    for path in Contents.of(ROOT).paths:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, copy / path)
    for folder in folders:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("data", "__pycache__", "*.jsonl"))
    lender = Lender(frozenset({copy, *(copy / plugin for plugin in plugins)}))
    with pytest.MonkeyPatch.context() as patch, lender.lends():
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
            patch.delenv(name, raising=False)
        patch.setattr("devhost.models.scripted.model.time", SimpleNamespace(sleep=lambda _seconds: None))
        patch.chdir(copy)
        try:
            yield patch
        finally:
            lender.close()
