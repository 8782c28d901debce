"""Measures how the cost grows with the input of a run, in one table for each kind of input.

The measure is the agent's time for each unit in excess of the floor's time. If this time rises with the number of
units, the cost grows faster than the input.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time

from benchmarks import measure
from benchmarks.cost import RESULT, one_call, playing, records, with_history, with_sources
from benchmarks.measure import COMPARED, Compared
from benchmarks.plugins import Sides
from benchmarks.process import PluginProcess, side_by_side
from benchmarks.scenario import PROSE, Scenario, filled, rounds
from benchmarks.table import Goal, Row, Table, duration
from internal.calls.output import plain_reason
from internal.host.failures import HostFailure
from internal.render.log import error_text
from internal.text.secrets import KnownSecrets, Redactor
from tests.support.wire import json_message, parameter, text_message, tool

MAX_RISE = 1.25
"""Maximum ratio between the excess time for each unit and that of the previous row. A smaller rise is noise."""
NOISE = 0.25
"""Share of the floor's time for a unit. A smaller excess time is noise, even if it is negative."""


@dataclass(frozen=True)
class Growing:
    """A kind of run whose size is a number of units."""

    what: str
    """The name of the units in the plural."""
    sizes: Sequence[int]
    scenario: Callable[[int], Scenario]


def with_tools(count: int) -> Scenario:
    """Return a run with this many tools, described like those of a server, with three parameters each."""
    fields = [parameter(name, llm_description=PROSE) for name in ("query", "language", "limit")]
    return Scenario(params={"tools": [tool(f"tool{number}", *fields) for number in range(count)]})


CASES = [
    Growing("rounds", (10, 50, 100), lambda count: rounds(count, RESULT)),
    Growing("tools", (1, 50, 200, 600), with_tools),
    Growing("sources", (10, 100, 1_000), with_sources),
    Growing("messages of history", (20, 200, 2_000), with_history),
    Growing("KB of text", (1, 12, 200, 2_000), lambda size: one_call([text_message(filled(PROSE, size * 1_000))])),
    Growing("KB of JSON", (1, 12, 200, 2_000), lambda size: one_call([json_message(records(size * 1_000))])),
]


HOSTILE = {
    "cookies": "cookie:",
    "cookies in JSON": 'cookie\\": \\"a=b; ',
    "passwords": "password ",
    "keys in prose": "API key is ",
    "spaces": " ",
    "ids": " org-",
    "odd paths": "=/",
    "paths": " /usr/lib/a.py",
    "addresses": "http://user:word@host/ ",
    "backslashes": "\\",
    "tracebacks": "Traceback (most recent call last):\n File ",
    "tokens": "eyJ-",
}
"""The repeated units of texts in which a pattern for errors almost matches again and again, by name."""
ERROR_SIZES = (5, 10, 20)
"""Sizes of an error in KB. A longer error loses its middle."""
SMALL_ERROR = 0.002
"""Seconds for one error below which a measurement is noise."""


def read_error(text: str) -> None:
    """Run all the processing of an error of a tool or a model."""
    failure = HostFailure(text)
    failure.said_plainly()
    plain_reason(failure.reason, Redactor())
    error_text(failure.reason, KnownSecrets(Redactor()))


def seconds_of(work: Callable[[], None], repeats: int) -> float:
    """Return the shortest CPU time of the work in seconds."""
    times = []
    for _ in range(repeats):
        began = process_time()
        work()
        times.append(process_time() - began)
    return min(times)


def errors_table(repeats: int) -> Table:
    """Return the table of errors for the agent alone, because the floor does not parse errors."""
    measured: list[Row] = []
    for name, unit in HOSTILE.items():
        before: float | None = None
        for size in ERROR_SIZES:
            text = f"x{filled(unit, size * 1_000)}x"
            took = seconds_of(partial(read_error, text), repeats)
            goal = Goal()
            if before is not None:
                most = MAX_RISE * max(before, SMALL_ERROR / size)
                goal = Goal(f"≤ {duration(most)}", took / size <= most)
            measured.append(Row((name, str(size), duration(took), duration(took / size)), goal))
            before = took / size
    return Table("Growth: KB of an error", ("of", "KB", "agent", "each"), measured)


def tables(repeats: int, official: Path | None) -> Iterator[Table]:
    yield errors_table(repeats)
    with side_by_side(official) as processes:
        for case in CASES:
            yield table(case, processes, repeats)


def table(case: Growing, processes: Sides[PluginProcess], repeats: int) -> Table:
    measured = [(size, measure.measured(playing(case.scenario(size)), processes, repeats)) for size in case.sizes]
    return Table(f"Growth: {case.what}", (case.what, *COMPARED, "beyond, each"), list(rows(measured)))


def rows(measured: Sequence[tuple[int, Compared]]) -> Iterator[Row]:
    """Yield the rows. The first row has no goal, because there is nothing to compare it with."""
    before: float | None = None
    for count, compared in measured:
        each = compared.extra / count
        goal = Goal()
        if before is not None:
            most = MAX_RISE * max(before, NOISE * compared.floor / count)
            goal = Goal(f"≤ {duration(most)}", each <= most)
        yield Row((f"{count:,}", *compared.cells, duration(each)), goal)
        before = each
