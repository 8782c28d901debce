"""What the model sends, tool by tool. The YAML of each tool says it in words: Dify hands no schema on."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from tool_layer.parsing import Input

from .due_dates import DueDate
from .status import MemoStatus, Route, TaskStatus

MAX_TASKS = 20

type Id = Annotated[int, Field(ge=1, le=2_147_483_647)]
"""As large as an integer of PostgreSQL."""
type Title = Annotated[str, Field(min_length=1, max_length=200)]
type Sentence = Annotated[str, Field(min_length=1, max_length=200)]
"""Short on purpose: a decision has reasons and rules, not a chain of thought."""


class TaskInput(Input):
    title: Title
    description: Annotated[str, Field(max_length=2000)] | None = None
    due_date: DueDate | None = None
    route: Route | None = None
    tags: Annotated[list[Annotated[str, Field(min_length=1, max_length=40)]], Field(max_length=10)] | None = None
    project_title: Title | None = None

    @model_validator(mode="after")
    def _dated(self) -> Self:
        if self.route is Route.CALENDAR and self.due_date is None:
            raise ValueError("the route calendar needs a due_date")
        return self


class MemoTasks(Input):
    memo_id: Id
    tasks: Annotated[list[TaskInput], Field(min_length=1, max_length=MAX_TASKS)]


class NewMemo(Input):
    """From the command line."""

    text: Annotated[str, Field(min_length=1, max_length=10_000)]


class MemoUpdate(Input):
    memo_id: Id
    status: MemoStatus


class MappingReason(Input):
    """Why one task got its route."""

    title: Title
    route: Route | None
    status: TaskStatus
    """As stored."""
    reasons: Annotated[list[Sentence], Field(min_length=1, max_length=3)]


class DecisionSummary(Input):
    memo_insights: Annotated[list[Sentence], Field(min_length=1, max_length=5)]
    applied_rules: Annotated[list[Sentence], Field(min_length=1, max_length=10)]
    mapping_reasons: Annotated[list[MappingReason], Field(max_length=MAX_TASKS)]
    safety_notes: Annotated[list[Sentence], Field(max_length=5)] | None
    confidence: Literal["low", "medium", "high"] | None


class Decision(Input):
    """What became of a memo; the agent's answer has this schema."""

    created_task_ids: Annotated[list[Id], Field(max_length=MAX_TASKS)]
    suggested_memo_status: MemoStatus
    decision_summary: DecisionSummary


class Submission(Decision):
    memo_id: Id

    @property
    def as_decision(self) -> Decision:
        return Decision(**{name: getattr(self, name) for name in Decision.model_fields})
