"""Measures the memory and the processor time of daemons and their plugins, by name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import gevent
import psutil

EVERY = 0.5
"""Seconds between two measurements of the memory."""
MEGABYTE = 1_000_000


@dataclass
class Process:
    """A process, or the sum of several processes with one name. Memory is in bytes, processor time in seconds."""

    memory_before: int = 0
    memory: int = 0
    """The maximum memory that was measured."""
    cpu: float = 0.0


@dataclass
class Watched:
    """The watched processes by name."""

    by_name: dict[str, Process] = field(default_factory=dict)

    def line(self, sessions: int) -> str:
        """Return the memory and time as one line of a report. Idle processes are omitted."""
        return " ".join(
            f"{name}: {process.cpu / sessions * 1000:.1f} ms a run, "
            f"{process.memory_before / MEGABYTE:.0f} to {process.memory / MEGABYTE:.0f} MB;"
            for name, process in sorted(self.by_name.items())
            if process.cpu * 1000 > sessions
        )


@contextmanager
def watching(daemons: Sequence[int]) -> Iterator[Watched]:
    """Watch daemons, given by their process ids, and their plugins during the context."""
    watched = Watched()
    for name, (memory, cpu) in _now(daemons).items():
        watched.by_name[name] = Process(memory, memory, -cpu)
    looking = gevent.spawn(_look, daemons, watched)
    try:
        yield watched
    finally:
        looking.kill()
        for name, (_, cpu) in _now(daemons).items():
            watched.by_name.setdefault(name, Process()).cpu += cpu


def _look(daemons: Sequence[int], watched: Watched) -> None:
    while True:
        for name, (memory, _) in _now(daemons).items():
            process = watched.by_name.setdefault(name, Process())
            process.memory = max(process.memory, memory)
        gevent.sleep(EVERY)


def _now(daemons: Sequence[int]) -> dict[str, tuple[int, float]]:
    """Return the memory and the processor time by name. Processes that have ended are omitted."""
    found: dict[str, tuple[int, float]] = {}
    for pid in daemons:
        for process in _family(pid):
            try:
                times = process.cpu_times()
                memory = process.memory_info().rss
                name = name_of(process.cmdline(), process.cwd())
            except psutil.Error:
                continue
            memory_of_others, cpu_of_others = found.get(name, (0, 0.0))
            found[name] = (memory_of_others + memory, cpu_of_others + times.user + times.system)
    return found


def _family(pid: int) -> list[psutil.Process]:
    try:
        daemon = psutil.Process(pid)
        return [daemon, *daemon.children()]
    except psutil.Error:
        return []


def name_of(command: Sequence[str], folder: str) -> str:
    """Return the name of a plugin's folder without the checksum, or `daemon`."""
    if list(command[1:]) != ["-m", "main"]:
        return "daemon"
    return folder.rpartition("/")[2].partition("@")[0]
