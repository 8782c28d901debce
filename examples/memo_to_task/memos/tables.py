"""The tables, as the newest migration leaves them. Instants are in UTC; JSON is `jsonb` on PostgreSQL."""

from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Enum, ForeignKey, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from tool_layer.database import JSON_COLUMN, now

from .values import MemoStatus, Route, TaskStatus


class Base(DeclarativeBase):
    """Apart from the tables of `tool_layer`."""


def _values(kind: type[StrEnum]) -> list[str]:
    return [each.value for each in kind]


def _enum(kind: type[StrEnum], name: str) -> Enum:
    """A type of PostgreSQL's own; in SQLite a text with a CHECK of the same name."""
    return Enum(kind, name=name, create_constraint=True, values_callable=_values)


class MemoRow(Base):
    __tablename__ = "memos"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    text: Mapped[str]
    status: Mapped[MemoStatus] = mapped_column(_enum(MemoStatus, "memostatus"), default=MemoStatus.INBOX)
    created_at: Mapped[datetime] = mapped_column(default=now)


class TaskRow(Base):
    """No table refers to tasks: SQLite could not rebuild the table otherwise."""

    __tablename__ = "tasks"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    memo_id: Mapped[UUID] = mapped_column(ForeignKey("memos.id"))
    position: Mapped[int]
    """Among the tasks of the memo."""
    title: Mapped[str] = mapped_column(String(200))
    description: Mapped[str | None]
    due_date: Mapped[date | None]
    route: Mapped[Route | None] = mapped_column(Enum(Route, native_enum=False, length=20, values_callable=_values))
    status: Mapped[TaskStatus] = mapped_column(_enum(TaskStatus, "taskstatus"))
    tags: Mapped[list[str]] = mapped_column(JSON_COLUMN)
    project_title: Mapped[str | None] = mapped_column(String(200))
    created_at: Mapped[datetime] = mapped_column(default=now)


class DecisionRow(Base):
    """The last decision about a memo; earlier ones are in `run_steps`."""

    __tablename__ = "decisions"

    memo_id: Mapped[UUID] = mapped_column(ForeignKey("memos.id"), primary_key=True)
    payload: Mapped[Any] = mapped_column(JSON_COLUMN)
    conversation: Mapped[str]
    decided_at: Mapped[datetime] = mapped_column(default=now)
