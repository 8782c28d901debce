"""A run in a line: what was asked, what came of it, what it cost."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

type State = Literal["answered", "failed", "running", "killed"]
STATES: tuple[State, ...] = ("answered", "failed", "running", "killed")


class Summary(BaseModel):
    """What the files of a run say. Seconds, tokens and rounds are the sums of its turns."""

    model_config = ConfigDict(frozen=True)

    name: str
    changed: float
    """When the newest of its files changed, in seconds since 1970."""
    started: AwareDatetime | None = None
    command: str = ""
    example: str = ""
    strategy: str = ""
    model: str = ""
    questions: tuple[str, ...] = ()
    answer: str = ""
    """Of the last turn."""
    error: str = ""
    words: str = ""
    """How the last turn ended."""
    level: Literal["", "good", "limited", "bad"] = ""
    is_unfinished: bool = False
    """The last turn has no end, or none has begun."""
    seconds: float = 0
    tokens: int = 0
    rounds: int = 0
    of: str = ""
    """The run that this one is a fork of."""
    problem: str = ""
    """Why its file is not a trace."""


@dataclass(frozen=True)
class Listed:
    """A summary, and whether a process still writes the trace."""

    summary: Summary
    is_written: bool

    @property
    def state(self) -> State:
        if self.summary.is_unfinished:
            return "running" if self.is_written else "killed"
        return "failed" if self.summary.level == "bad" else "answered"

    @property
    def waits(self) -> bool:
        """For the next question."""
        return self.is_written and not self.summary.is_unfinished

    @property
    def words(self) -> str:
        return self.state if self.summary.is_unfinished else self.summary.words

    @property
    def level(self) -> str:
        if self.summary.is_unfinished:
            return "live" if self.is_written else "bad"
        return self.summary.level

    @property
    def question(self) -> str:
        return next((question for question in self.summary.questions if question.strip()), "not asked yet")

    @property
    def when(self) -> datetime:
        """In the time zone of this machine."""
        return (self.summary.started or datetime.fromtimestamp(self.summary.changed).astimezone()).astimezone()

    @cached_property
    def searched(self) -> str:
        """All that a search looks at."""
        found = self.summary
        facts = (found.name, found.example, found.strategy, found.model, found.error, self.words, found.answer)
        return "\n".join((*facts, *found.questions)).casefold()
