"""The index of all runs in a folder. Each run is read once and stored in a file there for the next console."""

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter

from devhost.console.folder import TRACE, RunFolder, changed_in
from devhost.console.listing import ListedRun, read_run
from devhost.errors import UnknownRunError
from devhost.text import read_file, write_file
from devhost.trace.lines import is_written

FILE = ".list.jsonl"
"""The name of the stored index. No run can have this name."""
DEVHOST = Path(__file__).parents[1]
AT_ONCE = 100
"""How many of the newest runs a page waits for, as many as it shows. A thread reads all other runs."""
TOGETHER = 500
"""How many runs the thread adds to the file at a time."""
MOST_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True)
class IndexedRun:
    """The state of a run's files when they had this stamp."""

    name: str
    stamp: str
    listed: ListedRun
    is_released: bool
    """Whether no process was writing the trace.

    The value holds as long as the stamp is the same, because a new writer first empties the trace.
    """


@dataclass(frozen=True)
class RunList:
    runs: Sequence[ListedRun]
    """All runs, newest first. A run whose file is not a trace is in the list, too, and has a `problem`."""
    unread: int = 0
    """How many files a thread still has to read, beginning with the newest."""


@dataclass
class Index:
    """All runs of a folder, kept up to date as their files change."""

    folder: RunFolder
    at_once: int = AT_ONCE
    _known: Mapping[str, IndexedRun] | None = None
    _changing: threading.Lock = field(default_factory=threading.Lock)
    _reader: threading.Thread | None = None

    def runs(self, is_running: Callable[[str], bool]) -> RunList:
        """Returns the runs as they are now.

        `is_running` reports whether this console has a process for the run of this name, which will write the trace.
        """
        with self._changing:
            stamps = self.folder.stamps()
            earlier = read_kept(self.folder) if self._known is None else self._known
            known = {name: each for name, each in earlier.items() if stamps.get(name) == each.stamp}
            unread = sorted(stamps.keys() - known.keys(), key=lambda name: changed_in(stamps[name]), reverse=True)
            at_once = {name: stamps[name] for name in unread[: self.at_once]}
            later = {name: stamps[name] for name in unread[self.at_once :]}
            written = [name for name, each in known.items() if not each.is_released]
            found = [*read(self.folder, at_once), *self._ended(map(known.__getitem__, written))]
            all_known = self._learn(known, found)
            if later and (self._reader is None or not self._reader.is_alive()):
                self._reader = threading.Thread(target=self._read_later, args=(later,), daemon=True)
                self._reader.start()
            listed = [_with_state(each, is_running) for each in all_known.values()]
        return RunList(sorted(listed, key=_age, reverse=True), len(later))

    def _learn(self, known: Mapping[str, IndexedRun], found: Sequence[IndexedRun]) -> Mapping[str, IndexedRun]:
        """Adds the runs that were found and returns all known runs.

        A run whose trace is still being written is not stored in the file, because it changes all the time.
        """
        self._known = {**known, **{each.name: each for each in found}}
        keep(self.folder, [each for each in found if each.is_released])
        return self._known

    def _ended(self, written: Iterable[IndexedRun]) -> Iterator[IndexedRun]:
        """Yields the runs whose traces are no longer being written."""
        for each in written:
            if not _has_writer(self.folder, each.name):
                yield replace(each, is_released=True)

    def _read_later(self, stamps: Mapping[str, str]) -> None:
        """Reads runs in a thread. A run that a page reads in the meantime is read twice, with the same result."""
        names = list(stamps)
        for first in range(0, len(names), TOGETHER):
            found = list(read(self.folder, {name: stamps[name] for name in names[first : first + TOGETHER]}))
            with self._changing:
                self._learn(self._known or {}, found)


def _age(run: ListedRun) -> tuple[float, str]:
    return run.began, run.name


def _with_state(known: IndexedRun, is_running: Callable[[str], bool]) -> ListedRun:
    if known.is_released and not is_running(known.name):
        return known.listed
    return replace(known.listed, goes_on=True)


def read(folder: RunFolder, stamps: Mapping[str, str]) -> Iterator[IndexedRun]:
    """Yields the runs that still exist.

    The stamps were taken before the files are read, and each check for a writer is made before its file is read.
    """
    for name, stamp in stamps.items():
        is_released = not _has_writer(folder, name)
        try:
            yield IndexedRun(name, stamp, read_run(folder, name), is_released)
        except (UnknownRunError, OSError):  # the run was deleted in the meantime
            continue


def _has_writer(folder: RunFolder, name: str) -> bool:
    return is_written(folder.beside(name, TRACE))


# The stored index: one line for each run that a console has read. If a name occurs twice, the last line counts.
#
# A line is valid only for files with its stamp and for the code that wrote it. Therefore the stored index never
# contradicts the traces, and the file can be deleted at any time.

_KNOWN = TypeAdapter(IndexedRun)
_ALL = TypeAdapter(list[IndexedRun])


@cache
def _code() -> bytes:
    """Returns the prefix of each line: a hash of the code, because another version may read a trace differently."""
    code = b"\0".join(file.read_bytes() for file in sorted(DEVHOST.rglob("*.py")))
    return sha256(code).hexdigest()[:16].encode()


def read_kept(folder: RunFolder) -> Mapping[str, IndexedRun]:
    """Returns the stored runs by name, without lines that were cut off or written by another version of devhost."""
    file = folder.path / FILE
    try:
        lines = read_file(file, MOST_BYTES).splitlines()
    except OSError:
        return {}
    own = [line.removeprefix(_code()) for line in lines if line.startswith(_code())]
    found = {each.name: each for each in _known_in(own)}
    if len(lines) > 2 * len(found) + TOGETHER and not file.is_symlink():
        with suppress(OSError):
            write_file(file, _lines(found.values()))
    return found


def _known_in(lines: Sequence[bytes]) -> Sequence[IndexedRun]:
    """Parses the lines, and leaves out those that are not valid.

    Parsing all lines at once takes a third of the time, so the lines are parsed one by one only after an error.
    """
    try:
        return _ALL.validate_json(b"[" + b",".join(lines) + b"]")
    except ValueError:
        found = []
        for line in lines:
            with suppress(ValueError, RecursionError):
                found.append(_KNOWN.validate_python(json.loads(line)))
        return found


def keep(folder: RunFolder, found: Sequence[IndexedRun]) -> None:
    """Adds a line for each run to the file. If the folder is not writable, the next console reads the runs again."""
    if not found:
        return
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    with suppress(OSError):
        file = os.open(folder.path / FILE, flags, 0o644)
        with os.fdopen(file, "ab") as opened:
            opened.write(_lines(found))


def _lines(found: Iterable[IndexedRun]) -> bytes:
    return b"".join(
        b"%s %s\n" % (_code(), json.dumps(_KNOWN.dump_python(each, mode="json")).encode()) for each in found
    )
