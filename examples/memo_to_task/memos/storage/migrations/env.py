"""Runs revisions on the connection that `migrating` gives, within its transaction."""

from alembic import context
from sqlalchemy import Connection

from memos.storage.models import Base

connection: Connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Base.metadata)
context.run_migrations()
