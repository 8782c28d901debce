"""Rows in and out of one session, as values that were checked; what they mean is the services' business.

What was written is read again: what leaves is what the database holds.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session
from tool_layer.database import now
from tool_layer.errors import RefusedError

from .tables import Base, DecisionRow, MemoRow, TaskRow
from .values import Decision, Memo, MemoStatus, Task, TaskInput


class Repository:
    def __init__(self, session: Session) -> None:
        self._session = session

    def _write(self, row: Base) -> None:
        self._session.add(row)
        self._session.flush()
        self._session.refresh(row)


class MemoRepository(Repository):
    def add(self, text: str) -> Memo:
        row = MemoRow(text=text)
        self._write(row)
        return Memo.model_validate(row)

    def get(self, memo_id: UUID) -> Memo:
        """No other transaction changes it before this one ends. Raises RefusedError if there is none."""
        row = self._session.get(MemoRow, memo_id, with_for_update=True)
        if row is None:
            raise RefusedError(f"There is no memo {memo_id}.")
        return Memo.model_validate(row)

    def update(self, memo_id: UUID, status: MemoStatus) -> Memo:
        row = self._session.get_one(MemoRow, memo_id)
        row.status = status
        self._write(row)
        return Memo.model_validate(row)

    def all(self) -> list[Memo]:
        rows = self._session.scalars(select(MemoRow).order_by(MemoRow.created_at, MemoRow.id))
        return [Memo.model_validate(row) for row in rows]


class TaskRepository(Repository):
    def add(self, memo_id: UUID, wanted: Sequence[TaskInput]) -> list[Task]:
        """In their order."""
        for position, each in enumerate(wanted):
            fields = each.model_dump(exclude={"needs_review", "tags"})
            tags = list(each.tags or ())
            self._write(TaskRow(memo_id=memo_id, position=position, status=each.status, tags=tags, **fields))
        return self.of_memo(memo_id)

    def of_memo(self, memo_id: UUID) -> list[Task]:
        query = select(TaskRow).where(TaskRow.memo_id == memo_id).order_by(TaskRow.position)
        return [Task.model_validate(row) for row in self._session.scalars(query)]


class DecisionRepository(Repository):
    def save(self, memo_id: UUID, decision: Decision, conversation: str) -> Decision:
        """In place of an earlier decision about the memo."""
        row = self._session.get(DecisionRow, memo_id) or DecisionRow(memo_id=memo_id)
        row.payload = decision.model_dump(mode="json")
        row.conversation = conversation
        row.decided_at = now()
        self._write(row)
        return Decision.model_validate(row.payload)

    def of_memo(self, memo_id: UUID) -> Decision | None:
        row = self._session.get(DecisionRow, memo_id)
        if row is None:
            return None
        return Decision.model_validate(row.payload)
