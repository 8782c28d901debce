"""The traces that pages are looking at, each read once for all of them."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devhost.console.live.growing import GrowingTrace
from devhost.page.parts.attachments import Attachments
from devhost.page.parts.shown import ShownRun, shown_run
from devhost.trace.reader import Trace
from devhost.trace.runs import traced_runs
from devhost.trace.writer import is_written

KEPT = 8
"""So many traces stay parsed; one of a hundred rounds takes tens of megabytes."""


@dataclass(frozen=True)
class Seen:
    """A trace as far as it was written."""

    trace: Trace | None
    """None before its first line."""
    runs: Sequence[ShownRun] = ()


class RunReader:
    def __init__(self, file: Path) -> None:
        self.file = file
        self._growing = GrowingTrace(file)
        self._reading = threading.Lock()
        self._seen = Seen(None)
        self._written = False

    def read(self) -> Seen:
        """The same value as before if nothing was added; a TraceError comes each time again."""
        with self._reading:
            written = is_written(self.file)  # asked first: nothing is added after a no
            trace = self._growing.read()
            if trace is not self._seen.trace or written != self._written:
                self._seen = Seen(trace, () if trace is None else _shown(trace, is_written=written))
                self._written = written
            return self._seen


def _shown(trace: Trace, *, is_written: bool) -> Sequence[ShownRun]:
    attachments, runs = Attachments(None), traced_runs(trace)
    return [
        shown_run(number, each, trace, attachments, is_written=is_written and each is runs[-1])
        for number, each in enumerate(runs, start=1)
    ]


class Readers:
    def __init__(self) -> None:
        self._readers: OrderedDict[Path, RunReader] = OrderedDict()
        self._choosing = threading.Lock()

    def of(self, file: Path) -> RunReader:
        with self._choosing:
            reader = self._readers.setdefault(file, RunReader(file))
            self._readers.move_to_end(file)
            while len(self._readers) > KEPT:
                self._readers.popitem(last=False)
            return reader
