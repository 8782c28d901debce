"""The runs of a folder: each is a trace, with what the console knows of it beside it."""

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from rich.text import Text

from devhost.console.setup import SETUP, Setup, is_name
from devhost.errors import ConsoleError, UnknownRunError
from devhost.files import BESIDE_A_TRACE
from devhost.terminal.tables import printable
from devhost.text import open_file, read_file, worded

TRACE = ".jsonl"
OUTPUT = ".output.txt"
DELETED = "deleted"
BEGUN = re.compile(r"^\d{8}-\d{6}-")
"""The time at the beginning of a run's name."""


@dataclass(frozen=True)
class RunFolder:
    """Traces that a command wrote there are runs, too."""

    path: Path

    @classmethod
    def opened(cls, path: Path) -> Self:
        """The folder, made if it is missing; ConsoleError if it cannot be."""
        with worded(lambda why: ConsoleError(f"--runs {path}: no run can be written there: {why}")):
            path.mkdir(parents=True, exist_ok=True)
        return cls(path)

    def names(self) -> Sequence[str]:
        """The names of all runs that have a trace, and of those that only have a setup yet."""
        return sorted(self.stamps())

    def stamps(self) -> Mapping[str, str]:
        """By name, a text for each run that is another one whenever a file of the run has changed.

        It holds times, sizes and numbers of the files; the second time cannot be set, unlike the first one. A folder
        that was deleted has no runs.
        """
        found: dict[str, str] = {}
        for file in sorted(_files_in(self.path), key=lambda file: file.name):
            name = file.name.removesuffix(TRACE).removesuffix(SETUP)
            if name == file.name or not is_name(name):
                continue
            try:
                if not file.is_file():
                    continue
                now = file.stat()
            except OSError:  # it was deleted meanwhile
                continue
            stamp = f"{now.st_mtime_ns} {now.st_ctime_ns} {now.st_size} {now.st_ino}"
            if name in found:
                found[name] = f"{found[name]} {stamp}"
            else:
                found[name] = stamp
        return found

    def new_name(self, about: str) -> str:
        """Of a run that begins now: the time, what it is about, and a few random letters.

        What it is about may be the name of an earlier run: the time of that one is left out.
        """
        words = re.sub(r"[^A-Za-z0-9_]+", "-", BEGUN.sub("", about)).strip("-")[:40] or "run"
        return f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{words}-{secrets.token_hex(2)}"

    def trace(self, name: str) -> Path:
        """The trace of a run that exists, although it may not have one yet; UnknownRunError for any other name."""
        if is_name(name) and any(self.beside(name, ending).is_file() for ending in (TRACE, SETUP)):
            return self.beside(name, TRACE)
        raise UnknownRunError(f"there is no run {name!r} in {self.path}")

    def beside(self, name: str, ending: str) -> Path:
        return self.path / f"{name}{ending}"

    def setup(self, name: str) -> Setup | None:
        """None for a run that no form started, and for a file of another version."""
        try:
            return Setup.model_validate_json(read_file(self.beside(name, SETUP)))
        except (OSError, ValueError):
            return None

    def delete(self, name: str) -> None:
        """Moves the files of a run that has ended to the folder `deleted`."""
        self.trace(name)  # refuses what is not the name of a run, such as a path
        (self.path / DELETED).mkdir(exist_ok=True)
        for ending in (TRACE, SETUP, OUTPUT, BESIDE_A_TRACE):
            file = self.beside(name, ending)
            if file.exists():
                file.rename(self.path / DELETED / file.name)


def changed_in(stamp: str) -> int:
    """When the first file of a stamp was changed, in nanoseconds."""
    return int(stamp.partition(" ")[0])


def _files_in(folder: Path) -> Sequence[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as files:
            return list(files)
    except OSError:
        return []


type Change = tuple[int, int]
"""Time and size of a file; another value whenever the file has changed."""


def changed_at(file: Path) -> Change:
    try:
        status = file.stat()
    except OSError:
        return (0, -1)
    return (status.st_mtime_ns, status.st_size)


MOST_BYTES = 40_000
"""A plugin can print without end."""


def last_printed(file: Path) -> str:
    """The last `MOST_BYTES`, without colours and control characters; empty if there is no file to read."""
    try:
        with open_file(file) as output:
            output.seek(max(0, output.seek(0, 2) - MOST_BYTES))
            last = output.read()
    except OSError:
        return ""
    return printable(Text.from_ansi(last.decode(errors="replace")).plain).strip()
