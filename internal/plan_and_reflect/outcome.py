"""How a subtask ended: what the answer, the variables and the log say of it.

In: a subtask's work. Out: a frozen SubtaskOutcome.
"""

from dataclasses import dataclass, replace
from typing import Self

from internal.conversation.quoted_results import unread_results
from internal.report.events import StopReason
from internal.state.records import FindingRecord


@dataclass(frozen=True)
class SubtaskOutcome:
    """How one subtask ended."""

    name: str
    answer: str
    completed: bool = False
    attempts: int = 0
    rounds: int = 0
    limit: StopReason | None = None
    """What ended its work too early; None if nothing did."""
    waits: bool = False
    """Whether calls of it wait for the user."""
    unread: tuple[str, ...] = ()
    """Tool results that its model did not put into words before the run's budget was reached."""

    @property
    def finding(self) -> FindingRecord:
        """What the final answer and later runs have of it."""
        return FindingRecord(subtask=self.name, answer=self.answer, completed=self.completed)

    def with_unread(self) -> Self:
        """The outcome with the unread results in its answer, cut short: what the final answer is written from."""
        if not self.unread:
            return self
        return replace(self, answer=f"{self.answer}\n\n{unread_results(self.unread)}", unread=())
