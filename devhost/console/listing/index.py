"""The summaries of all runs of a folder. A trace is read again only when its time or its size has changed.

In: a folder. Out: its runs, the newest first. The summaries live in memory, and in an index file of the folder, so that
a console that starts finds them; an index that is missing, damaged or of another version is made again.
"""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from devhost.console.listing.summarising import summary_of
from devhost.console.listing.summary import Listed, Summary
from devhost.console.runs.folder import NAME, SETUP, TRACE
from devhost.trace.writer import is_written

FILE = ".index.sqlite3"
VERSION = 1
"""Of what a summary holds."""
type Stamp = str
"""Times and sizes of a run's files."""


class Index:
    def __init__(self, folder: Path, is_running: Callable[[str], bool] = lambda _name: False) -> None:
        """`is_running`: of a run whose process may not write its trace yet."""
        self._folder = folder
        self._is_running = is_running
        self._file = folder / FILE
        self._reading = threading.Lock()
        self._kept: dict[str, tuple[Stamp, Summary]] | None = None

    def runs(self) -> Sequence[Listed]:
        """Those whose files are not traces, too: their summaries have a problem."""
        with self._reading:
            kept = self._load() if self._kept is None else self._kept
            stamps = self._stamps()
            changed = {
                name: (stamp, summary_of(name, self._folder))
                for name, stamp in stamps.items()
                if name not in kept or kept[name][0] != stamp
            }
            gone = kept.keys() - stamps.keys()
            self._kept = {name: known for name, known in (kept | changed).items() if name not in gone}
            if changed or gone:
                self._save(changed, gone)
            found = [self._listed(summary) for _, summary in self._kept.values()]
        return sorted(found, key=lambda run: (run.when, run.summary.name), reverse=True)

    def _listed(self, summary: Summary) -> Listed:
        name = summary.name
        return Listed(summary, is_written(self._folder / f"{name}{TRACE}") or self._is_running(name))

    def _stamps(self) -> Mapping[str, Stamp]:
        found: dict[str, list[str]] = {}
        with os.scandir(self._folder) as entries:
            for entry in entries:
                for ending in (TRACE, SETUP):
                    if entry.name.endswith(ending) and entry.is_file():
                        with contextlib.suppress(FileNotFoundError):
                            status = entry.stat()
                            stamp = f"{ending}:{status.st_mtime_ns}:{status.st_size}"
                            found.setdefault(entry.name.removesuffix(ending), []).append(stamp)
        return {name: " ".join(sorted(stamps)) for name, stamps in found.items()}

    def _load(self) -> dict[str, tuple[Stamp, Summary]]:
        try:
            with contextlib.closing(self._opened()) as index:
                rows = index.execute("SELECT name, stamp, summary FROM summaries").fetchall()
            return {name: (stamp, Summary.model_validate_json(summary)) for name, stamp, summary in rows}
        except (sqlite3.Error, ValidationError):
            with contextlib.suppress(OSError):
                self._file.unlink()
            return {}

    def _save(self, changed: Mapping[str, tuple[Stamp, Summary]], gone: Iterable[str]) -> None:
        """A folder that cannot be written, or another console that writes, only costs time at the next start.

        Of a file that no run can have as its name, nothing was read. Its name may not even be UTF-8.
        """
        rows = [
            (name, stamp, summary.model_dump_json())
            for name, (stamp, summary) in changed.items()
            if NAME.fullmatch(name)
        ]
        with contextlib.suppress(sqlite3.Error), contextlib.closing(self._opened()) as index, index:
            index.executemany("DELETE FROM summaries WHERE name = ?", [(name,) for name in gone])
            index.executemany("INSERT OR REPLACE INTO summaries VALUES (?, ?, ?)", rows)

    def _opened(self) -> sqlite3.Connection:
        index = sqlite3.connect(self._file)
        try:
            if index.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                with index:
                    index.execute("DROP TABLE IF EXISTS summaries")
                    index.execute("CREATE TABLE summaries (name TEXT PRIMARY KEY, stamp TEXT, summary TEXT)")
                    index.execute(f"PRAGMA user_version = {VERSION}")
        except sqlite3.Error:
            index.close()
            raise
        return index
