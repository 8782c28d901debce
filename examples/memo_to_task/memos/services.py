"""What the tools and the command line may ask for; each call is one transaction."""

from collections.abc import Sequence
from uuid import UUID

from tool_layer.database import Database
from tool_layer.errors import RefusedError

from .decisions import decision, decision_to_review, draft_of, ends_without_evidence, faults
from .repositories import DecisionRepository, MemoRepository, TaskRepository
from .values import Decision, Memo, MemoStatus, Submission, Task, TaskInput


class MemoService:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, text: str) -> Memo:
        """In the inbox."""
        with self._database.session() as session:
            return MemoRepository(session).add(text)

    def memos(self) -> list[Memo]:
        """The oldest first."""
        with self._database.session() as session:
            return MemoRepository(session).all()

    def tasks(self, memo_id: UUID) -> list[Task]:
        with self._database.session() as session:
            return TaskRepository(session).of_memo(memo_id)

    def decision(self, memo_id: UUID) -> Decision | None:
        with self._database.session() as session:
            return DecisionRepository(session).of_memo(memo_id)

    def create_tasks(self, memo_id: UUID, wanted: Sequence[TaskInput]) -> list[Task]:
        """All, or none; and not a second time.

        Raises:
            RefusedError: There is no such memo, or it has tasks already.
        """
        with self._database.session() as session:
            MemoRepository(session).get(memo_id)
            tasks = TaskRepository(session)
            if before := tasks.of_memo(memo_id):
                listed = ", ".join(f"'{task.title}' ({task.status})" for task in before)
                raise RefusedError(
                    f"Nothing was created: the memo was processed before and has its tasks: {listed}. Go on with them."
                )
            return tasks.add(memo_id, wanted)

    def update_status(self, memo_id: UUID, status: MemoStatus) -> Memo:
        """Raises RefusedError: there is no such memo."""
        with self._database.session() as session:
            memos = MemoRepository(session)
            memos.get(memo_id)
            return memos.update(memo_id, status)

    def decide(self, submission: Submission, conversation: str) -> Decision:
        """Store what became of the memo, in place of an earlier decision.

        A memo in which the model finds nothing to do, without words of the memo that say so, becomes a draft for a
        person.

        Raises:
            RefusedError: Something has to be done first, or the reasons are not those of the memo's tasks.
        """
        with self._database.session() as session:
            memos = MemoRepository(session)
            memo = memos.get(submission.memo_id)
            tasks = TaskRepository(session).of_memo(memo.id)
            if ends_without_evidence(submission, memo, tasks):
                (draft,) = TaskRepository(session).add(memo.id, [draft_of(memo)])
                made = decision_to_review(submission, memos.update(memo.id, MemoStatus.ACTIVE), draft)
                return DecisionRepository(session).save(memo.id, made, conversation)
            if wrong := "; ".join(faults(submission, memo, tasks)):
                raise RefusedError(f"The decision was not stored: {wrong}.")
            return DecisionRepository(session).save(memo.id, decision(submission, memo, tasks), conversation)
