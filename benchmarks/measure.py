"""The agent beside the floor: all do the same work in turn, so that a busy moment of the machine hits each of them.

In: work, the plugins' processes, and which clock counts. Out: seconds of each, the ratio to the floor and how far it
spreads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles
from time import perf_counter

from benchmarks.plugins import Sides
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
MAX_SECONDS = 12.0
"""Of one comparison; slow ones are repeated less often."""
MIN_SAMPLE = 0.05
"""Seconds. Work that takes the floor less is repeated within one sample."""
MAX_TIMES = 25
"""Of such repeats."""


COMPARED = ("agent", "floor", "ratio", "spread", "cot_agent", "its ratio")


@dataclass(frozen=True)
class Compared:
    """Medians over the repeats, in seconds, or of memory in bytes."""

    agent: float
    floor: float
    ratio: float
    spread: float
    """Half the distance between the quartiles of the ratio."""
    official: float | None = None
    """Of Dify's own strategy; None where it is not measured."""
    official_ratio: float | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        return self._cells(duration)

    @property
    def cells_of_memory(self) -> tuple[str, ...]:
        return self._cells(number_of_bytes)

    def _cells(self, written: Callable[[float], str]) -> tuple[str, ...]:
        ours = (written(self.agent), written(self.floor), f"{self.ratio:.2f}", f"±{self.spread:.2f}")
        if self.official is None or self.official_ratio is None:
            return (*ours, "", "")
        return (*ours, written(self.official), f"{self.official_ratio:.2f}")

    @property
    def extra(self) -> float:
        """What the agent takes beyond the floor."""
        return self.agent - self.floor


def compared(samples: Sequence[Sequence[float]], times: int = 1) -> Compared:
    """Samples of the agent, the floor and, if it is measured, the official strategy, each of so many runs."""
    ratios = [sample[0] / sample[1] for sample in samples]
    quarters = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    agent, floor, *official = [median(column) / times for column in zip(*samples, strict=True)]
    ours = Compared(agent, floor, median(ratios), (quarters[2] - quarters[0]) / 2)
    if not official:
        return ours
    official_ratio = median(sample[2] / sample[1] for sample in samples)
    return replace(ours, official=official[0], official_ratio=official_ratio)


def measured(work: Work, processes: Sides[PluginProcess], repeats: int, clock: Clock = cpu) -> Compared:
    """Do the work in each process in turn; a first round in each, for imports and caches, does not count."""
    once = [timed(work, process, clock, 1) for process in processes.all]
    times = max(1, min(MAX_TIMES, round(MIN_SAMPLE / once[1])))
    samples: list[list[float]] = []
    began = perf_counter()
    while len(samples) < repeats and (len(samples) < MIN_REPEATS or perf_counter() - began < MAX_SECONDS):
        samples.append([timed(work, process, clock, times) for process in processes.all])
    return compared(samples, times)


def timed(work: Work, process: PluginProcess, clock: Clock, times: int) -> float:
    """Seconds."""
    started = clock(process)
    for _ in range(times):
        work(process)
    return clock(process) - started
