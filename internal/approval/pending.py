"""A call that waits for the user's approval, as the user sees it: in the question, and in ``pending_calls``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PendingCall:
    """A call that the user is asked about."""

    id: str
    """As ``identity.call_id`` makes it; the user may answer by it."""
    tool: str
    arguments: Mapping[str, Any]
    subtask: str | None = None
    """The subtask of a plan that it belongs to."""

    def as_variable(self) -> dict[str, Any]:
        """One item of the variable ``pending_calls``."""
        item = {"id": self.id, "tool": self.tool, "arguments": dict(self.arguments)}
        return item if self.subtask is None else {**item, "subtask": self.subtask}
