"""The audit trail: a row for every run of a tool, written before it and completed after it, also when it fails.

It is for the operator, not for the screen. The rows have transactions of their own, so that they stay when the tool's
own work is rolled back.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Connection, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from .database import Database, now
from .envelope import JsonObject


class Base(DeclarativeBase):
    """Apart from the tables of the plugin."""


class RunStep(Base):
    __tablename__ = "run_steps"

    id: Mapped[int] = mapped_column(primary_key=True)
    conversation: Mapped[str] = mapped_column(index=True)
    """Empty if the node does not fill it in."""
    tool: Mapped[str]
    # Plain JSON on PostgreSQL, too: jsonb refuses the character U+0000, which a model may send.
    input: Mapped[Any] = mapped_column(JSON)
    output: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    """Null while the tool runs, and for good if its process ended."""
    began_at: Mapped[datetime]
    """In UTC, like the next."""
    ended_at: Mapped[datetime | None]


def make_table(connection: Connection) -> None:
    Base.metadata.create_all(connection)


def recorded(
    database: Database, tool: str, conversation: str, given: JsonObject, work: Callable[[], JsonObject]
) -> JsonObject:
    """Do the work between the two halves of its row; an exception completes the row too, and goes on."""
    with database.session() as session:
        step = RunStep(tool=tool, conversation=conversation, input=given, began_at=now())
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
        step.output, step.ended_at = output, now()


def steps_of(database: Database, conversation: str | None = None) -> Sequence[RunStep]:
    """Of one conversation, or of all; in the order in which they began."""
    query = select(RunStep).order_by(RunStep.id)
    if conversation is not None:
        query = query.where(RunStep.conversation == conversation)
    with database.session() as session:
        return session.scalars(query).all()
