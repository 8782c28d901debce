"""The migrations of memo_to_task, up and down on both databases, with rows in the tables."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from memos.database import (
    SAMPLES,
    begin_again,
    current_revision,
    downgrade,
    memo_database,
    prepare,
    upgrade,
)
from memos.services import MemoService
from memos.tables import Base
from memos.values import TaskInput
from sqlalchemy import URL, Connection, inspect, text
from sqlalchemy.exc import DBAPIError
from tool_layer.address import CREDENTIAL
from tool_layer.database import Database
from tool_layer.run_steps import Turn, recorded, steps_of

MEMO = SAMPLES["script"].id
TASK = text(
    "INSERT INTO tasks (id, memo_id, position, title, description, due_date, route, status, tags, project_title, "
    "created_at) VALUES (:id, :memo, :position, 'A task', '', '2026-12-04', 'waiting', :status, '[\"日本\"]', 'Move', "
    "'2026-11-22 12:00:00')"
)
OLD_STATUSES = ["todo", "progress", "waiting", "done"]


def run(url: URL, step: Callable[[Connection], object]) -> None:
    """In a transaction of its own."""
    with Database(url, lambda _: None).session() as session:
        step(session.connection())


def rows(url: URL) -> list[dict[str, Any]]:
    with Database(url, lambda _: None).session() as session:
        return [dict(row) for row in session.execute(text("SELECT * FROM tasks ORDER BY position")).mappings()]


def insert_task(url: URL, status: str) -> None:
    position = len(rows(url))
    values = {"id": f"{position:032}", "memo": MEMO.hex, "position": position, "status": status}
    run(url, lambda connection: connection.execute(TASK, values))


def make_old_tables(connection: Connection) -> None:
    upgrade(connection, "0001")
    connection.execute(
        text("INSERT INTO memos VALUES (:id, 'Move', 'active', '2026-11-22 12:00:00')"), {"id": MEMO.hex}
    )


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
    with pytest.raises(DBAPIError):  # the table still refers to memos
        run(old, lambda connection: connection.execute(text("DELETE FROM memos")))


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
    service = MemoService(memo_database({CREDENTIAL: old.render_as_string(hide_password=False)}))

    (draft,) = service.create_tasks(service.add("Think").id, [TaskInput.model_validate({"title": "Think"})])

    assert draft.status == "draft"
    assert len(rows(old)) == len(OLD_STATUSES) + 1


def test_the_migrations_make_the_tables_of_the_models(database_url: URL) -> None:
    with Database(database_url, prepare).session() as session:
        options = {"compare_type": True}
        found = compare_metadata(MigrationContext.configure(session.connection(), opts=options), Base.metadata)
        types = {
            f"{table}.{column['name']}": str(column["type"])
            for table in Base.metadata.tables
            for column in inspect(session.connection()).get_columns(table)
        }

    assert [change for change in found if "run_steps" not in str(change)] == []
    is_postgresql = "postgresql" in database_url.drivername
    ids = {types[name] for name in ("memos.id", "tasks.id", "tasks.memo_id", "decisions.memo_id")}
    assert ids == {"UUID" if is_postgresql else "CHAR(32)"}
    assert types["tasks.due_date"] == "DATE"
    assert types["tasks.tags"] == types["decisions.payload"] == ("JSONB" if is_postgresql else "JSON")


def test_beginning_again_leaves_the_samples_and_says_nothing_of_a_downgrade(
    old: URL, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(old, prepare)
    recorded(database, "create_tasks", Turn(), {}, dict)
    insert_task(old, "draft")

    run(old, begin_again)

    assert steps_of(database) == []
    assert rows(old) == []
    assert MemoService(database).memos() == [*SAMPLES.values()]
    assert caplog.text == ""


def test_going_down_to_nothing_leaves_no_table_and_no_type(database_url: URL) -> None:
    run(database_url, upgrade)
    run(database_url, lambda connection: downgrade(connection, "base"))

    def look(connection: Connection) -> None:
        assert inspect(connection).get_table_names() == ["alembic_version"]
        if connection.dialect.name == "postgresql":
            assert connection.execute(text("SELECT typname FROM pg_type WHERE typtype = 'e'")).all() == []

    run(database_url, look)
