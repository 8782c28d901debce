"""Reads the results of an evaluation while they are written: a read parses what was added since the last one."""

import threading
from pathlib import Path

from devhost.errors import SuiteError
from devhost.evaluation.results import Evaluation, Header, Result, in_order, no_evaluation, read_line
from devhost.text.user_file import open_file


class GrowingResults:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._reading = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._offset = 0
        """Behind the last whole line that was read."""
        self._number = 0
        self._last = b""
        """The last line: it has the seconds of a run, so that another evaluation has another one there."""
        self._header: Header | None = None
        self._results: dict[str, Result] = {}
        self._evaluation: Evaluation | None = None

    def read(self) -> Evaluation | None:
        """As far as it is written; None if there is no file. A result that was there before is the same object.

        Raises SuiteError, at every read, for a file that has no evaluation.
        """
        with self._reading:
            try:
                return self._read(self._added())
            except FileNotFoundError:
                self._begin()
                return None
            except OSError as error:
                self._begin()
                raise SuiteError(f"{self._file} cannot be read: {error.strerror}") from error
            except SuiteError:
                self._begin()
                raise

    def _added(self) -> list[bytes]:
        """Whole lines."""
        with open_file(self._file) as file:
            file.seek(self._offset - len(self._last))
            if file.read(len(self._last)) != self._last:
                self._begin()
            file.seek(self._offset)
            return file.read().split(b"\n")[:-1]

    def _read(self, added: list[bytes]) -> Evaluation:
        for line in added:
            self._number += 1
            read = read_line(self._file, self._number, line)
            if isinstance(read, Header):
                self._header = read
            else:
                self._results[read.key] = read
            self._last = line + b"\n"
            self._offset += len(self._last)
        if self._header is None:
            raise no_evaluation(self._file)
        if added or self._evaluation is None:
            self._evaluation = in_order(self._header, self._results)
        return self._evaluation
