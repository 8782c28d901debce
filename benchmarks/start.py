"""Measures the start of the plugin's process and its memory.

CPU time is measured from the start of Python to two moments: when the plugin has written its manifest and the following
heartbeat and thus serves requests, and when it has finished the first run. Memory is measured when the plugin serves,
and after work.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Compared, Work, compared
from benchmarks.plugins import Plugin, unpacked
from benchmarks.process import PluginProcess


@dataclass(frozen=True)
class Started:
    """Measurements of a process at two moments: when it serves, and after its first work."""

    serves: Compared
    has_worked: Compared


def starting(repeats: int, official: Path | None, first: Work) -> Started:
    """Measure CPU time. The plugins start in turn, and the first start of each, which compiles modules, is ignored."""
    return _at_both_moments(repeats + 1, official, first, PluginProcess.cpu, skipped=1)


def in_memory(repeats: int, official: Path | None, work: Work) -> Started:
    return _at_both_moments(repeats, official, work, PluginProcess.memory)


def _at_both_moments(
    repeats: int, official: Path | None, work: Work, read: Callable[[PluginProcess], float], skipped: int = 0
) -> Started:
    with unpacked(official) as plugins:
        samples = [[_read(plugin, work, read) for plugin in plugins.all] for _ in range(repeats)][skipped:]
    serving = [[side[0] for side in sample] for sample in samples]
    worked = [[side[1] for side in sample] for sample in samples]
    return Started(compared(serving), compared(worked))


def _read(plugin: Plugin, work: Work, read: Callable[[PluginProcess], float]) -> Sequence[float]:
    with PluginProcess(plugin) as process:
        serving = read(process)
        work(process)
        return serving, read(process)
