"""A folder of runs. Each run is a trace, and the console keeps its own files about the run beside it."""

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
"""Matches the time at the beginning of a run's name."""


@dataclass(frozen=True)
class RunFolder:
    """A folder of runs. A trace that a command wrote there is a run, too."""

    path: Path

    @classmethod
    def opened(cls, path: Path) -> Self:
        """Returns the folder and creates it if it is missing. Raises ConsoleError if the folder cannot be created."""
        with worded(lambda why: ConsoleError(f"--runs {path}: no run can be written there: {why}")):
            path.mkdir(parents=True, exist_ok=True)
        return cls(path)

    def names(self) -> Sequence[str]:
        """Returns the names of all runs, including runs that have only a setup so far."""
        return sorted(self.stamps())

    def stamps(self) -> Mapping[str, str]:
        """Returns a stamp for each run by its name. The stamp changes whenever a file of the run changes.

        A stamp contains the times, sizes and inode numbers of the files. A program can set the first time (mtime), but
        not the second (ctime). A folder that was deleted has no runs.
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
            except OSError:  # the file was deleted in the meantime
                continue
            stamp = f"{now.st_mtime_ns} {now.st_ctime_ns} {now.st_size} {now.st_ino}"
            if name in found:
                found[name] = f"{found[name]} {stamp}"
            else:
                found[name] = stamp
        return found

    def new_name(self, about: str) -> str:
        """Returns a name for a run that begins now: the time, what the run is about, and a few random letters.

        `about` may be the name of an earlier run. The time at the beginning of that name is dropped.
        """
        words = re.sub(r"[^A-Za-z0-9_]+", "-", BEGUN.sub("", about)).strip("-")[:40] or "run"
        return f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{words}-{secrets.token_hex(2)}"

    def trace(self, name: str) -> Path:
        """Returns the path of a run's trace, which may not exist yet. Raises UnknownRunError for any other name."""
        if is_name(name) and any(self.beside(name, ending).is_file() for ending in (TRACE, SETUP)):
            return self.beside(name, TRACE)
        raise UnknownRunError(f"there is no run {name!r} in {self.path}")

    def beside(self, name: str, ending: str) -> Path:
        """Returns the path of a run's file with this suffix."""
        return self.path / f"{name}{ending}"

    def setup(self, name: str) -> Setup | None:
        """Returns the setup of a run, or `None` if no form started the run or another version wrote the setup."""
        try:
            return Setup.model_validate_json(read_file(self.beside(name, SETUP)))
        except (OSError, ValueError):
            return None

    def delete(self, name: str) -> None:
        """Moves the files of a run that has ended to the folder `deleted`."""
        self.trace(name)  # raises UnknownRunError for anything but the name of a run, such as a path
        (self.path / DELETED).mkdir(exist_ok=True)
        for ending in (TRACE, SETUP, OUTPUT, BESIDE_A_TRACE):
            file = self.beside(name, ending)
            if file.exists():
                file.rename(self.path / DELETED / file.name)


def changed_in(stamp: str) -> int:
    """Returns the time when the first file of a stamp was last changed, in nanoseconds since 1970."""
    return int(stamp.partition(" ")[0])


def _files_in(folder: Path) -> Sequence[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as files:
            return list(files)
    except OSError:
        return []


type Change = tuple[int, int]
"""The time and size of a file, which differ whenever the file has changed."""


def changed_at(file: Path) -> Change:
    """Returns when the file was last changed and its size, or `(0, -1)` if it does not exist."""
    try:
        status = file.stat()
    except OSError:
        return (0, -1)
    return (status.st_mtime_ns, status.st_size)


MOST_BYTES = 40_000
"""How many bytes of a command's output are read, because a plugin can print without end."""


def last_printed(file: Path) -> str:
    """Returns the last `MOST_BYTES` of a file without colors and control characters; empty if it cannot be read."""
    try:
        with open_file(file) as output:
            output.seek(max(0, output.seek(0, 2) - MOST_BYTES))
            last = output.read()
    except OSError:
        return ""
    return printable(Text.from_ansi(last.decode(errors="replace")).plain).strip()
