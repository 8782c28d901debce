"""Brings a database to a revision of the tables, within the caller's transaction.

Alembic's `op` and `context` are globals of the process, so that only one thread migrates at a time.
"""

import threading
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

_FOLDER = Path(__file__).resolve().parent / "migrations"
_ALONE = threading.Lock()


def current_revision(connection: Connection) -> str | None:
    """None for a database without tables."""
    return MigrationContext.configure(connection).get_current_revision()


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


@cache
def newest_revision() -> str:
    return ScriptDirectory(str(_FOLDER)).get_current_head() or "base"


def _config(connection: Connection) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config
