"""The runs of a folder: each is a trace, with what the console knows of it beside it."""

import re
import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Self

from rich.text import Text

from devhost.console.found import CASE
from devhost.console.setup import SETUP, Setup, is_name
from devhost.errors import ConsoleError, UnknownRunError
from devhost.terminal.tables import printable
from devhost.text import open_file
from devhost.trace.lines import is_written

TRACE, OUTPUT = ".jsonl", ".output.txt"
DELETED = "deleted"


class RunFolder:
    """Traces that a command wrote there are runs, too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def opened(cls, path: Path) -> Self:
        """The folder, made if it is missing; ConsoleError if runs cannot be written there."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=path):
                return cls(path)
        except OSError as error:
            raise ConsoleError(f"--runs {path}: no run can be written there: {error.strerror}") from error

    def names(self) -> Sequence[str]:
        """Of all runs, the newest first: of those that have a trace, and of those whose setup is all there is yet."""
        found = {
            file.name.removesuffix(ending): file.stat().st_mtime_ns
            for ending in (SETUP, TRACE)
            for file in self.path.glob(f"*{ending}")
            if is_name(file.name.removesuffix(ending))
        }
        return sorted(found, key=lambda name: (found[name], name), reverse=True)

    def new_name(self, about: str) -> str:
        """Of a run that begins now: the time, what it is about, and a few random letters."""
        words = re.sub(r"[^A-Za-z0-9_]+", "-", about).strip("-")[:40] or "run"
        return f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{words}-{secrets.token_hex(2)}"

    def trace(self, name: str) -> Path:
        """The trace of a run that exists, although it may not have one yet; UnknownRunError for any other name."""
        if is_name(name) and any(self.beside(name, ending).is_file() for ending in (TRACE, SETUP)):
            return self.beside(name, TRACE)
        raise UnknownRunError(f"there is no run {name!r} in {self.path}")

    def beside(self, name: str, ending: str) -> Path:
        return self.path / f"{name}{ending}"

    def setup(self, name: str) -> Setup | None:
        """None for a run that no form started."""
        return Setup.known(self.beside(name, SETUP))

    def delete(self, name: str) -> Path:
        """Moves the run's files to the folder `deleted`, from which a person can take them back; returns where.

        UnknownRunError; ConsoleError for a run that goes on.
        """
        if is_written(self.trace(name)):
            raise ConsoleError(f"the run {name!r} goes on: stop it before you delete it")
        files = list(self._files(name))
        number, place = 1, self.path / DELETED / name
        while place.exists():
            number, place = number + 1, self.path / DELETED / f"{name}-{number + 1}"
        try:
            place.mkdir(parents=True)
            for file in files:
                file.rename(place / file.name)
        except OSError as error:
            raise ConsoleError(f"the run {name!r} cannot be moved to {place}: {error.strerror}") from error
        return place

    def _files(self, name: str) -> Iterator[Path]:
        """NAME.anything, but not what belongs to a run with a longer name (NAME.2.jsonl), nor the script of a case."""
        longer = tuple(f"{other}." for other in self.names() if other.startswith(f"{name}."))
        for file in self.path.iterdir():
            if file.name.startswith(f"{name}.") and not file.name.startswith(longer) and not file.name.endswith(CASE):
                yield file


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


def refusal(path: Path) -> str:
    """Why no file can have this path, such as one that is too long; empty if one can."""
    try:
        path.exists()
    except OSError as error:
        return f"{path}: {error.strerror}"
    return f"{path}: a path cannot hold a NUL character" if "\0" in str(path) else ""
