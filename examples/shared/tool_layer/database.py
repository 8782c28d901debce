"""A database and its transactions.

In: a URL of SQLite or PostgreSQL. Out: sessions that commit as a whole or change nothing. Tool calls of one turn run
side by side, in one process or several: SQLite takes its lock at the beginning of a transaction, so that a transaction
that reads and then writes waits instead of failing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import JSON, URL, Connection, Engine, MetaData, NullPool, create_engine, event, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from .errors import SetupError

SECONDS_TO_WAIT = 30
"""For another transaction, and for a connection."""
JSON_COLUMN = JSON().with_variant(JSONB(), "postgresql")
_LOCK = 7_236_001
"""Of PostgreSQL's advisory locks, the one under which tables are made."""


class Database:
    def __init__(self, url: URL, prepare: Callable[[Connection], None]) -> None:
        """`prepare` makes the tables that are missing; it runs once in each process, alone."""
        self.url = url
        self._engine = _engine(url)
        self._prepare = prepare
        self._is_ready = False

    @contextmanager
    def session(self) -> Iterator[Session]:
        """One transaction.

        Raises:
            SetupError: The database cannot be reached or prepared.
        """
        with self._named():
            self._make_ready()
        with Session(self._engine, expire_on_commit=False) as session, session.begin():
            with self._named():
                session.connection()
            yield session

    def _make_ready(self) -> None:
        if self._is_ready:
            return
        with self._engine.begin() as connection:
            if self.url.get_backend_name() == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            self._prepare(connection)
        self._is_ready = True

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            # Options are left out: a password may be one of them.
            where = self.url.set(query={}).render_as_string(hide_password=True)
            raise SetupError(f"The database {where} cannot be used: {first_line(error)}") from None


def now() -> datetime:
    """In UTC, as all instants are stored."""
    return datetime.now(UTC).replace(tzinfo=None)


def empty(connection: Connection, *metadata: MetaData) -> None:
    """All tables; on PostgreSQL too, ids count from 1 again."""
    names = [table.name for each in metadata for table in reversed(each.sorted_tables)]
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"TRUNCATE {', '.join(names)} RESTART IDENTITY"))
        return
    for name in names:
        connection.execute(text(f"DELETE FROM {name}"))  # noqa: S608 - a name of ours


@cache
def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(
            url, pool_pre_ping=True, hide_parameters=True, connect_args={"connect_timeout": SECONDS_TO_WAIT}
        )
    engine = create_engine(url, poolclass=NullPool, hide_parameters=True, connect_args={"timeout": SECONDS_TO_WAIT})

    # Python's sqlite3 begins a transaction only before the first write, when another may have changed what was read.
    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: object) -> None:  # noqa: ANN401 - of the driver
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def _began(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def first_line(error: Exception) -> str:
    """Of a driver's error its own first line: PostgreSQL's others quote values."""
    said = error.orig if isinstance(error, DBAPIError) else error
    return str(said).strip().partition("\n")[0]
