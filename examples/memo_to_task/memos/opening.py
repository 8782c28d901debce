"""Opens the database of memos and tasks: where it is, and what makes its tables.

Without a URL, the plugin uses an SQLite file of its own, which begins with the sample memos: it can be tried at once.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import URL, Connection, text
from tool_layer.address import CREDENTIAL, database_url
from tool_layer.database import Database
from tool_layer.run_steps import RunStep, make_table

from memos.storage.migrating import current_revision, downgrade, upgrade
from memos.storage.models import Base
from memos.storage.samples import add_samples

VARIABLE = "MEMOS_DATABASE_URL"
_PLUGIN_FOLDER = Path(__file__).resolve().parents[1]
_FILE_NAME = "memos.sqlite3"


def address(credentials: Mapping[str, object]) -> URL:
    """Raises `SetupError` for a URL that cannot be used."""
    return database_url(_PLUGIN_FOLDER, credentials, variable=VARIABLE, file_name=_FILE_NAME)


def memo_database(credentials: Mapping[str, object]) -> Database:
    is_chosen = credentials.get(CREDENTIAL) or os.environ.get(VARIABLE)
    return Database(address(credentials), prepare if is_chosen else _prepare_with_samples)


def prepare(connection: Connection) -> None:
    """The newest tables."""
    make_table(connection)
    upgrade(connection)


def begin_again(connection: Connection) -> None:
    """Empty but for the samples, and ids count from 1 again."""
    prepare(connection)
    names = [RunStep.__tablename__, *(table.name for table in reversed(Base.metadata.sorted_tables))]
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"TRUNCATE {', '.join(names)} RESTART IDENTITY"))
    else:
        for name in names:
            connection.execute(text(f"DELETE FROM {name}"))  # noqa: S608 - a name of ours
    add_samples(connection)


def remove_draft(connection: Connection) -> None:
    """As before the status draft: drafts become tasks to do, and the log says how many."""
    prepare(connection)
    downgrade(connection, "0001")


def _prepare_with_samples(connection: Connection) -> None:
    is_new = current_revision(connection) is None
    prepare(connection)
    if is_new:
        add_samples(connection)
