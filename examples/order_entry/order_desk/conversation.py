"""Conversations: messages with their data, and what the agent goes on from after a restart; both are in the database.

A message's data keeps what the front end sent apart from what the back end adds. Results of tools on their way and
what the agent remembers do not belong in it.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Literal

from ordering.storage import Base, prepare
from pydantic import BaseModel, ConfigDict
from sqlalchemy import URL, select
from sqlalchemy.orm import Mapped, mapped_column
from tool_layer.database import JSON_COLUMN, Database, now
from tool_layer.run_steps import Turn, add_turn

from devhost.conversation import KeptState

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e"})
"""JSON that cannot close the block around it: a name may hold anything."""


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FrontEndData(_Kept):
    """Where the user was when the message was written; the back end never changes it."""

    customer_number: str
    customer_name: str


class BackEndData(_Kept):
    saved_order_request_id: int | None = None
    referenced_order_request_id: int | None = None
    report: str | None = None


class ChatMessage(_Kept):
    role: Literal["user", "assistant"]
    text: str
    front_end: FrontEndData | None = None
    """Of the user's messages alone."""
    back_end: BackEndData = BackEndData()
    """Of the assistant's."""


class _MessageRow(Base):
    __tablename__ = "chat_messages"

    id: Mapped[int] = mapped_column(primary_key=True)
    conversation: Mapped[str] = mapped_column(index=True)
    message: Mapped[Any] = mapped_column(JSON_COLUMN)
    written_at: Mapped[datetime]


class _StateRow(Base):
    __tablename__ = "chat_states"

    conversation: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[str]
    waiting: Mapped[Any] = mapped_column(JSON_COLUMN)
    """The calls that wait for the user's approval."""


class Conversation:
    def __init__(self, url: URL, conversation: str) -> None:
        self.id = conversation
        self._database = Database(url, prepare)

    def add(self, message: ChatMessage, state: KeptState | None = None) -> None:
        """With the state that the agent goes on from; without one, that stays as it was. One transaction."""
        written = message.model_dump(mode="json")
        with self._database.session() as session:
            session.add(_MessageRow(conversation=self.id, message=written, written_at=now()))
            if state is not None:
                session.merge(_StateRow(conversation=self.id, state=state.text, waiting=list(state.waiting)))

    def add_turn(self, number: int, since: datetime) -> None:
        """To the run steps of the agent's run that has ended.

        The panel cannot do that for `request_order`, because its settings are part of what a yes approves.
        """
        add_turn(self._database, Turn(self.id, number), since)

    def messages(self) -> Sequence[ChatMessage]:
        """The oldest first."""
        query = select(_MessageRow).where(_MessageRow.conversation == self.id).order_by(_MessageRow.id)
        with self._database.session() as session:
            return [ChatMessage.model_validate(row.message) for row in session.scalars(query)]

    def state(self) -> KeptState:
        with self._database.session() as session:
            kept = session.get(_StateRow, self.id)
            return KeptState() if kept is None else KeptState(kept.state, tuple(kept.waiting))


def message_to_model(text: str, front_end: FrontEndData, history: Sequence[ChatMessage]) -> str:
    """What the user wrote, and what the next turn has to know from the data of the messages before it."""
    context = {**front_end.model_dump(exclude_defaults=True), **dict(_said_last(history))}
    written = json.dumps(context, ensure_ascii=False, indent=1).translate(_ESCAPES)
    return f"{text}\n\n<order_context>\n{written}\n</order_context>"


def _said_last(history: Sequence[ChatMessage]) -> Iterator[tuple[str, object]]:
    """Of each id the one that was made last."""
    added = [message.back_end for message in reversed(history)]
    for name in ("saved_order_request_id", "referenced_order_request_id"):
        if found := next((value for data in added if (value := getattr(data, name))), None):
            yield name, found
