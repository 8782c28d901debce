"""Files that are read while they are written: each read parses only what was added since the last one."""

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from devhost.errors import TraceError
from devhost.text import open_file
from devhost.trace.lines import Header, Trace, TraceLine, header_of, lines_of


@dataclass(frozen=True)
class Added:
    lines: list[tuple[int, bytes]]
    """Whole lines, with their numbers."""
    rest: bytes
    """What stands behind the last line break."""
    is_another: bool
    """Whether the file was written over: what was read before does not stand in it."""


class Tail:
    """Of a file of lines. Not for several threads at once."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.begin()

    def begin(self) -> None:
        """From the beginning again."""
        self._offset = self._number = 0
        self._first = self._last = b""

    def read(self) -> Added | None:
        """None if there is no file; OSError for one that cannot be read."""
        try:
            with open_file(self.file) as file:
                is_another = not self._goes_on(file)
                if is_another:
                    self.begin()
                file.seek(self._offset)
                *whole, rest = file.read().split(b"\n")
        except FileNotFoundError:
            self.begin()
            return None
        lines = list(enumerate(whole, start=self._number + 1))
        if whole:
            self._first, self._last = self._first or whole[0], whole[-1]
            self._number += len(whole)
            self._offset += sum(len(line) + 1 for line in whole)
        return Added(lines, rest, is_another)

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether the first and the last line that were read are where they were: both have times in them."""
        if not self._offset:
            return True
        first = file.read(len(self._first))
        file.seek(self._offset - len(self._last) - 1)
        return first == self._first and file.read(len(self._last) + 1) == self._last + b"\n"


class GrowingTrace:
    """Not for several threads at once."""

    def __init__(self, file: Path) -> None:
        self._tail = Tail(file)
        self._begin()

    def _begin(self) -> None:
        self._header: Header | None = None
        self._lines: list[TraceLine] = []
        self._trace: Trace | None = None

    def read(self) -> Trace | None:
        """The trace as far as it is written; None before its first line is. `cut_off`: its last line is incomplete.

        The same value as before if nothing was added. Raises TraceError, at every read, for a file that is no trace.
        """
        try:
            return self._read(self._tail.read())
        except OSError as error:
            raise TraceError(f"{self._tail.file} cannot be read: {error.strerror}") from error
        except TraceError:
            self._tail.begin()
            self._begin()
            raise

    def _read(self, added: Added | None) -> Trace | None:
        if added is None or added.is_another:
            self._begin()
        if added is None:
            return None
        written = [(number, text) for number, text in added.lines if text.strip()]
        if self._header is None and written:
            (first, text), *written = written
            self._header = header_of(self._tail.file, first, text)
        self._lines += lines_of(self._tail.file, written)
        cut_off = bool(added.rest.strip())
        if self._header is not None and (self._trace is None or added.lines or cut_off != self._trace.cut_off):
            self._trace = Trace(self._header, tuple(self._lines), cut_off=cut_off)
        return self._trace
