"""What a loop has of a run: of its time, its budget, its log and its screen.

In: a strategy's wishes, as a LoopPart. Out: values that the loop reads.
"""

from dataclasses import dataclass

from internal.budget import Budget
from internal.host.clock import TOOL_PHASE_SHARE, Deadline


@dataclass(frozen=True)
class LoopPart:
    """What a loop has of a run: of its time, its log and its screen."""

    tool_share: float = TOOL_PHASE_SHARE
    """Of the run's time, from its beginning; then the tool phase ends."""
    end_share: float = 1
    """Then the closing answer ends."""
    maximum_iterations: int | None = None
    """Rounds in which tools may run, 0 for a closing answer alone; None for as many as the node allows."""
    is_seen: bool = True
    """Whether the user sees what the model says; files are forwarded in any case."""
    subtask: str | None = None
    """What of a plan it works on."""
    parent: str | None = None
    """The key of the log row that its rounds stand below."""
    asked: int = 0
    """Turns that an earlier loop below the same log row asked for."""
    closes_on_budget: bool = True
    """Whether a closing answer follows when the run's budget of tokens or tool calls is reached."""


@dataclass(frozen=True)
class LoopLimits:
    """What ends a loop."""

    maximum_iterations: int
    """Rounds in which tools may run."""
    tool_deadline: Deadline
    """Ends the tool phase."""
    end: Deadline
    """Ends the closing answer."""
    budget: Budget
    """Of the whole run; ends the tool phase, and wins over every other limit."""
    closes_on_budget: bool
    """Whether a closing answer follows when the budget is reached."""


@dataclass(frozen=True)
class Audience:
    """What the user sees of a loop."""

    show_thoughts: bool
    """Never where the user sees nothing of the loop."""
    is_seen: bool = True
    """Whether the user sees what the model says."""
    query: str = ""
    """What the user asked: it suggests the language in which silent rounds are announced."""
