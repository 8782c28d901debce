"""The messages of conversations, in the database of the tools."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ordering.storage import seed
from sqlalchemy import JSON, URL, Connection, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from tool_layer.database import Database

from .messages import ChatMessage


class Base(DeclarativeBase):
    """Apart from the tables of the tools."""


class _MessageRow(Base):
    __tablename__ = "chat_messages"

    id: Mapped[int] = mapped_column(primary_key=True)
    conversation: Mapped[str] = mapped_column(index=True)
    message: Mapped[Any] = mapped_column(JSON)
    written_at: Mapped[datetime]
    """In UTC."""


def begin_again(url: URL) -> None:
    """Empty the tables of the tools, and put what they begin with into them.

    Raises:
        SetupError: the database cannot be opened.
    """
    with Database(url, seed.begin_again).session():
        pass


class MessageStore:
    def __init__(self, url: URL) -> None:
        self._database = Database(url, _prepare)

    def add(self, conversation: str, message: ChatMessage) -> None:
        with self._database.session() as session:
            now = datetime.now(UTC).replace(tzinfo=None)
            written = message.model_dump(mode="json")
            session.add(_MessageRow(conversation=conversation, message=written, written_at=now))

    def of(self, conversation: str) -> Sequence[ChatMessage]:
        """The oldest first."""
        query = select(_MessageRow).where(_MessageRow.conversation == conversation).order_by(_MessageRow.id)
        with self._database.session() as session:
            return [ChatMessage.model_validate(row.message) for row in session.scalars(query)]


def _prepare(connection: Connection) -> None:
    seed.prepare(connection)
    Base.metadata.create_all(connection)
