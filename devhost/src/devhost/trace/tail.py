"""Files of lines that are read while they are written: each read parses only what was added since the last one."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from devhost.errors import HostError, TraceError
from devhost.text import open_file
from devhost.trace.lines import Header, Trace, TraceLine, header_of, lines_of

type NumberedLine = tuple[int, bytes]


class Growing[T](ABC):
    """What a file says so far: the same object as at the read before if nothing was added. Thread-safe."""

    def __init__(self, file: Path, failure: type[HostError]) -> None:
        """`failure`: what is raised, at every read, for a file that cannot be read or has other lines."""
        self.file = file
        self._failure = failure
        self._reading = threading.Lock()
        self._first, self._last = b"", b""
        self._begin_again()

    def read(self) -> T | None:
        """None if there is no file, or nothing of a value in it yet."""
        with self._reading:
            try:
                return self._read()
            except FileNotFoundError:
                self._begin_again()
                return None
            except OSError as error:
                raise self._failure(f"{self.file} cannot be read: {error.strerror}") from error
            except self._failure:
                self._begin_again()
                raise

    def _read(self) -> T | None:
        with open_file(self.file) as file:
            if not self._goes_on(file):
                self._begin_again()
            file.seek(self._offset)
            *whole, rest = file.read().split(b"\n")
        lines = list(enumerate(whole, start=self._number + 1))
        if whole:
            self._first, self._last = self._first or whole[0], whole[-1]
            self._number += len(whole)
            self._offset += sum(len(line) + 1 for line in whole)
        return self._added(lines, rest)

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether the first and the last line that were read are where they were: both have times in them."""
        if not self._offset:
            return True
        first = file.read(len(self._first))
        file.seek(self._offset - len(self._last) - 1)
        return first == self._first and file.read(len(self._last) + 1) == self._last + b"\n"

    def _begin_again(self) -> None:
        self._offset = self._number = 0
        self._first, self._last = b"", b""
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Forgets what was read."""

    @abstractmethod
    def _added(self, lines: Sequence[NumberedLine], rest: bytes) -> T | None:
        """The value with these whole lines, which may be none; `rest` stands behind the last line break."""


class GrowingTrace(Growing[Trace]):
    """None before the first line is written. `cut_off`: the last line is incomplete."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, TraceError)

    def _begin(self) -> None:
        self._header: Header | None = None
        self._lines: list[TraceLine] = []
        self._trace: Trace | None = None

    def _added(self, lines: Sequence[NumberedLine], rest: bytes) -> Trace | None:
        written = [(number, text) for number, text in lines if text.strip()]
        if self._header is None and written:
            (first, text), *written = written
            self._header = header_of(self.file, first, text)
        self._lines += lines_of(self.file, written)
        cut_off = bool(rest.strip())
        if self._header is not None and (self._trace is None or lines or cut_off != self._trace.cut_off):
            self._trace = Trace(self._header, tuple(self._lines), cut_off=cut_off)
        return self._trace
