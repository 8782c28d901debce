"""Compares the agent with the floor: the seconds of each, their ratio, and its spread.

All plugins do the same work in turn, so that a busy moment of the machine affects each of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles
from time import perf_counter

from benchmarks.plugins import Sides
from benchmarks.process import PluginProcess
from benchmarks.table import duration, number_of_bytes

type Work = Callable[[PluginProcess], object]
"""The work that is timed."""
type Clock = Callable[[PluginProcess], float]


def cpu(process: PluginProcess) -> float:
    """Return the CPU time of the plugin's process alone, which is usable on a busy machine."""
    return process.cpu()


def wall(_process: PluginProcess) -> float:
    return perf_counter()


MIN_REPEATS = 3
MAX_SECONDS = 12.0
"""Maximum seconds of one comparison. Slow work is repeated less often."""
MIN_SAMPLE = 0.05
"""Minimum seconds of a sample of the floor. Shorter work is repeated within a sample."""
MAX_TIMES = 25
"""Maximum number of repeats within a sample."""


COMPARED = ("agent", "floor", "ratio", "spread", "cot_agent", "its ratio")


@dataclass(frozen=True)
class Compared:
    """Medians of the repeats, in seconds for times and in bytes for memory."""

    agent: float
    floor: float
    ratio: float
    spread: float
    """Half the distance between the quartiles of the ratio."""
    official: float | None = None
    """The median of Dify's own strategy; None if it is not measured."""
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
        """The agent's cost in excess of the floor's cost."""
        return self.agent - self.floor


def compared(samples: Sequence[Sequence[float]], times: int = 1) -> Compared:
    """Compare samples of the agent, the floor and possibly the official strategy. A sample has ``times`` runs."""
    ratios = [sample[0] / sample[1] for sample in samples]
    quarters = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    agent, floor, *official = [median(column) / times for column in zip(*samples, strict=True)]
    ours = Compared(agent, floor, median(ratios), (quarters[2] - quarters[0]) / 2)
    if not official:
        return ours
    official_ratio = median(sample[2] / sample[1] for sample in samples)
    return replace(ours, official=official[0], official_ratio=official_ratio)


def measured(work: Work, processes: Sides[PluginProcess], repeats: int, clock: Clock = cpu) -> Compared:
    """Do the work in each process in turn. A first round in each, which fills imports and caches, does not count."""
    once = [timed(work, process, clock, 1) for process in processes.all]
    times = max(1, min(MAX_TIMES, round(MIN_SAMPLE / once[1])))
    samples: list[list[float]] = []
    began = perf_counter()
    while len(samples) < repeats and (len(samples) < MIN_REPEATS or perf_counter() - began < MAX_SECONDS):
        samples.append([timed(work, process, clock, times) for process in processes.all])
    return compared(samples, times)


def timed(work: Work, process: PluginProcess, clock: Clock, times: int) -> float:
    """Return the seconds that the work takes, done ``times`` times."""
    started = clock(process)
    for _ in range(times):
        work(process)
    return clock(process) - started
