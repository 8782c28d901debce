"""Builds an index when it is needed, and searches it.

In: a path, and how its file is opened and built. Out: searches of a complete and current file. A missing, damaged or
outdated index is rebuilt in another file, which then replaces it in one step: a search elsewhere (greenlet, thread,
process) sees the old index or the new one, never half of it.
"""

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from .errors import IndexUnavailableError

# A rebuilt file would not help against these. The numbers are SQLite's own, which every library passes on.
_TEMPORARY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM})


class Connected(Protocol):
    """A connection of either SQLite library."""

    def execute(self, statement: str, /) -> Any: ...  # noqa: ANN401 - a cursor, each library its own

    def close(self) -> None: ...


@dataclass(frozen=True)
class MadeIndex[Connection: Connected]:
    """An index file, and how it is opened and built.

    Its table `origin` says what it was built from. A search in a damaged file raises one of `failures`. Several
    searches may find the index missing at once; the lock `making` lets one of them build it.
    """

    path: Path
    made_from: str
    connect: Callable[[Path], Connection]
    make: Callable[[Path], None]
    making: Lock
    failures: tuple[type[Exception], ...]

    def search[Found](self, search: Callable[[Connection], Found]) -> Found:
        """Search, and rebuild a damaged index once: opening reads only the beginning of the file."""
        seen = _identity(self.path)
        try:
            return self._searched(search)
        except self.failures as error:
            if _is_temporary(error):
                raise IndexUnavailableError(f"The index '{self.path.name}' cannot be searched now: {error}") from error
        with self.making:
            if _identity(self.path) == seen:  # otherwise another search has rebuilt it already
                self._make_in_place()
        try:
            return self._searched(search)
        except self.failures as error:
            raise IndexUnavailableError(
                f"The index '{self.path.name}' was rebuilt and still cannot be searched: {error}"
            ) from error

    def open(self) -> Connection:
        """A read-only connection to a current index; the caller closes it."""
        current = self._open_if_current()
        if current is None:
            with self.making:
                current = self._open_if_current()  # another search may have built it meanwhile
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
                if _is_temporary(error):
                    raise
        return None  # missing, damaged or of another format: it has to be built

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
                f"The index could not be built in '{self.path.parent}': {error}. It needs a writable directory."
            ) from error


def _identity(path: Path) -> tuple[int, int] | None:
    """Differs between a file and the one that replaced it; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _is_temporary(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", getattr(error, "result", None))
    return code is not None and code & 0xFF in _TEMPORARY  # higher bits only add detail


def digest(files: Iterable[Path], folder: Path) -> str:
    """A fingerprint of names and contents: any edit, rename or removal changes it."""
    made = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        made.update(f"{file.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
        made.update(content)
    return made.hexdigest()
