"""The audit trail: a row for every run of a tool, written before it and completed after it, also when it fails.

It is for the operator, not for the screen. The rows have transactions of their own, so that they stay when the tool's
own work is rolled back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Connection, inspect, select, text, update
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from .database import Database, now
from .envelope import JsonObject


@dataclass(frozen=True)
class Turn:
    """Where a tool is called: a conversation, and which message of its user the run answers."""

    conversation: str = ""
    """Empty if the node does not fill it in."""
    number: int | None = None
    """Counted from 1. None if the node does not fill it in."""


class Base(DeclarativeBase):
    """Apart from the tables of the plugin."""


class RunStep(Base):
    __tablename__ = "run_steps"

    id: Mapped[int] = mapped_column(primary_key=True)
    conversation: Mapped[str] = mapped_column(index=True)
    turn: Mapped[int | None]
    """Null in rows from before 2026-12 too, which did not have it."""
    tool: Mapped[str]
    # Plain JSON on PostgreSQL, too: jsonb refuses the character U+0000, which a model may send.
    input: Mapped[Any] = mapped_column(JSON)
    output: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    """Null while the tool runs, and for good if its process ended."""
    began_at: Mapped[datetime]
    """In UTC, like the next."""
    ended_at: Mapped[datetime | None]


def make_table(connection: Connection) -> None:
    """If it is missing. A table from before 2026-12 gets the column `turn`."""
    Base.metadata.create_all(connection)
    columns = inspect(connection).get_columns(RunStep.__tablename__)
    if "turn" not in {column["name"] for column in columns}:
        connection.execute(text("ALTER TABLE run_steps ADD COLUMN turn INTEGER"))


def recorded(
    database: Database, tool: str, turn: Turn, given: JsonObject, work: Callable[[], JsonObject]
) -> JsonObject:
    """Do the work between the two halves of its row; an exception completes the row too, and goes on."""
    with database.session() as session:
        step = RunStep(conversation=turn.conversation, turn=turn.number, tool=tool, input=given, began_at=now())
        session.add(step)
    try:
        output = work()
    except BaseException as error:
        _complete(database, step.id, {"exception": f"{type(error).__name__}: {error}"})
        raise
    _complete(database, step.id, output)
    return output


def _complete(database: Database, step_id: int, output: JsonObject) -> None:
    with database.session() as session:
        step = session.get_one(RunStep, step_id)
        step.output = output
        step.ended_at = now()


def add_turn(database: Database, turn: Turn, since: datetime) -> None:
    """To the steps of the conversation that began at `since` or later, and have none from the node's panel."""
    steps = update(RunStep).where(
        RunStep.conversation == turn.conversation, RunStep.turn.is_(None), RunStep.began_at >= since
    )
    with database.session() as session:
        session.execute(steps.values(turn=turn.number))


def steps_of(database: Database, conversation: str | None = None) -> Sequence[RunStep]:
    """Of one conversation, or of all; in the order in which they began."""
    query = select(RunStep).order_by(RunStep.id)
    if conversation is not None:
        query = query.where(RunStep.conversation == conversation)
    with database.session() as session:
        return session.scalars(query).all()
