"""Measures how soon the user sees the first word of a plain answer, while the model could still call a tool.

The answer has 2,000 letters, and the model takes 1.6 seconds to write them. Times are by the wall clock.
"""

from itertools import batched
from pathlib import Path
from statistics import median

from benchmarks.answers import spread
from benchmarks.process import PluginProcess, side_by_side
from benchmarks.scenario import PROSE, SEARCH, Scenario, filled
from benchmarks.table import Goal, Row, Table, duration
from tests.support.wire import says

LETTERS = 2_000
LETTERS_EACH = 25
SECONDS_EACH = 0.02
LIMIT = 0.25
"""Maximum seconds until the first word of an answer that takes 1.6 seconds."""
NAMES = ("agent", "floor", "cot_agent")


def table(repeats: int, official: Path | None) -> Table:
    """Return a table with one row for each plugin. Only the agent has a goal."""
    words = ("".join(part) for part in batched(filled(PROSE, LETTERS), LETTERS_EACH))
    scenario = Scenario([spread(SECONDS_EACH, says(*words))], params=SEARCH)
    with side_by_side(official) as processes:
        taken = [[first_word(process, scenario) for process in processes.all] for _ in range(repeats + 1)][1:]
    medians = [median(column) for column in zip(*taken, strict=True)]
    rows = [Row((name, duration(seconds))) for name, seconds in zip(NAMES, medians, strict=False)]
    rows[0] = Row(rows[0].cells, Goal.at_most(LIMIT, medians[0], " s"))
    return Table("First word", ("of an answer of 1.6 s", "after"), rows)


def first_word(process: PluginProcess, scenario: Scenario) -> float:
    """Return the seconds until the first text of a run.

    Raises:
        RuntimeError: the run shows no text.
    """
    seconds = process.run(scenario).first_text
    if seconds is None:
        raise RuntimeError("the run shows no text, so there is nothing to measure")
    return seconds
