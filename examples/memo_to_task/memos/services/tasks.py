"""Creates the tasks of a memo: all of a call, or none, and not a second time."""

from collections.abc import Callable, Sequence

from sqlalchemy.orm import Session
from tool_layer.database import Database
from tool_layer.errors import RefusedError

from memos.storage.models import Task
from memos.storage.repositories import MemoRepository, TaskRepository, existing_memo
from memos.values.schemas import TaskInput
from memos.values.status import STATUS_OF
from memos.values.stored import StoredTask, as_asked, not_as_asked, stored


class TaskApplicationService:
    def __init__(self, database: Database, tasks: Callable[[Session], TaskRepository] = TaskRepository) -> None:
        self._database = database
        self._tasks = tasks

    def create(self, memo_id: int, wanted: Sequence[TaskInput]) -> list[StoredTask]:
        """In their order.

        Raises:
            RefusedError: There is no such memo, it has tasks already, or the database holds something else than what
                was wanted. Nothing was stored.
        """
        with self._database.session() as session:
            existing_memo(MemoRepository(session), memo_id)
            if before := self._tasks(session).of_memo(memo_id):
                listed = ", ".join(f"{task.id} ({task.status}: {task.title})" for task in before)
                raise RefusedError(
                    f"Nothing was created: memo {memo_id} was processed before and has its tasks: {listed}. "
                    "Use their ids."
                )
            created = stored(list[StoredTask], self._tasks(session).add([_task(memo_id, each) for each in wanted]))
            if len(created) != len(wanted) or len({task.id for task in created}) != len(wanted):
                raise not_as_asked()
            return [as_asked(task, _expected(memo_id, each)) for task, each in zip(created, wanted, strict=True)]

    def tasks(self) -> list[StoredTask]:
        with self._database.session() as session:
            return stored(list[StoredTask], self._tasks(session).all())


def _task(memo_id: int, wanted: TaskInput) -> Task:
    return Task(**{**_expected(memo_id, wanted), "tags": list(wanted.tags or ())})


def _expected(memo_id: int, wanted: TaskInput) -> dict[str, object]:
    """What a stored task must be."""
    return {
        "title": wanted.title,
        "description": wanted.description,
        "due_date": wanted.due_date,
        "status": STATUS_OF[wanted.route],
        "tags": tuple(wanted.tags or ()),
        "project_title": wanted.project_title,
        "memo_id": memo_id,
    }
