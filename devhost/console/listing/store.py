"""The summaries of a folder in a file, so that a console that starts finds them.

In: summaries by name, each with the stamp of the files that it was read from. Out: the same. A file that is missing,
damaged or of another version is made again.
"""

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from devhost.console.listing.summary import Summary
from devhost.console.runs.folder import NAME

FILE = ".index.sqlite3"
TABLE = "CREATE TABLE summaries_1 (name TEXT PRIMARY KEY, stamp TEXT, summary TEXT)"
"""The number is another one when a summary holds something else."""
type Stamp = str
"""Times and sizes of a run's files."""


class Store:
    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def load(self) -> dict[str, tuple[Stamp, Summary]]:
        try:
            with contextlib.closing(self._opened()) as index:
                rows = index.execute("SELECT name, stamp, summary FROM summaries_1").fetchall()
            return {name: (stamp, Summary.model_validate_json(summary)) for name, stamp, summary in rows}
        except (sqlite3.Error, ValidationError):
            with contextlib.suppress(OSError):
                self._file.unlink()
            return {}

    def save(self, changed: Mapping[str, tuple[Stamp, Summary]], gone: Iterable[str]) -> None:
        """A folder that cannot be written, or another console that writes, only costs time at the next start.

        Of a file that no run can have as its name, nothing was read. Its name may not even be UTF-8.
        """
        rows = [
            (name, stamp, summary.model_dump_json())
            for name, (stamp, summary) in changed.items()
            if NAME.fullmatch(name)
        ]
        with contextlib.suppress(sqlite3.Error), contextlib.closing(self._opened()) as index, index:
            index.executemany(
                "DELETE FROM summaries_1 WHERE name = ?", [(name,) for name in gone if NAME.fullmatch(name)]
            )
            index.executemany("INSERT OR REPLACE INTO summaries_1 VALUES (?, ?, ?)", rows)

    def _opened(self) -> sqlite3.Connection:
        index = sqlite3.connect(self._file)
        try:
            made = index.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
            if not made:
                index.execute(TABLE)
            elif made != [(TABLE,)]:  # a view or a trigger of somebody else's would run without end
                raise sqlite3.DatabaseError("not an index of this version")
        except sqlite3.Error:
            index.close()
            raise
        return index
