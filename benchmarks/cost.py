"""Compares the cost of the agent with the smallest strategy (the floor), with the project's goals."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gevent

from benchmarks import measure
from benchmarks.answers import Json, after, prepared, spread
from benchmarks.measure import COMPARED, Clock, Compared, Work, cpu, wall
from benchmarks.plugins import Sides
from benchmarks.process import PluginProcess, side_by_side
from benchmarks.scenario import ANSWER, FEATURES, PROSE, SEARCH, Scenario, calling, chunks, filled, rounds
from benchmarks.start import in_memory, starting
from benchmarks.table import Goal, Row, Table
from tests.support.wire import json_message, model, parameter, says, text_message, tool

RESULT = filled(PROSE, 12_000)
TOOL_SECONDS = 0.25
HEADINGS = ("case", *COMPARED)


@dataclass(frozen=True)
class Case:
    """Work for both strategies, and the maximum ratio between them."""

    name: str
    work: Work
    limit: float
    clock: Clock = cpu


def one_answer() -> Scenario:
    """Return a run with an answer of a few chunks. Two tools are offered, and none is called."""
    tools = [tool(name, parameter("q")) for name in ("search", "look_up")]
    return Scenario([prepared(says("An ", "answer ", "of ", "a few ", "chunks."))], params={"tools": tools})


def one_call(result: Sequence[Json]) -> Scenario:
    """Return a run with a turn of one call, and the answer."""
    return Scenario([prepared(calling()), ANSWER], [prepared(result)])


def records(size: int) -> Json:
    """Return JSON of many small values with about this many bytes."""
    return {"rows": [{"id": number, "name": f"row {number}", "ok": True} for number in range(size // 45)]}


def sources(count: int) -> list[Json]:
    """Return sources in the form of Dify's knowledge node."""
    return [
        {
            "title": f"page {number}",
            "content": filled(PROSE, 400),
            "metadata": {"document_id": str(number), "score": 0.5, "_source": "knowledge"},
        }
        for number in range(count)
    ]


def with_history(count: int) -> Scenario:
    """Return a run with earlier questions and answers of 400 characters, without thoughts."""
    roles = ("user", "assistant")
    messages = [{"role": roles[turn % 2], "content": filled(PROSE, 400)} for turn in range(count)]
    sent = model(features=FEATURES, history_prompt_messages=messages, context_size=4_000_000)
    return Scenario(params={"model": sent})


def with_sources(count: int) -> Scenario:
    return Scenario(params={**SEARCH, "context": sources(count)})


def at_once(count: int) -> Work:
    """Return work of several simultaneous runs, each with one call and an answer of 100 chunks at 50 a second."""
    scenario = Scenario([after(0.2, calling()), spread(0.02, chunks(100))], [after(0.1, [text_message(PROSE)])])

    def runs(process: PluginProcess) -> None:
        gevent.joinall([gevent.spawn(process.run, scenario) for _ in range(count)], raise_error=True)

    return runs


def many_calls(count: int) -> Scenario:
    """Return a run with a turn of several calls of a slow tool, and the answer."""
    return Scenario([prepared(calling(count)), ANSWER], [after(TOOL_SECONDS, [text_message(PROSE)])])


def playing(scenario: Scenario) -> Work:
    """Return the work of running a scenario once."""
    return lambda process: process.run(scenario)


def cases() -> list[Case]:
    return [
        Case("one answer of a few chunks", playing(one_answer()), 1.3),
        Case("one run with one call", playing(one_call([text_message("found it")])), 2),
        Case("24 rounds of one call, results of 12 KB", playing(rounds(24, RESULT, words=0)), 1.1),
        Case("the same with 25 chunks a round", playing(rounds(24, RESULT)), 1.1),
        Case("1,000 sources in the context", playing(with_sources(1_000)), 2),
        Case("a JSON result of 200 KB", playing(one_call([json_message(records(200_000))])), 1.2),
        Case("2,000 messages of history", playing(with_history(2_000)), 1.4),
        Case("10,000 chunks in a burst", playing(Scenario([prepared(chunks(10_000))])), 0.3),
        Case("100 runs at once, by the wall clock", at_once(100), 1.05, clock=wall),
        Case("8 calls of 0.25 s in one turn, by the wall clock", playing(many_calls(8)), 1.03, clock=wall),
    ]


def table(repeats: int, official: Path | None) -> Table:
    """Return a table with one row for each case. The last rows are about the plugin's process."""
    with side_by_side(official) as processes:
        rows = [measured(case, processes, repeats) for case in cases()]
    start = starting(repeats, official, playing(one_answer()))
    rows.append(row("the start of the process", start.serves, 1))
    rows.append(row("the start and the first run", start.has_worked, 1))
    memory = in_memory(3, official, at_once(100))
    for name, compared, limit in (
        ("memory when it serves", memory.serves, 1.03),
        ("memory after 100 runs", memory.has_worked, 1.1),
    ):
        rows.append(Row((name, *compared.cells_of_memory), Goal.at_most(limit, compared.ratio)))
    return Table("Cost", HEADINGS, rows)


def measured(case: Case, processes: Sides[PluginProcess], repeats: int) -> Row:
    return row(case.name, measure.measured(case.work, processes, repeats, case.clock), case.limit)


def row(name: str, compared: Compared, limit: float) -> Row:
    return Row((name, *compared.cells), Goal.at_most(limit, compared.ratio))
