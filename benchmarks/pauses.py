"""How long one run keeps the others waiting: `python -m benchmarks pauses`.

In: cases, each a run that takes in a lot at once. Out: for each case the longest pause of another run's stream in the
same process, by the clock and in time of this process's own work. Only the latter is the plugin's on a busy machine.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter, process_time
from typing import Any

import gevent
from dify_plugin.entities.agent import AgentInvokeMessage

from benchmarks.line_host import Answer, Failure, Json, LineHost, one_by_one
from devhost.models.backend import chunk
from internal.agent import FUNCTION_CALLING, Blueprint, run_agent
from tests.support.wire import MODEL, model

LIMIT = 0.15
"""Seconds that a stream may pause while another run takes in 2 MB of anything."""
BETWEEN_CHUNKS = 0.002
"""Seconds between two chunks of the stream that is watched."""


@dataclass(frozen=True)
class Scenario:
    """A run: what the node gives, and what model and tools bring."""

    model: Sequence[Answer | Failure]
    tools: Sequence[Answer | Failure] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    blueprint: Blueprint[Any] = FUNCTION_CALLING


@dataclass(frozen=True)
class Case:
    """A name, and the scenario by its size in characters."""

    name: str
    scenario: Callable[[int], Scenario]
    share: float = 1
    """Of the size that is asked for; less where every character costs the SDK a chunk."""


@dataclass(frozen=True)
class Pause:
    """Seconds."""

    wall: float
    work: float
    """Of the process's own work."""
    whole_run: float
    """How long the run took that was the cause."""
    ended_with: str = ""
    """The class of an exception."""
    longest_read: float = 0.0
    """Of the SDK's reading of one line."""


@dataclass(frozen=True)
class Played:
    """What became of a run."""

    ended_with: str
    longest_read: float


def play(scenario: Scenario) -> Played:
    """Run it as the SDK does, every message written."""
    host = LineHost(scenario.model, scenario.tools)
    params = {"model": model(), "query": "?", **scenario.params}
    try:
        for message in run_agent(params, host.session(), scenario.blueprint):
            _write(host, message)
    except Exception as failure:  # noqa: BLE001 - some cases are failures
        return Played(type(failure).__name__, host.longest_read)
    return Played("", host.longest_read)


def _write(host: LineHost, message: AgentInvokeMessage) -> None:
    host.session_message("s", host.stream_object(message))


class Watched:
    """A run that streams small chunks until it is stopped; the moments of its messages are kept."""

    def __init__(self) -> None:
        self.moments: list[tuple[float, float]] = []
        self._is_stopped = False
        self._runner = gevent.spawn(self._run)

    def _run(self) -> None:
        host = LineHost([one_by_one(self._chunks)], [])
        for message in run_agent({"model": model(), "query": "?"}, host.session(), FUNCTION_CALLING):
            _write(host, message)
            self.moments.append((perf_counter(), process_time()))

    def _chunks(self) -> Iterator[Json]:
        while not self._is_stopped:
            yield chunk(MODEL, text="word ")
            gevent.sleep(BETWEEN_CHUNKS)
        yield chunk(MODEL, text="end.", finish_reason="stop")

    def wait_for_more(self, count: int = 3) -> None:
        """Until so many more messages have come.

        Raises:
            RuntimeError: the run has ended, and none will come.
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
    """Another run beside, whose moments are those of the body alone."""
    stream = Watched()
    try:
        stream.wait_for_more()
        del stream.moments[:-1]
        yield stream
    finally:
        stream.stop()


def longest_pause(case: Case, size: int) -> Pause:
    """Run a case beside a stream; a small one comes before, uncounted: it pays for imports and caches."""
    play(case.scenario(min(size, 1_000)))
    scenario = case.scenario(max(1, round(size * case.share)))
    gc.unfreeze()
    gc.collect()  # what other cases left behind is not this one's
    gc.freeze()  # as main.py does
    with watched() as stream:
        started = perf_counter()
        played = play(scenario)
        took = perf_counter() - started
        del scenario
        stream.wait_for_more()
        moments = list(stream.moments)
    gaps = [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in pairwise(moments)]
    longest = max(wall for wall, _ in gaps), max(work for _, work in gaps)
    return Pause(*longest, took, played.ended_with, played.longest_read)


HEADINGS = ("size", "pause", "own work", "whole run")
_COLUMN = 10


def table(cases: Sequence[Case], size: int) -> Iterator[str]:
    """Headings, then a line for each case as soon as it was run; at the end what was over the limit."""
    width = max(len(case.name) for case in cases)
    yield "  ".join(["case".ljust(width), *(heading.rjust(_COLUMN) for heading in HEADINGS)])
    over = 0
    for case in cases:
        pause = longest_pause(case, size)
        over += pause.work > LIMIT
        yield "  ".join([case.name.ljust(width), *cells(case, size, pause)]).rstrip()
    yield f"{over} of {len(cases)} cases over {LIMIT:g} s of its own work"


def cells(case: Case, size: int, pause: Pause) -> tuple[str, ...]:
    """What stands in a line beside the name; last of all what is to be said of it."""
    numbers = (
        f"{size * case.share / 1_000_000:.3g} MB",
        f"{pause.wall:.3f} s",
        f"{pause.work:.3f} s",
        f"{pause.whole_run:.2f} s",
    )
    over = f"over {LIMIT:g} s, {pause.longest_read:.3f} s of it the SDK's reading" if pause.work > LIMIT else ""
    said = "; ".join(part for part in (over, pause.ended_with) if part)
    return *(number.rjust(_COLUMN) for number in numbers), said
