"""What a model sends, and what the database holds: words, schemas and values. Ids are UUIDs.

The YAML of each tool says the schemas in words: Dify hands no schema of a plugin's own tool on.
"""

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator
from tool_layer.parsing import Day, Input

MAX_TASKS = 20


class MemoStatus(StrEnum):
    INBOX = "inbox"
    ACTIVE = "active"
    IDEA = "idea"
    ARCHIVE = "archive"


class TaskStatus(StrEnum):
    TODO = "todo"
    PROGRESS = "progress"
    WAITING = "waiting"
    DONE = "done"
    DRAFT = "draft"
    """Asks for a review or a consideration first; since migration 0002."""


class Route(StrEnum):
    NEXT_ACTION = "next_action"
    PROGRESS = "progress"
    WAITING = "waiting"
    CALENDAR = "calendar"


STATUS_OF: Mapping[Route | None, TaskStatus] = {
    Route.NEXT_ACTION: TaskStatus.TODO,
    Route.PROGRESS: TaskStatus.PROGRESS,
    Route.WAITING: TaskStatus.WAITING,
    Route.CALENDAR: TaskStatus.TODO,
    None: TaskStatus.DRAFT,
}
"""A task on the calendar is one to do, with a date; one without a route is a draft."""


type Title = Annotated[str, Field(min_length=1, max_length=200)]
type Tag = Annotated[str, Field(min_length=1, max_length=40)]
type Sentence = Annotated[str, Field(min_length=1, max_length=200)]
"""Short on purpose: a decision has reasons and rules, not a chain of thought."""


class TaskInput(Input):
    title: Title
    description: Annotated[str, Field(max_length=2000)] | None = None
    due_date: Day | None = None
    route: Route | None = None
    needs_review: bool = False
    """Such a task is a draft, and keeps the route that it will have after the review."""
    tags: Annotated[list[Tag], Field(max_length=10)] | None = None
    project_title: Title | None = None

    @model_validator(mode="after")
    def _dated(self) -> Self:
        if self.route is Route.CALENDAR and self.due_date is None:
            raise ValueError("the route calendar needs a due_date")
        return self

    @property
    def status(self) -> TaskStatus:
        return TaskStatus.DRAFT if self.needs_review else STATUS_OF[self.route]


class MemoTasks(Input):
    memo_id: UUID
    tasks: Annotated[list[TaskInput], Field(min_length=1, max_length=MAX_TASKS)]


class MemoUpdate(Input):
    memo_id: UUID
    status: MemoStatus


class NewMemo(Input):
    """From the command line."""

    text: Annotated[str, Field(min_length=1, max_length=10_000)]


class TaskReasons(Input):
    """Why one task got its route."""

    title: Title
    reasons: Annotated[list[Sentence], Field(min_length=1, max_length=3)]


class Submission(Input):
    """What the model says of a memo that it has processed. What the database knows is not asked from it."""

    memo_id: UUID
    memo_insights: Annotated[list[Sentence], Field(min_length=1, max_length=5)]
    applied_rules: Annotated[list[Sentence], Field(min_length=1, max_length=10)]
    task_reasons: Annotated[list[TaskReasons], Field(max_length=MAX_TASKS, default_factory=list)]
    safety_notes: Annotated[list[Sentence], Field(max_length=5)] | None = None
    confidence: Literal["low", "medium", "high"] | None = None


class _Held(BaseModel):
    """What the database holds."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class Memo(_Held):
    id: UUID
    text: str
    status: MemoStatus

    @property
    def message(self) -> str:
        """What the user sends to the agent."""
        return f"Memo {self.id}: {self.text}"


class Task(_Held):
    id: UUID
    memo_id: UUID
    title: Title
    description: str | None
    due_date: date | None
    route: Route | None
    status: TaskStatus
    tags: tuple[str, ...]
    project_title: str | None


class MappingReason(_Held):
    title: Title
    route: Route | None
    status: TaskStatus
    reasons: tuple[Sentence, ...]


class DecisionSummary(_Held):
    memo_insights: tuple[Sentence, ...]
    applied_rules: tuple[Sentence, ...]
    mapping_reasons: tuple[MappingReason, ...]
    safety_notes: tuple[Sentence, ...] | None
    confidence: Literal["low", "medium", "high"] | None


class Decision(_Held):
    """What became of a memo: the agent's answer."""

    created_task_ids: tuple[UUID, ...]
    suggested_memo_status: MemoStatus
    decision_summary: DecisionSummary
