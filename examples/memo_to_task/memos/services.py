"""What the tools and the command line may ask for; each call is one transaction."""

from collections.abc import Callable, Sequence
from uuid import UUID

from sqlalchemy.orm import Session
from tool_layer.database import Database
from tool_layer.errors import RefusedError

from .decisions import decision, faults
from .repositories import NOT_KEPT, DecisionRepository, MemoRepository, TaskRepository
from .values import Decision, Memo, MemoStatus, Submission, Task, TaskInput


class MemoService:
    def __init__(
        self,
        database: Database,
        memos: Callable[[Session], MemoRepository] = MemoRepository,
        tasks: Callable[[Session], TaskRepository] = TaskRepository,
    ) -> None:
        self._database = database
        self._memos = memos
        self._tasks = tasks

    def add(self, text: str) -> Memo:
        """In the inbox."""
        with self._database.session() as session:
            return self._memos(session).add(text)

    def memos(self) -> list[Memo]:
        """The oldest first."""
        with self._database.session() as session:
            return self._memos(session).all()

    def tasks(self, memo_id: UUID) -> list[Task]:
        with self._database.session() as session:
            return self._tasks(session).of_memo(memo_id)

    def decision(self, memo_id: UUID) -> Decision | None:
        with self._database.session() as session:
            return DecisionRepository(session).of_memo(memo_id)

    def create_tasks(self, memo_id: UUID, wanted: Sequence[TaskInput]) -> list[Task]:
        """All, or none; and not a second time.

        Raises:
            RefusedError: There is no such memo, it has tasks already, or the database holds something else than what
                was wanted. Nothing was stored.
        """
        with self._database.session() as session:
            self._memos(session).get(memo_id)
            tasks = self._tasks(session)
            if before := tasks.of_memo(memo_id):
                listed = ", ".join(f"'{task.title}' ({task.status})" for task in before)
                raise RefusedError(
                    f"Nothing was created: the memo was processed before and has its tasks: {listed}. Go on with them."
                )
            created = tasks.add(memo_id, wanted)
            if [_asked(task) for task in created] != [_wanted(each) for each in wanted]:
                raise RefusedError(NOT_KEPT)
            return created

    def update_status(self, memo_id: UUID, status: MemoStatus) -> Memo:
        """Raises RefusedError: there is no such memo, or the database did not keep the status."""
        with self._database.session() as session:
            memos = self._memos(session)
            memos.get(memo_id)
            memo = memos.update(memo_id, status)
            if memo.status is not status:
                raise RefusedError(NOT_KEPT)
            return memo

    def decide(self, submission: Submission, conversation: str) -> Decision:
        """Store what became of the memo, in place of an earlier decision.

        Raises:
            RefusedError: Something has to be done first, or the reasons are not those of the memo's tasks.
        """
        with self._database.session() as session:
            memo = self._memos(session).get(submission.memo_id)
            tasks = self._tasks(session).of_memo(memo.id)
            if wrong := "; ".join(faults(submission, memo, tasks)):
                raise RefusedError(f"The decision was not stored: {wrong}.")
            return DecisionRepository(session).save(memo.id, decision(submission, memo, tasks), conversation)


def _wanted(task: TaskInput) -> dict[str, object]:
    return {**task.model_dump(exclude={"needs_review"}), "tags": list(task.tags or ()), "status": task.status}


def _asked(task: Task) -> dict[str, object]:
    return {**task.model_dump(exclude={"id", "memo_id"}), "tags": list(task.tags)}
