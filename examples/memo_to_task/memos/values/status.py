"""Which status a task or a memo has, and what a route makes of a task."""

from collections.abc import Mapping
from enum import StrEnum


class TaskStatus(StrEnum):
    TODO = "todo"
    PROGRESS = "progress"
    WAITING = "waiting"
    DONE = "done"
    DRAFT = "draft"
    """Asks for a review or a consideration first; since migration 0002."""


class MemoStatus(StrEnum):
    INBOX = "inbox"
    ACTIVE = "active"
    IDEA = "idea"
    ARCHIVE = "archive"


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
