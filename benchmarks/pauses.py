"""How long one run keeps the others of its process waiting.

In: cases, each a run that takes in a lot at once. Out: a table with the longest pause of another run's stream
meanwhile, by the wall clock and in CPU time of this process. The latter is what counts: on a busy machine the wall
clock also counts the work of others.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter, process_time

import gevent
from dify_plugin import AgentStrategy

from benchmarks.answers import Json, one_by_one
from benchmarks.scenario import Agent, Scenario, messages, play
from benchmarks.table import Goal, Row, Table, duration, number_of_bytes
from tests.support.wire import says

LIMIT = 0.05
"""Seconds that a stream may pause while another run takes in 2 MB of anything."""
SIZE = 2_000_000
"""Characters that a case takes in."""
BETWEEN_CHUNKS = 0.002
"""Seconds between two chunks of the stream that is watched."""


@dataclass(frozen=True)
class Case:
    """A run by its size in characters."""

    name: str
    scenario: Callable[[int], Scenario]
    share: float = 1
    """Of the size that is asked for; less where every character costs the SDK a chunk."""
    strategy: type[AgentStrategy] = Agent


@dataclass(frozen=True)
class Pause:
    """The longest one, in seconds."""

    wall: float
    cpu: float
    """CPU time of this process, without ``beyond``."""
    beyond: float
    """CPU time in which the SDK read one line as JSON, or Python collected garbage: no plugin can interrupt those."""


@dataclass(frozen=True)
class Beside:
    """What a case did to the stream beside it."""

    pause: Pause
    whole_run: float
    """Seconds by the wall clock."""
    failed_with: str = ""


class Collections:
    """When Python's collector began and ended, in CPU time."""

    def __init__(self) -> None:
        self.spans: list[tuple[float, float]] = []
        self._began = 0.0

    def __call__(self, phase: str, _info: object) -> None:
        if phase == "start":
            self._began = process_time()
        else:
            self.spans.append((self._began, process_time()))


@contextmanager
def collections() -> Iterator[Collections]:
    seen = Collections()
    gc.callbacks.append(seen)
    try:
        yield seen
    finally:
        gc.callbacks.remove(seen)


class Watched:
    """A run that streams small chunks until it is stopped; the moments of its messages are kept."""

    def __init__(self) -> None:
        self.moments: list[tuple[float, float]] = []
        self._is_stopped = False
        self._runner = gevent.spawn(self._run)

    def _run(self) -> None:
        for _ in messages(Agent, Scenario([one_by_one(self._chunks)], params={})):
            self.moments.append((perf_counter(), process_time()))

    def _chunks(self) -> Iterator[Json]:
        small, last = says("word ")
        while not self._is_stopped:
            yield small
            gevent.sleep(BETWEEN_CHUNKS)
        yield last

    def wait_for_more(self, count: int = 3) -> None:
        """Until so many more messages have come.

        Raises:
            RuntimeError: the run has ended, so no more will come.
        """
        known = len(self.moments)
        while len(self.moments) < known + count:
            if self._runner.ready():
                raise RuntimeError("the run whose stream is watched has ended") from self._runner.exception
            gevent.sleep(BETWEEN_CHUNKS)

    def stop(self) -> None:
        self._is_stopped = True
        self._runner.join()


@contextmanager
def watched() -> Iterator[Watched]:
    """Another run beside; only the moments of the body are kept."""
    stream = Watched()
    try:
        stream.wait_for_more()
        del stream.moments[:-1]
        yield stream
    finally:
        stream.stop()


def beside(case: Case, size: int) -> Beside:
    """Play a case beside a stream; a small one before it, for imports and caches, does not count."""
    play(case.scenario(min(size, 1_000)), case.strategy)
    scenario = case.scenario(max(1, round(size * case.share)))
    gc.unfreeze()
    gc.collect()  # what other cases left behind
    gc.freeze()  # as main.py does
    with collections() as collected, watched() as stream:
        started = perf_counter()
        played = play(scenario, case.strategy)
        took = perf_counter() - started
        del scenario
        stream.wait_for_more()
        moments = list(stream.moments)
    beyond = [*played.long_reads, *collected.spans]
    return Beside(longest_pause(moments, beyond), took, played.failed_with)


def longest_pause(moments: Sequence[tuple[float, float]], beyond: Sequence[tuple[float, float]]) -> Pause:
    """The pause between two moments, by wall clock and CPU time, in which the process did most but for these spans."""
    pauses: list[Pause] = []
    for (earlier, cpu_before), (later, cpu_after) in pairwise(moments):
        others = sum(end - began for began, end in beyond if cpu_before <= began and end <= cpu_after)
        pauses.append(Pause(later - earlier, cpu_after - cpu_before - others, others))
    return max(pauses, key=lambda pause: pause.cpu)


HEADINGS = ("beside", "size", "longest pause", "its CPU", "beyond", "whole run", "ends with")
MAX_ROWS = 15


def table(cases: Sequence[Case], size: int = SIZE) -> Table:
    """The cases with the longest pauses, all that miss the goal among them, and a row for the others."""
    measured = sorted(((beside(case, size), case) for case in cases), key=lambda item: -item[0].pause.cpu)
    rows = [row(case, result, size) for result, case in measured]
    shown = max(MAX_ROWS, sum(not row.goal.is_met for row in rows))
    if others := measured[shown:]:
        longest = others[0][0].pause
        most = ("", duration(longest.wall), duration(longest.cpu), duration(longest.beyond), "", "")
        rows[shown:] = [Row((f"{len(others)} others, at most", *most), Goal.at_most(LIMIT, longest.cpu, " s"))]
    return Table("Pauses", HEADINGS, rows)


def row(case: Case, result: Beside, size: int) -> Row:
    pause = result.pause
    numbers = (duration(seconds) for seconds in (pause.wall, pause.cpu, pause.beyond, result.whole_run))
    cells = (case.name, number_of_bytes(size * case.share), *numbers, result.failed_with)
    return Row(cells, Goal.at_most(LIMIT, pause.cpu, " s"))
