"""Memos, their status, and the decisions about them."""

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy.orm import Session
from tool_layer.database import Database
from tool_layer.errors import RefusedError

from memos.storage.models import Memo, MemoDecision
from memos.storage.repositories import DecisionRepository, MemoRepository, TaskRepository, existing_memo
from memos.values.rules import faults
from memos.values.schemas import Submission
from memos.values.status import MemoStatus
from memos.values.stored import StoredDecision, StoredMemo, StoredTask, as_asked, stored


class MemoApplicationService:
    def __init__(self, database: Database, memos: Callable[[Session], MemoRepository] = MemoRepository) -> None:
        self._database = database
        self._memos = memos

    def add(self, text: str) -> StoredMemo:
        """In the inbox."""
        with self._database.session() as session:
            memo = stored(StoredMemo, self._memos(session).add(Memo(text=text)))
            return as_asked(memo, {"text": text, "status": MemoStatus.INBOX})

    def memos(self) -> list[StoredMemo]:
        with self._database.session() as session:
            return stored(list[StoredMemo], self._memos(session).all())

    def update_status(self, memo_id: int, status: MemoStatus) -> StoredMemo:
        """Raises `RefusedError` for a memo that does not exist, or if the database did not keep the status."""
        with self._database.session() as session:
            memos = self._memos(session)
            memo = existing_memo(memos, memo_id)
            memo.status = status
            return as_asked(stored(StoredMemo, memos.refreshed(memo)), {"id": memo_id, "status": status})

    def decide(self, submission: Submission, conversation: str) -> StoredDecision:
        """Store the decision, in place of an earlier one, and give the memo its tasks.

        Raises:
            RefusedError: It names what does not exist, or says something else than the database. Nothing was stored.
        """
        with self._database.session() as session:
            memo = existing_memo(self._memos(session), submission.memo_id)
            tasks = TaskRepository(session)
            named = tasks.locked(submission.created_task_ids)
            known = {task.id: task for task in [*tasks.of_memo(memo.id), *named]}
            wrong = faults(submission, stored(StoredMemo, memo), stored(list[StoredTask], list(known.values())))
            if sentence := "; ".join(wrong):
                raise RefusedError(f"The decision was not stored: {sentence}.")
            for task in named:
                task.memo_id = memo.id
            saved = DecisionRepository(session).save(
                MemoDecision(
                    memo_id=memo.id,
                    payload=submission.as_decision.model_dump(mode="json"),
                    conversation=conversation,
                    decided_at=datetime.now(UTC).replace(tzinfo=None),
                )
            )
            return as_asked(stored(StoredDecision, saved), {"payload": submission.as_decision})

    def decision(self, memo_id: int) -> StoredDecision | None:
        with self._database.session() as session:
            found = DecisionRepository(session).of_memo(memo_id)
            return None if found is None else stored(StoredDecision, found)
