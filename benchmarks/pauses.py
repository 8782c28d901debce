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

LIMIT = 0.15
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
    """Seconds."""

    wall: float
    work: float
    """CPU time of this process."""
    whole_run: float
    """How long the run took that was the cause."""
    failed_with: str = ""
    longest_read: float = 0.0
    """CPU time in which the SDK read one line."""


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


def longest_pause(case: Case, size: int) -> Pause:
    """Play a case beside a stream; a small one before it, for imports and caches, does not count."""
    play(case.scenario(min(size, 1_000)), case.strategy)
    scenario = case.scenario(max(1, round(size * case.share)))
    gc.unfreeze()
    gc.collect()  # what other cases left behind
    gc.freeze()  # as main.py does
    with watched() as stream:
        started = perf_counter()
        played = play(scenario, case.strategy)
        took = perf_counter() - started
        del scenario
        stream.wait_for_more()
        moments = list(stream.moments)
    gaps = [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in pairwise(moments)]
    longest = max(wall for wall, _ in gaps), max(work for _, work in gaps)
    return Pause(*longest, took, played.failed_with, played.longest_read)


HEADINGS = ("beside", "size", "longest pause", "its CPU", "of it, one read", "whole run", "ends with")


def table(cases: Sequence[Case], size: int = SIZE) -> Table:
    """One row a case; the longest pause first."""
    pauses = sorted(((longest_pause(case, size), case) for case in cases), key=lambda item: -item[0].work)
    return Table("Pauses", HEADINGS, [row(case, pause, size) for pause, case in pauses])


def row(case: Case, pause: Pause, size: int) -> Row:
    numbers = (duration(seconds) for seconds in (pause.wall, pause.work, pause.longest_read, pause.whole_run))
    cells = (case.name, number_of_bytes(size * case.share), *numbers, pause.failed_with)
    return Row(cells, Goal.at_most(LIMIT, pause.work, " s"))
