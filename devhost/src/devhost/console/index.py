"""All runs of a folder. What their files say is read once, and kept in a file beside them for the next console."""

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
"""A run cannot have this name."""
DEVHOST = Path(__file__).parents[1]
AT_ONCE = 100
"""How many runs a page waits for, the newest: so many are on it. A thread reads the others."""
TOGETHER = 500
"""How many runs are added to the file at a time."""
MOST_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True)
class IndexedRun:
    """What the files of a run said when they had this stamp."""

    name: str
    stamp: str
    listed: ListedRun
    is_released: bool
    """No process wrote the trace. A writer empties the trace first, so that this holds as long as the stamp does."""


@dataclass(frozen=True)
class RunList:
    runs: Sequence[ListedRun]
    """The newest first. Those whose files are not traces, too: those have a problem."""
    unread: int = 0
    """How many files a thread still reads: it begins with the newest."""


@dataclass
class Index:
    folder: RunFolder
    at_once: int = AT_ONCE
    _known: Mapping[str, IndexedRun] | None = None
    _changing: threading.Lock = field(default_factory=threading.Lock)
    _reader: threading.Thread | None = None

    def runs(self, is_running: Callable[[str], bool]) -> RunList:
        """`is_running`: whether the run of this name has a process of this console, which will write its trace."""
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
        """All that is known then. A trace that a process writes is not kept in the file: it changes all the time."""
        self._known = {**known, **{each.name: each for each in found}}
        keep(self.folder, [each for each in found if each.is_released])
        return self._known

    def _ended(self, written: Iterable[IndexedRun]) -> Iterator[IndexedRun]:
        """Those whose traces a process has written, and does not any more."""
        for each in written:
            if not _has_writer(self.folder, each.name):
                yield replace(each, is_released=True)

    def _read_later(self, stamps: Mapping[str, str]) -> None:
        """In a thread. What a page reads meanwhile is read twice, and says the same."""
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
    """Those that still exist. The stamps are older than what is read, and so is the look for a writer."""
    for name, stamp in stamps.items():
        is_released = not _has_writer(folder, name)
        try:
            yield IndexedRun(name, stamp, read_run(folder, name), is_released)
        except (UnknownRunError, OSError):  # it was deleted meanwhile
            continue


def _has_writer(folder: RunFolder, name: str) -> bool:
    return is_written(folder.beside(name, TRACE))


# The file in which a console finds what another one has read: a line for each run, the last of a name counts.
#
# A line holds for files with its stamp, and for the code that wrote it, so that it says nothing that the traces do not
# say. The file can be deleted at any time.

_KNOWN = TypeAdapter(IndexedRun)
_ALL = TypeAdapter(list[IndexedRun])


@cache
def _code() -> bytes:
    """Before each line: another devhost may say something else of the same trace."""
    code = b"\0".join(file.read_bytes() for file in sorted(DEVHOST.rglob("*.py")))
    return sha256(code).hexdigest()[:16].encode()


def read_kept(folder: RunFolder) -> Mapping[str, IndexedRun]:
    """By name. A line that was cut off, or that another devhost wrote, is left out."""
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
    """All at once takes a third of the time; one by one, a line that cannot be read is left out alone."""
    try:
        return _ALL.validate_json(b"[" + b",".join(lines) + b"]")
    except ValueError:
        found = []
        for line in lines:
            with suppress(ValueError, RecursionError):
                found.append(_KNOWN.validate_python(json.loads(line)))
        return found


def keep(folder: RunFolder, found: Sequence[IndexedRun]) -> None:
    """Adds lines for those. A folder that cannot be written to is read again by the next console."""
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
