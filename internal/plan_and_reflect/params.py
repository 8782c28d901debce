"""The parameters that only planning has."""

from collections.abc import Mapping
from typing import Any

from internal.node.panel_values import Limits, read_number
from internal.node.params import StrategyParams
from internal.state.records import MAX_SUBTASKS
from internal.text.notes import Note

MAXIMUM_SUBTASKS = Limits(1, 4, MAX_SUBTASKS)
MAXIMUM_ATTEMPTS = Limits(1, 3, 5)


class PlanAndReflectParams(StrategyParams):
    """The common parameters, and how far a plan may go."""

    maximum_subtasks: int = MAXIMUM_SUBTASKS.default
    """Subtasks of one plan."""
    maximum_attempts: int = MAXIMUM_ATTEMPTS.default
    """Attempts at one subtask, each with its own rounds."""

    @classmethod
    def _read_values(cls, raw: Mapping[str, Any], note: Note) -> dict[str, object]:
        return {
            **super()._read_values(raw, note),
            "maximum_subtasks": read_number("maximum_subtasks", raw.get("maximum_subtasks"), MAXIMUM_SUBTASKS, note),
            "maximum_attempts": read_number("maximum_attempts", raw.get("maximum_attempts"), MAXIMUM_ATTEMPTS, note),
        }
