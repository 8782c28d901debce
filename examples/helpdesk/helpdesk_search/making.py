"""A path and how its file is opened and made in, searches of a file that is whole and up to date out.

What is missing, damaged or out of date is made anew: into a file of its own, then moved into place in one step, so that
a search elsewhere (greenlet, thread, process) sees the old index or the new, never half.
"""

import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from .errors import IndexUnavailableError

# Another file mends none of these. SQLite's own numbers; every library hands them on.
_PASSING = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM})


class Connected(Protocol):
    """What a connection of either SQLite library can do."""

    def execute(self, statement: str, /) -> Any: ...  # noqa: ANN401 - a cursor, each library its own

    def close(self) -> None: ...


@dataclass(frozen=True)
class MadeIndex[Connection: Connected]:
    """An index file, and how it is had.

    Its table `origin` says what it was made from. `failures` is what a search in a damaged file raises. Two searches of
    one turn meet a missing index together; `making` lets one of them make it.
    """

    path: Path
    made_from: str
    connect: Callable[[Path], Connection]
    make: Callable[[Path], None]
    making: Lock
    failures: tuple[type[Exception], ...]

    def search[Found](self, search: Callable[[Connection], Found]) -> Found:
        """Opening reads the file's beginning only: that a page further on is damaged shows in the search itself."""
        seen = _identity(self.path)
        try:
            return self._searched(search)
        except self.failures as error:
            if _passes(error):
                raise IndexUnavailableError(f"The index '{self.path.name}' cannot be searched now: {error}") from error
        with self.making:
            if _identity(self.path) == seen:  # else somebody else has mended it, and theirs is not to be undone
                self._make_in_place()
        try:
            return self._searched(search)
        except self.failures as error:
            raise IndexUnavailableError(
                f"The index '{self.path.name}' was made anew and still cannot be searched: {error}"
            ) from error

    def open(self) -> Connection:
        """A read-only connection to an index of exactly what it is made from now; the caller closes it."""
        current = self._open_if_current()
        if current is None:
            with self.making:
                current = self._open_if_current()  # somebody else may have made it while we waited
                if current is None:
                    self._make_in_place()
                    current = self._open_if_current()
        if current is None:
            raise IndexUnavailableError(
                f"The index '{self.path.name}' changed while it was opened: are its texts being edited?"
            )
        return current

    def _searched[Found](self, search: Callable[[Connection], Found]) -> Found:
        with closing(self.open()) as connection:
            return search(connection)

    def _open_if_current(self) -> Connection | None:
        with ExitStack() as unless_current:
            try:
                connection = self.connect(self.path)
                unless_current.callback(connection.close)
                if connection.execute("SELECT made_from FROM origin").fetchone() == (self.made_from,):
                    unless_current.pop_all()
                    return connection
            except self.failures as error:
                if _passes(error):
                    raise
        return None  # missing, damaged or of another layout: all three are mended by making it

    def _make_in_place(self) -> None:
        try:
            descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=f"{self.path.name}.", suffix=".new")
            os.close(descriptor)
            new = Path(name)
            try:
                self.make(new)
                new.replace(self.path)
            finally:
                new.unlink(missing_ok=True)
        except OSError as error:
            raise IndexUnavailableError(
                f"The index could not be built in '{self.path.parent}': {error}. "
                "It needs a directory that can be written to."
            ) from error


def _identity(path: Path) -> tuple[int, int] | None:
    """Tells a file from the one that was moved into its place; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _passes(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", getattr(error, "result", None))
    return code is not None and code & 0xFF in _PASSING  # the bits above only say it more exactly
