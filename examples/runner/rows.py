"""A line of the table: what a scenario did under a strategy, and whether it was right."""

from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict

from devhost import Run

from .scenarios import Cast


class Row(BaseModel):
    model_config = ConfigDict(frozen=True)

    example: str
    scenario: str
    strategy: str
    rounds: int = 0
    """Of all turns, as the strategy counts them in its summary."""
    tool_calls: int = 0
    """That reached a tool."""
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, played: Cast, runs: Sequence[Run], problems: Sequence[str]) -> Self:
        return cls(
            example=played.example,
            scenario=played.scenario,
            strategy=played.strategy,
            rounds=sum(_rounds(run) for run in runs),
            tool_calls=sum(run.asked.get("tool", 0) for run in runs),
            problems=tuple(problems),
        )


def _rounds(run: Run) -> int:
    """Of the strategy's summary, which is the last JSON; a tool may have sent something of the same name."""
    summaries = [entry["decision_summary"] for entry in run.outputs.json if "decision_summary" in entry]
    if summaries:
        return int(summaries[-1]["rounds"])
    return 0
