"""Reads a trace while it is being written: each read parses only what was added since the last one."""

from pathlib import Path
from typing import TYPE_CHECKING

from devhost.errors import TraceError
from devhost.text.user_file import open_file
from devhost.trace.reader import Trace, header_of, lines_of

if TYPE_CHECKING:
    from devhost.trace.lines import Header, TraceLine


class GrowingTrace:
    """Not for several threads at once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begin()

    def _begin(self) -> None:
        self._offset = 0
        self._number = 0
        self._rest = b""
        self._first = b""
        """The first line: it has the moment at which the trace began, so that another trace has another one."""
        self._header: Header | None = None
        self._lines: list[TraceLine] = []
        self._trace: Trace | None = None

    def read(self) -> Trace | None:
        """The trace as far as it is written; None before its first line is. `cut_off`: its last line is incomplete.

        The same value as before if nothing was added. A file that has become shorter, or that begins with another line,
        is another trace.

        Raises TraceError for a file that is no trace, at every read.
        """
        try:
            return self._read(self._added())
        except TraceError:
            self._begin()
            raise

    def _added(self) -> bytes | None:
        """What was added since the last read; None if there is no file."""
        try:
            with open_file(self._file) as file:
                is_shorter = file.seek(0, 2) < self._offset
                file.seek(0)
                if is_shorter or file.read(len(self._first)) != self._first:
                    self._begin()
                file.seek(self._offset)
                return file.read()
        except FileNotFoundError:
            self._begin()
            return None
        except OSError as error:
            raise TraceError(f"{self._file} cannot be read: {error.strerror}") from error

    def _read(self, added: bytes | None) -> Trace | None:
        if not added:
            return self._trace
        self._offset += len(added)
        *whole, self._rest = (self._rest + added).split(b"\n")
        numbered = list(enumerate(whole, start=self._number + 1))
        self._number += len(whole)
        written = [(number, text) for number, text in numbered if text.strip()]
        if self._header is None and written:
            (first, text), *written = written
            self._header = header_of(self._file, first, text)
            self._first = text if first == 1 else b""
        self._lines += lines_of(self._file, written)
        if self._header is not None:
            self._trace = Trace(self._header, tuple(self._lines), cut_off=bool(self._rest.strip()))
        return self._trace
