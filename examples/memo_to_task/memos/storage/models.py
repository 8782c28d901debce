"""The tables, as migration 0002 leaves them."""

from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, Dialect, Enum, ForeignKey, String, TypeDecorator
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from memos.values.due_dates import LONGEST, read_due_date
from memos.values.status import MemoStatus, TaskStatus


class Base(DeclarativeBase):
    pass


class DueDateText(TypeDecorator[date]):
    """ISO 8601 keeps apart what a column of dates or of times alone would not: a day, and a day with a time."""

    impl = String(LONGEST)
    cache_ok = True

    def process_bind_param(self, value: date | None, _dialect: Dialect) -> str | None:
        return None if value is None else value.isoformat()

    def process_result_value(self, value: Any | None, _dialect: Dialect) -> date | None:  # noqa: ANN401 - of the driver
        return None if value is None else read_due_date(value)


def _enum(kind: type[StrEnum], name: str) -> Enum:
    """A type of PostgreSQL's own; in SQLite a text with a CHECK of the same name."""
    return Enum(kind, name=name, create_constraint=True, values_callable=lambda each: [status.value for status in each])


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


class Memo(Base):
    __tablename__ = "memos"

    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str]
    status: Mapped[MemoStatus] = mapped_column(_enum(MemoStatus, "memostatus"), default=MemoStatus.INBOX)
    created_at: Mapped[datetime] = mapped_column(default=_now)
    """In UTC, like every time here."""


class Task(Base):
    """No table refers to tasks: SQLite could not rebuild the table otherwise."""

    __tablename__ = "tasks"

    id: Mapped[int] = mapped_column(primary_key=True)
    memo_id: Mapped[int | None] = mapped_column(ForeignKey("memos.id"))
    """The memo whose decision names the task; null until there is one."""
    title: Mapped[str] = mapped_column(String(200))
    description: Mapped[str | None]
    due_date: Mapped[date | None] = mapped_column(DueDateText)
    status: Mapped[TaskStatus] = mapped_column(_enum(TaskStatus, "taskstatus"))
    tags: Mapped[list[str]] = mapped_column(JSON)
    project_title: Mapped[str | None] = mapped_column(String(200))
    created_at: Mapped[datetime] = mapped_column(default=_now)


class MemoDecision(Base):
    """The last decision about a memo; earlier ones are in `run_steps`."""

    __tablename__ = "decisions"

    memo_id: Mapped[int] = mapped_column(ForeignKey("memos.id"), primary_key=True)
    payload: Mapped[Any] = mapped_column(JSON)
    conversation: Mapped[str]
    decided_at: Mapped[datetime]
