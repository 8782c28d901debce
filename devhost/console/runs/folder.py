"""The folder in which the console keeps its runs, a trace each. Traces that a command wrote there are runs too."""

import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Self

from devhost.errors import ConsoleError, UnknownRunError

TRACE, SETUP, OUTPUT = ".jsonl", ".setup.json", ".output.txt"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
"""Of a run; it stands in addresses, and is never a path."""


RESULTS = (".results", ".results.previous")
"""Ends of the names of an evaluation's results, which are no traces."""


def is_name(text: str) -> bool:
    """Whether a run can have this name."""
    return NAME.fullmatch(text) is not None and not text.endswith(RESULTS)


class RunFolder:
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
