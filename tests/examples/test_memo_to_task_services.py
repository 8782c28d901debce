"""What the services of memo_to_task store, refuse and hand out, on both databases."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from typing import Any

import pytest
from memos.opening import prepare
from memos.services.memos import MemoApplicationService
from memos.services.tasks import TaskApplicationService
from memos.storage.models import Memo, Task
from memos.storage.repositories import MemoRepository, TaskRepository
from memos.values.schemas import Submission, TaskInput
from memos.values.status import MemoStatus, TaskStatus
from sqlalchemy import URL
from tool_layer.database import Database
from tool_layer.errors import RefusedError

NOTHING = {"description": None, "due_date": None, "route": None, "tags": None, "project_title": None}


@pytest.fixture
def database(database_url: URL) -> Database:
    return Database(database_url, prepare)


@pytest.fixture
def memos(database: Database) -> MemoApplicationService:
    """With one memo, whose id is 1."""
    service = MemoApplicationService(database)
    service.add("Asked Kenji for quotes, waiting for his answer.")
    return service


@pytest.fixture
def tasks(database: Database, memos: MemoApplicationService) -> TaskApplicationService:
    assert len(memos.memos()) == 1
    return TaskApplicationService(database)


def task(title: str, **fields: object) -> TaskInput:
    return TaskInput.model_validate({**NOTHING, "title": title, **fields})


def submission(memo_id: int, *tasks: tuple[int, str, str | None, str], status: str = "active") -> Submission:
    """`tasks`: id, title, route, status."""
    return Submission.model_validate(
        {
            "memo_id": memo_id,
            "created_task_ids": [task_id for task_id, *_ in tasks],
            "suggested_memo_status": status,
            "decision_summary": {
                "memo_insights": ["Kenji has it"],
                "applied_rules": ["delegated→WAITING"],
                "mapping_reasons": [
                    {"title": title, "route": route, "status": stored, "reasons": ["'waiting for his answer'"]}
                    for _, title, route, stored in tasks
                ],
                "safety_notes": None,
                "confidence": "high",
            },
        }
    )


QUOTES = (1, "Quotes", "waiting", "waiting")


def test_each_route_has_its_status(tasks: TaskApplicationService) -> None:
    created = tasks.create(
        1,
        [
            task("Next", route="next_action"),
            task("Now", route="progress"),
            task("Theirs", route="waiting"),
            task("Dated", route="calendar", due_date="2026-12-04"),
            task("Think it over"),
        ],
    )

    assert [(each.id, each.status) for each in created] == [
        (1, TaskStatus.TODO),
        (2, TaskStatus.PROGRESS),
        (3, TaskStatus.WAITING),
        (4, TaskStatus.TODO),
        (5, TaskStatus.DRAFT),
    ]
    assert tasks.tasks() == created


def test_a_task_is_stored_as_it_was_sent(tasks: TaskApplicationService) -> None:
    (created,) = tasks.create(
        1,
        [
            task(
                "歯医者",
                description="Bring the card.",
                due_date="2026-12-04T15:00:00+09:00",
                route="calendar",
                tags=["health", "町"],
                project_title="Teeth",
            )
        ],
    )

    assert (created.title, created.description, created.tags) == ("歯医者", "Bring the card.", ("health", "町"))
    assert created.due_date == datetime.fromisoformat("2026-12-04T15:00:00+09:00")
    assert (created.project_title, created.memo_id) == ("Teeth", 1)


def test_a_day_stays_a_day(tasks: TaskApplicationService) -> None:
    (created,) = tasks.create(1, [task("Post", due_date="2026-12-04")])

    assert type(created.due_date) is date


class RenamingTasks(TaskRepository):
    """A database that keeps the second task under another title, as a trigger could."""

    def add(self, tasks: Sequence[Task]) -> Sequence[Task]:
        added = super().add(tasks)
        added[1].title = "Another"
        return added


class InvalidTasks(TaskRepository):
    """A database that hands out what no task may be."""

    def add(self, tasks: Sequence[Task]) -> Sequence[Task]:
        added = super().add(tasks)
        added[1].title = ""
        return added


class LosingTasks(TaskRepository):
    def add(self, tasks: Sequence[Task]) -> Sequence[Task]:
        return super().add(tasks)[:1]


@pytest.mark.usefixtures("memos")
@pytest.mark.parametrize("repository", [RenamingTasks, InvalidTasks, LosingTasks])
def test_of_several_tasks_all_are_stored_or_none(database: Database, repository: type[TaskRepository]) -> None:
    with pytest.raises(RefusedError) as raised:
        TaskApplicationService(database, repository).create(1, [task("First"), task("Second")])

    assert TaskApplicationService(database).tasks() == []
    assert str(raised.value) == "Nothing was stored: the database did not keep what was asked for. Tell the user."


def test_a_memo_gets_a_status(memos: MemoApplicationService) -> None:
    assert memos.memos()[0].status is MemoStatus.INBOX

    assert memos.update_status(1, MemoStatus.IDEA).status is MemoStatus.IDEA

    assert [memo.status for memo in memos.memos()] == [MemoStatus.IDEA]
    with pytest.raises(RefusedError, match=r"^There is no memo 7\.$"):
        memos.update_status(7, MemoStatus.IDEA)


class StubbornMemos(MemoRepository):
    def refreshed(self, memo: Memo) -> Memo:
        memo.status = MemoStatus.INBOX
        return super().refreshed(memo)


def test_a_status_that_was_not_kept_is_not_reported(database: Database, memos: MemoApplicationService) -> None:
    with pytest.raises(RefusedError, match="Nothing was stored"):
        MemoApplicationService(database, StubbornMemos).update_status(1, MemoStatus.ACTIVE)

    assert memos.memos()[0].status is MemoStatus.INBOX


def test_a_decision_is_stored_and_gives_the_memo_its_tasks(
    tasks: TaskApplicationService, memos: MemoApplicationService
) -> None:
    tasks.create(1, [task("Quotes", route="waiting")])
    memos.update_status(1, MemoStatus.ACTIVE)

    decision = memos.decide(submission(1, QUOTES), "c-1")

    assert memos.decision(1) == decision
    assert (decision.payload, decision.conversation) == (submission(1, QUOTES).as_decision, "c-1")
    assert [each.memo_id for each in tasks.tasks()] == [1]


def test_a_later_decision_takes_the_place_of_the_first(
    tasks: TaskApplicationService, memos: MemoApplicationService
) -> None:
    tasks.create(1, [task("Quotes", route="waiting")])
    memos.update_status(1, MemoStatus.ACTIVE)
    memos.decide(submission(1, QUOTES), "c-1")

    memos.update_status(1, MemoStatus.ARCHIVE)
    later = submission(1, QUOTES, status="archive")
    memos.decide(later, "c-2")

    stored = memos.decision(1)
    assert stored is not None
    assert (stored.payload, stored.conversation) == (later.as_decision, "c-2")
    assert [each.memo_id for each in tasks.tasks()] == [1]


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (lambda: submission(9), "There is no memo 9."),
        (
            lambda: submission(1, QUOTES, (5, "Call", "progress", "progress")),
            (
                "The decision was not stored: there is no task 5: use the ids that create_tasks returned; "
                "mapping_reasons has 'Call', which is not the title of a created task."
            ),
        ),
        (
            lambda: submission(1, QUOTES, status="archive"),
            (
                "The decision was not stored: "
                "the memo 1 has the status active, not archive: call update_memo_status first."
            ),
        ),
    ],
)
def test_a_decision_that_the_database_contradicts_is_not_stored(
    tasks: TaskApplicationService, memos: MemoApplicationService, sent: Callable[[], Submission], sentence: str
) -> None:
    tasks.create(1, [task("Quotes", route="waiting")])
    memos.update_status(1, MemoStatus.ACTIVE)

    with pytest.raises(RefusedError) as raised:
        memos.decide(sent(), "c-1")

    assert str(raised.value) == sentence
    assert memos.decision(1) is None
    assert [each.memo_id for each in tasks.tasks()] == [1]


def test_a_task_of_another_memo_is_refused(tasks: TaskApplicationService, memos: MemoApplicationService) -> None:
    memos.add("Another memo")
    tasks.create(1, [task("Quotes", route="waiting")])
    for memo_id in (1, 2):
        memos.update_status(memo_id, MemoStatus.ACTIVE)
    memos.decide(submission(1, QUOTES), "")

    with pytest.raises(RefusedError, match="the task 1 belongs to the memo 1"):
        memos.decide(submission(2, QUOTES), "")


def test_a_memo_that_was_processed_before_keeps_its_tasks(tasks: TaskApplicationService) -> None:
    (first,) = tasks.create(1, [task("Quotes", route="waiting")])

    with pytest.raises(RefusedError) as raised:
        tasks.create(1, [task("Ask for quotes")])

    assert str(raised.value) == (
        "Nothing was created: memo 1 was processed before and has its tasks: 1 (waiting: Quotes). Use their ids."
    )
    assert tasks.tasks() == [first]
    with pytest.raises(RefusedError, match=r"^There is no memo 7\.$"):
        tasks.create(7, [task("Nobody's")])


def test_of_several_calls_at_once_only_one_makes_the_tasks_of_a_memo(tasks: TaskApplicationService) -> None:
    def created(_number: int) -> int:
        try:
            return len(tasks.create(1, [task("Quotes"), task("Call")]))
        except RefusedError:
            return 0

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(created, range(4))) == [0, 0, 0, 2]
    assert [each.memo_id for each in tasks.tasks()] == [1, 1]


def test_a_dates_meaning_is_checked_before_anything_is_stored() -> None:
    def refusal(**fields: Any) -> str:  # noqa: ANN401 - JSON
        with pytest.raises(ValueError, match="validation error") as raised:
            task("Dentist", **fields)
        return str(raised.value)

    assert "the route calendar needs a due_date" in refusal(route="calendar")
    for wrong in ("next Friday", "2026-02-30", "1764806400", 1764806400):
        assert "due_date" in refusal(route="calendar", due_date=wrong)
