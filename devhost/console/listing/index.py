"""The summaries of all runs of a folder. A trace is read again only when its time or its size has changed.

In: a folder. Out: its runs, the newest first. The summaries live in memory, and in a file of the folder. A folder with
gigabytes of new traces takes longer than a page can wait: then a thread reads on, the newest first.
"""

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devhost.console.listing.store import Stamp, Store
from devhost.console.listing.summarising import summary_of
from devhost.console.listing.summary import Listed, Summary
from devhost.console.runs.folder import SETUP, TRACE
from devhost.trace.writer import is_written

SLICE_SECONDS = 0.1
"""After so many, the thread that reads on lets others look."""


@dataclass(frozen=True)
class Look:
    runs: Sequence[Listed]
    """Those whose files are not traces, too: their summaries have a problem."""
    unread: int
    """How many others there are, which a thread reads now."""


class Index:
    def __init__(self, folder: Path, is_running: Callable[[str], bool] = lambda _name: False) -> None:
        """`is_running`: of a run whose process may not write its trace yet."""
        self._folder = folder
        self._is_running = is_running
        self._store = Store(folder)
        self._reading = threading.Lock()
        self._kept: dict[str, tuple[Stamp, Summary]] | None = None
        self._reader: threading.Thread | None = None

    def look(self, seconds: float = math.inf) -> Look:
        """What is known after it has read for so many seconds; at least one run is read."""
        with self._reading:
            kept, unread = self._read(seconds)
            if unread and (self._reader is None or not self._reader.is_alive()):
                self._reader = threading.Thread(target=self._read_on, daemon=True)
                self._reader.start()
            found = [self._listed(summary) for _, summary in kept.values()]
        return Look(sorted(found, key=lambda run: (run.when, run.summary.name), reverse=True), unread)

    def only(self, names: Iterable[str]) -> Sequence[Listed]:
        """These runs, without a look at the others."""
        return [self._listed(summary_of(name, self._folder)) for name in names]

    def _read_on(self) -> None:
        unread = 1
        with contextlib.suppress(OSError):  # the folder is gone; who looks at it next is told
            while unread:
                with self._reading:
                    _, unread = self._read(SLICE_SECONDS)
                time.sleep(SLICE_SECONDS / 10)  # a lock goes to the thread that asks for it first

    def _read(self, seconds: float) -> tuple[Mapping[str, tuple[Stamp, Summary]], int]:
        """All that is known then, and how many runs are unread. A changed run that is unread is known as it was."""
        until = time.monotonic() + seconds
        kept = self._store.load() if self._kept is None else self._kept
        stamps = self._stamps()
        unread = [name for name, stamp in stamps.items() if name not in kept or kept[name][0] != stamp]
        unread.sort(key=lambda name: _newest(stamps[name]))
        changed: dict[str, tuple[Stamp, Summary]] = {}
        while unread and (not changed or time.monotonic() < until):
            name = unread.pop()
            changed[name] = stamps[name], summary_of(name, self._folder)
        gone = kept.keys() - stamps.keys()
        self._kept = {name: known for name, known in (kept | changed).items() if name not in gone}
        if changed or gone:
            self._store.save(changed, gone)
        return self._kept, len(unread)

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


def _newest(stamp: Stamp) -> int:
    """When a file of the run changed, in nanoseconds since 1970."""
    return max(int(each.split(":")[1]) for each in stamp.split())
