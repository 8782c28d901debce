"""The database of memos and tasks: where it is, and what brings its tables to a revision.

Without a URL, the plugin uses an SQLite file of its own, which begins with the sample memos: it can be tried at once.
Everything here works within the caller's transaction. Alembic's `op` and `context` are globals of the process, so that
only one thread migrates at a time.
"""

import os
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, insert
from tool_layer.address import CREDENTIAL, database_url
from tool_layer.database import Database, empty
from tool_layer.run_steps import RunStep, make_table

from .tables import Base, MemoRow
from .values import Memo, MemoStatus

VARIABLE = "MEMOS_DATABASE_URL"
SAMPLES: Mapping[str, Memo] = {
    scenario: Memo.model_validate(
        {"id": f"{number:08}-0000-4000-8000-000000000000", "text": words, "status": MemoStatus.INBOX}
    )
    for number, (scenario, words) in enumerate(
        {
            "script": "Reply to Ms Sato that Thursday at ten suits us. One line is enough.",
            "delegated": "Asked Kenji for three quotes for the new projector, waiting for his answer.",
            "dated": "Dentist on 4 December 2026 at 15:00. Bring the insurance card.",
            "project": "Office move: list what we take along, book a mover, tell the bank our new address.",
            "review": "New payroll software? Think it over and go through the two offers before we decide anything.",
            "not-actionable": "A mug that shows by its colour when the tea is cool enough to drink.",
        }.items(),
        start=1,
    )
}
"""Six memos to try the agent with, by the scenario that is about each."""
_PLUGIN_FOLDER = Path(__file__).resolve().parents[1]
_MIGRATIONS = Path(__file__).resolve().parent / "migrations"
_ALONE = threading.Lock()


def address(credentials: Mapping[str, object]) -> URL:
    """Raises SetupError for a URL that cannot be used."""
    return database_url(_PLUGIN_FOLDER, credentials, variable=VARIABLE, file_name="memo_to_task.sqlite3")


def memo_database(credentials: Mapping[str, object]) -> Database:
    is_chosen = credentials.get(CREDENTIAL) or os.environ.get(VARIABLE)
    return Database(address(credentials), prepare if is_chosen else _prepare_with_samples)


def prepare(connection: Connection) -> None:
    """The newest tables."""
    make_table(connection)
    upgrade(connection)


def begin_again(connection: Connection) -> None:
    """Empty but for the samples."""
    prepare(connection)
    empty(connection, RunStep.metadata, Base.metadata)
    _add_samples(connection)


def remove_draft(connection: Connection) -> None:
    """As before the status draft: drafts become tasks to do, and the log says how many."""
    prepare(connection)
    downgrade(connection, "0001")


def upgrade(connection: Connection, revision: str | None = None) -> None:
    """To the newest revision, or to an older one."""
    revision = revision or newest_revision()
    if current_revision(connection) != revision:
        with _ALONE:
            command.upgrade(_config(connection), revision)


def downgrade(connection: Connection, revision: str) -> None:
    """To `0001`, or to `base`, which drops all tables with what is in them."""
    with _ALONE:
        command.downgrade(_config(connection), revision)


def current_revision(connection: Connection) -> str | None:
    """None for a database without tables."""
    return MigrationContext.configure(connection).get_current_revision()


@cache
def newest_revision() -> str:
    return ScriptDirectory(str(_MIGRATIONS)).get_current_head() or "base"


def _config(connection: Connection) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config


def _prepare_with_samples(connection: Connection) -> None:
    is_new = current_revision(connection) is None
    prepare(connection)
    if is_new:
        _add_samples(connection)


def _add_samples(connection: Connection) -> None:
    connection.execute(insert(MemoRow), [{"id": memo.id, "text": memo.text} for memo in SAMPLES.values()])
