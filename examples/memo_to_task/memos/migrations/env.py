"""Runs revisions: within the transaction of `memos.database`, or one of its own for Alembic's command line."""

from alembic import context
from sqlalchemy import Connection
from tool_layer.database import Database

from memos.database import address
from memos.tables import Base


def run(connection: Connection) -> None:
    """The audit trail is another's table, and no matter of ours."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        include_name=lambda name, kind, _parents: kind != "table" or name in Base.metadata.tables,
    )
    context.run_migrations()


if given := context.config.attributes.get("connection"):
    run(given)
else:
    with Database(address({}), lambda _: None).session() as session:
        run(session.connection())
