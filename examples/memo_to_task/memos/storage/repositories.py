"""Rows in and out of one session; what they mean is the services' business."""

from collections.abc import Iterable, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session
from tool_layer.errors import RefusedError

from .models import Memo, MemoDecision, Task


class TaskRepository:
    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, tasks: Sequence[Task]) -> Sequence[Task]:
        """As the database holds them: with their ids, and read again."""
        self._session.add_all(tasks)
        self._session.flush()
        for task in tasks:
            self._session.refresh(task)
        return tasks

    def locked(self, ids: Iterable[int]) -> Sequence[Task]:
        """Those with these ids; no other transaction changes them before this one ends."""
        query = select(Task).where(Task.id.in_(ids)).order_by(Task.id).with_for_update()
        return self._session.scalars(query).all()

    def of_memo(self, memo_id: int) -> Sequence[Task]:
        return self._session.scalars(select(Task).where(Task.memo_id == memo_id).order_by(Task.id)).all()

    def all(self) -> Sequence[Task]:
        return self._session.scalars(select(Task).order_by(Task.id)).all()


class MemoRepository:
    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, memo: Memo) -> Memo:
        self._session.add(memo)
        self._session.flush()
        return memo

    def locked(self, memo_id: int) -> Memo | None:
        """No other transaction changes it before this one ends."""
        return self._session.get(Memo, memo_id, with_for_update=True)

    def refreshed(self, memo: Memo) -> Memo:
        """As the database holds it."""
        self._session.flush()
        self._session.refresh(memo)
        return memo

    def all(self) -> Sequence[Memo]:
        return self._session.scalars(select(Memo).order_by(Memo.id)).all()


def existing_memo(memos: MemoRepository, memo_id: int) -> Memo:
    """Locked. Raises `RefusedError` if there is none."""
    memo = memos.locked(memo_id)
    if memo is None:
        raise RefusedError(f"There is no memo {memo_id}.")
    return memo


class DecisionRepository:
    def __init__(self, session: Session) -> None:
        self._session = session

    def save(self, decision: MemoDecision) -> MemoDecision:
        """In place of an earlier decision about the memo; as the database holds it."""
        saved = self._session.merge(decision)
        self._session.flush()
        self._session.refresh(saved)
        return saved

    def of_memo(self, memo_id: int) -> MemoDecision | None:
        return self._session.get(MemoDecision, memo_id)
