"""What a model sends, and what the database holds: words, schemas and values. Ids are UUIDs.

The YAML of each tool says the schemas in words: Dify hands no schema of a plugin's own tool on.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from enum import StrEnum
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
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


class Rule(StrEnum):
    """The rules by which a memo becomes what it is. The list is closed: a decision rests on one of them."""

    QUICK_ACTION = "quick_action<=2min→PROGRESS"
    DELEGATED = "delegated→WAITING"
    DATE_FOUND = "date_found→calendar"
    NEXT_STEP = "next_step→next_action"
    PROJECT_FIRST_STEP = "project_first_step→next_action"
    PROJECT_LATER_STEP = "project_later_step→progress"
    REVIEW_REQUESTED = "review_requested→DRAFT"
    NOT_ACTIONABLE = "not_actionable→idea"


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
        if self.needs_review:
            return TaskStatus.DRAFT
        return STATUS_OF[self.route]


class MemoTasks(Input):
    memo_id: UUID
    tasks: Annotated[list[TaskInput], Field(min_length=1, max_length=MAX_TASKS)]


class MemoUpdate(Input):
    memo_id: UUID
    status: MemoStatus


class NewMemo(Input):
    """From the command line."""

    text: Annotated[str, Field(min_length=1, max_length=10_000)]


class AppliedRule(Input):
    """A rule, and the memo's words that it rests on."""

    rule: Rule
    quote: Sentence


class TaskReasons(Input):
    """Why one task got its route."""

    title: Title
    reasons: Annotated[list[Sentence], Field(min_length=1, max_length=3)]


class Submission(Input):
    """What the model says of a memo that it has processed. What the database knows is not asked from it."""

    memo_id: UUID
    memo_insights: Annotated[list[Sentence], Field(min_length=1, max_length=5)]
    applied_rules: Annotated[list[AppliedRule], Field(min_length=1, max_length=10)]
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
    route: Route
    status: TaskStatus
    reasons: tuple[Sentence, ...]


class DecisionSummary(_Held):
    memo_insights: tuple[Sentence, ...]
    applied_rules: tuple[Sentence, ...]
    quotations: tuple[Sentence, ...] = ()
    """The memo's words for each rule, in the same order; empty in a decision from before 2026-12."""
    mapping_reasons: tuple[MappingReason, ...]
    safety_notes: tuple[Sentence, ...] | None
    confidence: Literal["low", "medium", "high"] | None

    @field_validator("mapping_reasons", mode="before")
    @classmethod
    def _with_a_route(cls, reasons: Sequence[object]) -> list[object]:
        """A decision from before 2026-12 can name tasks that have no route."""
        return [each for each in reasons if not isinstance(each, dict) or each["route"] is not None]


class Decision(_Held):
    """What became of a memo: the agent's answer."""

    created_task_ids: tuple[UUID, ...]
    suggested_memo_status: MemoStatus
    decision_summary: DecisionSummary
