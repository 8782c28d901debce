"""The migrations of memo_to_task, up and down on both databases, with rows in the tables."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from memos.opening import begin_again, memo_database, prepare, remove_draft
from memos.services.memos import MemoApplicationService
from memos.services.tasks import TaskApplicationService
from memos.storage.migrating import current_revision, downgrade, upgrade
from memos.storage.models import Base
from memos.storage.samples import SAMPLES
from memos.values.schemas import TaskInput
from sqlalchemy import URL, Connection, inspect, text
from sqlalchemy.exc import DBAPIError
from tool_layer.address import CREDENTIAL
from tool_layer.database import Database
from tool_layer.run_steps import recorded, steps_of

TASK = (
    "INSERT INTO tasks (memo_id, title, description, due_date, status, tags, project_title, created_at) "
    "VALUES (1, :title, 'Why', '2026-12-04T15:00:00', :status, '[\"a\", \"日本\"]', 'Move', '2026-11-22 12:00:00')"
)
OLD_STATUSES = ["todo", "progress", "waiting", "done"]


def run(url: URL, step: Callable[[Connection], object]) -> None:
    """In a transaction of its own."""
    with Database(url, lambda _: None).session() as session:
        step(session.connection())


def rows(url: URL) -> list[dict[str, Any]]:
    with Database(url, lambda _: None).session() as session:
        return [dict(row) for row in session.execute(text("SELECT * FROM tasks ORDER BY id")).mappings()]


def insert_task(url: URL, status: str) -> None:
    run(url, lambda connection: connection.execute(text(TASK), {"title": f"A {status} task", "status": status}))


def make_old_tables(connection: Connection) -> None:
    upgrade(connection, "0001")
    connection.execute(text("INSERT INTO memos (text, status, created_at) VALUES ('Move', 'active', '2026-11-22')"))


@pytest.fixture
def old(database_url: URL) -> URL:
    """A database of revision 0001 with a memo and a task of each status."""
    run(database_url, make_old_tables)
    for status in OLD_STATUSES:
        insert_task(database_url, status)
    return database_url


def without_status(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "status"}


def test_the_upgrade_adds_a_status_and_keeps_every_row_and_column(old: URL) -> None:
    before = rows(old)
    with pytest.raises(DBAPIError):
        insert_task(old, "draft")

    run(old, upgrade)

    assert rows(old) == before
    assert [row["status"] for row in before] == OLD_STATUSES
    insert_task(old, "draft")
    assert rows(old)[-1]["status"] == "draft"
    assert list(rows(old)[-1]) == list(before[0])
    with pytest.raises(DBAPIError):
        insert_task(old, "someday")


def test_the_downgrade_makes_drafts_tasks_to_do_and_says_so(old: URL, caplog: pytest.LogCaptureFixture) -> None:
    run(old, upgrade)
    insert_task(old, "draft")
    insert_task(old, "draft")
    before = rows(old)

    with caplog.at_level(logging.WARNING):
        run(old, lambda connection: downgrade(connection, "0001"))

    assert [row["status"] for row in rows(old)] == [*OLD_STATUSES, "todo", "todo"]
    assert [without_status(row) for row in rows(old)] == [without_status(row) for row in before]
    assert "2 draft task(s) became todo" in caplog.text
    with pytest.raises(DBAPIError):
        insert_task(old, "draft")
    run(old, upgrade)
    insert_task(old, "draft")
    assert [row["status"] for row in rows(old)] == [*OLD_STATUSES, "todo", "todo", "draft"]


def test_a_migrated_table_still_refers_to_memos(old: URL) -> None:
    for step in (upgrade, lambda connection: downgrade(connection, "0001"), upgrade):
        run(old, step)

    with pytest.raises(DBAPIError):
        run(old, lambda connection: connection.execute(text("UPDATE tasks SET memo_id = 99")))


def test_a_migration_that_fails_changes_nothing(old: URL) -> None:
    def fail_afterwards(connection: Connection) -> None:
        upgrade(connection)
        raise KeyError

    with pytest.raises(KeyError):
        run(old, fail_afterwards)

    seen: list[str | None] = []
    run(old, lambda connection: seen.append(current_revision(connection)))
    assert seen == ["0001"]
    with pytest.raises(DBAPIError):
        insert_task(old, "draft")


def test_the_first_call_of_a_tool_upgrades_an_old_database(old: URL) -> None:
    service = TaskApplicationService(memo_database({CREDENTIAL: old.render_as_string(hide_password=False)}))

    MemoApplicationService(memo_database({CREDENTIAL: old.render_as_string(hide_password=False)})).add("Think")
    (draft,) = service.create(2, [TaskInput.model_validate({"title": "Think"})])

    assert draft.status == "draft"
    assert len(service.tasks()) == len(OLD_STATUSES) + 1


def test_the_migrations_make_the_tables_of_the_models(database_url: URL) -> None:
    with Database(database_url, prepare).session() as session:
        found = compare_metadata(
            MigrationContext.configure(session.connection(), opts={"compare_type": True}), Base.metadata
        )

    assert [change for change in found if "run_steps" not in str(change)] == []


def test_beginning_again_leaves_the_samples_and_counts_from_one(old: URL) -> None:
    database = Database(old, prepare)
    recorded(database, "create_tasks", "", {}, dict)

    run(old, begin_again)

    assert steps_of(database) == []
    assert rows(old) == []
    with database.session() as session:
        memos = session.execute(text("SELECT id, text FROM memos ORDER BY id")).all()
        assert [tuple(memo) for memo in memos] == list(enumerate(SAMPLES.values(), start=1))
    insert_task(old, "draft")
    assert rows(old)[0]["id"] == 1


@pytest.mark.parametrize(
    "steps", [[begin_again], [remove_draft], [remove_draft, remove_draft], [remove_draft, begin_again]]
)
def test_each_command_of_the_desk_works_on_a_new_database_and_after_any_other(
    database_url: URL, steps: list[Callable[[Connection], object]], caplog: pytest.LogCaptureFixture
) -> None:
    for step in steps:
        run(database_url, step)
    run(database_url, begin_again)

    run(database_url, prepare)
    insert_task(database_url, "draft")
    assert caplog.text == ""


def test_beginning_again_says_nothing_of_a_downgrade(old: URL, caplog: pytest.LogCaptureFixture) -> None:
    run(old, upgrade)
    insert_task(old, "draft")
    run(old, begin_again)

    assert caplog.text == ""


def test_going_down_to_nothing_leaves_no_table_and_no_type(database_url: URL) -> None:
    run(database_url, upgrade)
    run(database_url, lambda connection: downgrade(connection, "base"))

    def look(connection: Connection) -> None:
        inspector = inspect(connection)
        assert inspector.get_table_names() == ["alembic_version"]
        if connection.dialect.name == "postgresql":
            assert connection.execute(text("SELECT typname FROM pg_type WHERE typtype = 'e'")).all() == []

    run(database_url, look)
