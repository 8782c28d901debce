"""Creates tasks: all of a call, or none."""

from collections.abc import Callable, Sequence

from sqlalchemy.orm import Session
from tool_layer.database import Database

from memos.storage.models import Task
from memos.storage.repositories import TaskRepository
from memos.values.schemas import TaskInput
from memos.values.status import STATUS_OF
from memos.values.stored import StoredTask, as_asked, not_as_asked, stored


class TaskApplicationService:
    def __init__(self, database: Database, tasks: Callable[[Session], TaskRepository] = TaskRepository) -> None:
        self._database = database
        self._tasks = tasks

    def create(self, wanted: Sequence[TaskInput]) -> list[StoredTask]:
        """In their order.

        Raises:
            RefusedError: The database holds something else than what was wanted. Nothing was stored.
        """
        with self._database.session() as session:
            created = stored(list[StoredTask], self._tasks(session).add([_task(each) for each in wanted]))
            if len(created) != len(wanted) or len({task.id for task in created}) != len(wanted):
                raise not_as_asked()
            return [as_asked(task, _expected(each)) for task, each in zip(created, wanted, strict=True)]

    def tasks(self) -> list[StoredTask]:
        with self._database.session() as session:
            return stored(list[StoredTask], self._tasks(session).all())


def _task(wanted: TaskInput) -> Task:
    return Task(**{**_expected(wanted), "tags": list(wanted.tags or ())})


def _expected(wanted: TaskInput) -> dict[str, object]:
    """What a stored task must be."""
    return {
        "title": wanted.title,
        "description": wanted.description,
        "due_date": wanted.due_date,
        "status": STATUS_OF[wanted.route],
        "tags": tuple(wanted.tags or ()),
        "project_title": wanted.project_title,
        "memo_id": None,
    }
