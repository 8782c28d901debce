"""The agent beside the floor: both do the same work in turn, so that a busy moment of the machine hits both.

In: work, the two plugin processes, and which clock counts. Out: seconds of both, their ratio and how far it spreads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

from benchmarks.plugins import Pair
from benchmarks.process import PluginProcess
from benchmarks.table import duration, number_of_bytes

type Work = Callable[[PluginProcess], object]
"""What is timed."""
type Clock = Callable[[PluginProcess], float]


def cpu(process: PluginProcess) -> float:
    """Counts the work of the plugin's process alone, so it is usable on a busy machine."""
    return process.cpu()


def wall(_process: PluginProcess) -> float:
    return perf_counter()


MIN_REPEATS = 3
MAX_SECONDS = 8.0
"""Of one comparison; slow ones are repeated less often."""
MIN_SAMPLE = 0.05
"""Seconds. Work that takes the floor less is repeated within one sample."""
MAX_TIMES = 25
"""Of such repeats."""


COMPARED = ("agent", "floor", "ratio", "spread")


@dataclass(frozen=True)
class Compared:
    """Medians over the repeats, in seconds, or of memory in bytes."""

    agent: float
    floor: float
    ratio: float
    spread: float
    """Half the distance between the quartiles of the ratio."""

    @property
    def cells(self) -> tuple[str, ...]:
        return duration(self.agent), duration(self.floor), *self._ratios

    @property
    def cells_of_memory(self) -> tuple[str, ...]:
        return number_of_bytes(self.agent), number_of_bytes(self.floor), *self._ratios

    @property
    def _ratios(self) -> tuple[str, str]:
        return f"{self.ratio:.2f}", f"±{self.spread:.2f}"

    @property
    def extra(self) -> float:
        """What the agent takes beyond the floor."""
        return self.agent - self.floor


def compared(pairs: list[tuple[float, float]], times: int = 1) -> Compared:
    """Pairs of the agent's and the floor's seconds, each of so many runs."""
    ratios = [agent / floor for agent, floor in pairs]
    lower, _, upper = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    agents, floors = zip(*pairs, strict=True)
    return Compared(median(agents) / times, median(floors) / times, median(ratios), (upper - lower) / 2)


def side_by_side(work: Work, processes: Pair[PluginProcess], repeats: int, clock: Clock = cpu) -> Compared:
    """Do the work in both processes in turn; a first round in each, for imports and caches, does not count."""
    timed(work, processes.agent, clock, 1)
    once = timed(work, processes.floor, clock, 1)
    times = max(1, min(MAX_TIMES, round(MIN_SAMPLE / once)))
    pairs: list[tuple[float, float]] = []
    began = perf_counter()
    while len(pairs) < repeats and (len(pairs) < MIN_REPEATS or perf_counter() - began < MAX_SECONDS):
        pairs.append((timed(work, processes.agent, clock, times), timed(work, processes.floor, clock, times)))
    return compared(pairs, times)


def timed(work: Work, process: PluginProcess, clock: Clock, times: int) -> float:
    """Seconds."""
    started = clock(process)
    for _ in range(times):
        work(process)
    return clock(process) - started
