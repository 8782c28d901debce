"""Measures parallel work: the tool calls of one turn, and the subtasks of a plan.

The model and the tool wait without using the CPU, so parallel work takes about as long as a single piece of work, by
the wall clock.
"""

from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Any

from dify_plugin import AgentStrategy

from benchmarks.answers import after
from benchmarks.scenario import PROSE, SEARCH, Agent, Scenario, calling, play
from benchmarks.table import Row, Table, duration
from strategies.gpt5_plan_and_reflect import GPT5PlanAndReflectStrategy
from tests.support.wire import calls, says, text_message

MODEL_SECONDS = 0.02
TOOL_SECONDS = 0.1
MANY = 8


def tool_calls(count: int, at_once: int = MANY) -> Scenario:
    """Return a run with one turn of this many calls."""
    turns = [after(MODEL_SECONDS, calling(count)), after(MODEL_SECONDS, says("Done."))]
    return Scenario(turns, [after(TOOL_SECONDS, [text_message(PROSE)])], SEARCH | {"parallel_tool_calls": at_once})


def subtasks(count: int, at_once: int = MANY) -> Scenario:
    """Return a run with a plan of this many subtasks, each with one call, an answer and a judgement."""
    plan = calls(("submit_plan", {"subtasks": [f"part {number}" for number in range(count)]}))
    judged = calls(("submit_reflection", {"is_completed": True, "advice": ""}))
    each = [calling(), says("Found."), judged]
    turns = [plan, *(turn for turn in each for _ in range(count)), says("Done.")]
    params = SEARCH | {"parallel_tool_calls": at_once, "maximum_subtasks": MANY}
    said = [after(TOOL_SECONDS, [text_message(PROSE)])]
    return Scenario([after(MODEL_SECONDS, turn) for turn in turns], said, params)


def table(repeats: int) -> Table:
    """Return a table that compares several calls or subtasks with a single one."""
    rows: list[Row] = []
    cases: Sequence[tuple[str, Any, type[AgentStrategy]]] = [
        ("calls of one turn", tool_calls, Agent),
        ("subtasks of a plan", subtasks, GPT5PlanAndReflectStrategy),
    ]
    for name, scenario, strategy in cases:
        one, many, queued = medians([scenario(1), scenario(MANY), scenario(MANY, 1)], strategy, repeats)
        rows += [
            Row((f"{name}: 1", duration(one), "1.00")),
            Row((f"{name}: {MANY}", duration(many), f"{many / one:.2f}")),
            Row((f"{name}: {MANY}, one call at a time", duration(queued), f"{queued / one:.2f}")),
        ]
    return Table("Overlap", ("case", "agent", "times one"), rows)


def medians(scenarios: Sequence[Scenario], strategy: type[AgentStrategy], repeats: int) -> list[float]:
    """Return the median seconds by the wall clock. The scenarios run in turn, and a first round does not count."""
    taken: list[list[float]] = [[] for _ in scenarios]
    for _ in range(repeats + 1):
        for scenario, times in zip(scenarios, taken, strict=True):
            started = perf_counter()
            if failed := play(scenario, strategy).failed_with:
                raise RuntimeError(f"{strategy.__name__} ended with {failed}, so there is nothing to measure")
            times.append(perf_counter() - started)
    return [median(times[1:]) for times in taken]
