"""What runs side by side: tool calls of one turn, and subtasks of a plan.

In: how often to repeat. Out: one table. The model and the tool wait without using the CPU, so what overlaps takes about
as long as one, by the wall clock.
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
    """One turn of so many calls."""
    turns = [after(MODEL_SECONDS, calling(count)), after(MODEL_SECONDS, says("Done."))]
    return Scenario(turns, [after(TOOL_SECONDS, [text_message(PROSE)])], SEARCH | {"parallel_tool_calls": at_once})


def subtasks(count: int, at_once: int = MANY) -> Scenario:
    """A plan of so many subtasks, each of which makes one call, answers and is judged."""
    plan = calls(("submit_plan", {"subtasks": [f"part {number}" for number in range(count)]}))
    judged = calls(("submit_reflection", {"is_completed": True, "advice": ""}))
    each = [calling(), says("Found."), judged]
    turns = [plan, *(turn for turn in each for _ in range(count)), says("Done.")]
    params = SEARCH | {"parallel_tool_calls": at_once, "maximum_subtasks": MANY}
    said = [after(TOOL_SECONDS, [text_message(PROSE)])]
    return Scenario([after(MODEL_SECONDS, turn) for turn in turns], said, params)


def table(repeats: int) -> Table:
    """Against one call, or one subtask."""
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
    """Seconds by the wall clock; the scenarios take turns, and a first round does not count."""
    taken: list[list[float]] = [[] for _ in scenarios]
    for _ in range(repeats + 1):
        for scenario, times in zip(scenarios, taken, strict=True):
            started = perf_counter()
            if failed := play(scenario, strategy).failed_with:
                raise RuntimeError(f"{strategy.__name__} ended with {failed}, so there is nothing to measure")
            times.append(perf_counter() - started)
    return [median(times[1:]) for times in taken]
