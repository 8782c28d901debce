"""What the agent costs beside the floor, with the project's goals.

In: how often to repeat. Out: one table.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import gevent

from benchmarks.answers import Json, after, prepared, spread
from benchmarks.measure import COMPARED, Clock, Compared, Work, cpu, side_by_side, wall
from benchmarks.plugins import Pair
from benchmarks.process import PluginProcess, both
from benchmarks.scenario import ANSWER, PROSE, SEARCH, Scenario, calling, chunks, filled, rounds
from benchmarks.start import in_memory, starting
from benchmarks.table import Goal, Row, Table
from tests.support.wire import json_message, text_message

RESULT = filled(PROSE, 12_000)
START_LIMIT = 1.1
MEMORY_LIMIT = 1.1
HEADINGS = ("case", *COMPARED)


@dataclass(frozen=True)
class Case:
    """Work that both do, and the ratio that is wanted."""

    name: str
    work: Work
    limit: float
    clock: Clock = cpu


def one_call(result: Sequence[Json]) -> Scenario:
    """A turn with one call, and the answer."""
    return Scenario([prepared(calling()), ANSWER], [prepared(result)])


def records(size: int) -> Json:
    """JSON of many small values, about so many bytes long."""
    return {"rows": [{"id": number, "name": f"row {number}", "ok": True} for number in range(size // 45)]}


def sources(count: int) -> list[Json]:
    """What Dify's knowledge node gives."""
    return [
        {
            "title": f"page {number}",
            "content": filled(PROSE, 400),
            "metadata": {"document_id": str(number), "score": 0.5, "_source": "knowledge"},
        }
        for number in range(count)
    ]


def with_sources(count: int) -> Scenario:
    return Scenario(params={**SEARCH, "context": sources(count)})


def at_once(count: int) -> Work:
    """So many runs, each with one call and an answer of 100 chunks at 50 a second."""
    scenario = Scenario([after(0.2, calling()), spread(0.02, chunks(100))], [after(0.1, [text_message(PROSE)])])

    def runs(process: PluginProcess) -> None:
        gevent.joinall([gevent.spawn(process.run, scenario) for _ in range(count)], raise_error=True)

    return runs


def playing(scenario: Scenario) -> Work:
    """One run of it."""
    return lambda process: process.run(scenario)


def cases() -> list[Case]:
    return [
        Case("10,000 chunks in a burst", playing(Scenario([prepared(chunks(10_000))])), 0.85),
        Case("24 rounds, results of 12 KB", playing(rounds(24, RESULT)), 1.25),
        Case("one run with one call", playing(one_call([text_message("found it")])), 2),
        Case("100 runs at once, by the wall clock", at_once(100), 1.1, clock=wall),
        Case("a JSON result of 200 KB", playing(one_call([json_message(records(200_000))])), 2),
        Case("1,000 sources in the context", playing(with_sources(1_000)), 4),
    ]


def table(repeats: int) -> Table:
    """One row a case; the last ones are about the plugin's process."""
    with both() as processes:
        rows = [measured(case, processes, repeats) for case in cases()]
    rows.append(row("the start of the process", starting(repeats), START_LIMIT))
    for name, compared in zip(
        ("memory when it serves", "memory after 100 runs"), in_memory(3, at_once(100)), strict=True
    ):
        rows.append(Row((name, *compared.cells_of_memory), Goal.at_most(MEMORY_LIMIT, compared.ratio)))
    return Table("Cost", HEADINGS, rows)


def measured(case: Case, processes: Pair[PluginProcess], repeats: int) -> Row:
    return row(case.name, side_by_side(case.work, processes, repeats, case.clock), case.limit)


def row(name: str, compared: Compared, limit: float) -> Row:
    return Row((name, *compared.cells), Goal.at_most(limit, compared.ratio))
