"""How the cost grows with what a run takes in.

In: how often to repeat, and the folder of the official strategy if it is measured too. Out: a table for each thing that
grows. What counts is the agent's time beyond the floor for each unit: it must not rise with the number of units, since
the agent would then grow faster than what it sends.
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
"""Of the time beyond the floor for each unit, against the row before; less than that is noise."""
NOISE = 0.25
"""Of what a unit takes the floor: a difference below it says nothing, also where the agent takes less."""


@dataclass(frozen=True)
class Growing:
    """A run by its number of units."""

    what: str
    """The units, in the plural."""
    sizes: Sequence[int]
    scenario: Callable[[int], Scenario]


def with_tools(count: int) -> Scenario:
    """Tools as a server of such tools describes them, with three parameters each."""
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
"""Texts in which a pattern for errors nearly matches again and again, each by its unit."""
ERROR_SIZES = (5, 10, 20)
"""KB of an error; a longer one loses its middle."""
SMALL_ERROR = 0.002
"""Seconds of an error, below which the measurement says nothing."""


def read_error(text: str) -> None:
    """All that an error of a tool or of a model goes through."""
    failure = HostFailure(text)
    failure.said_plainly()
    plain_reason(failure.reason, Redactor())
    error_text(failure.reason, KnownSecrets(Redactor()))


def seconds_of(work: Callable[[], None], repeats: int) -> float:
    """The shortest CPU time."""
    times = []
    for _ in range(repeats):
        began = process_time()
        work()
        times.append(process_time() - began)
    return min(times)


def errors_table(repeats: int) -> Table:
    """The agent alone, since the floor does not read errors."""
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
    """The first row has no goal, since there is nothing to compare it with."""
    before: float | None = None
    for count, compared in measured:
        each = compared.extra / count
        goal = Goal()
        if before is not None:
            most = MAX_RISE * max(before, NOISE * compared.floor / count)
            goal = Goal(f"≤ {duration(most)}", each <= most)
        yield Row((f"{count:,}", *compared.cells, duration(each)), goal)
        before = each
