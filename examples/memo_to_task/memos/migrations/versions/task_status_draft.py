"""A task may be a draft.

In PostgreSQL a new type takes the place of `taskstatus`: a value that is added to a type cannot be used before the
transaction has committed, and a caller may go on within it. SQLite has the values in a CHECK, which only a new table
can change: Alembic's batch makes it, copies the rows and takes the old table's place. There is no new column.

The downgrade makes each draft a task to do, and logs how many there were: the upgrade does not make them drafts again.
"""

import logging

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

BEFORE = ("todo", "progress", "waiting", "done")
AFTER = (*BEFORE, "draft")

logger = logging.getLogger("memos.migrations")
"""Not below Alembic's own, which show nothing unless a program sets them up."""


def upgrade() -> None:
    _replace(BEFORE, AFTER)


def downgrade() -> None:
    drafts = op.get_bind().execute(sa.text("UPDATE tasks SET status = 'todo' WHERE status = 'draft'")).rowcount
    if drafts:
        logger.warning(
            "Downgrade to 0001: %s draft task(s) became todo; an upgrade does not bring the drafts back.", drafts
        )
    _replace(AFTER, BEFORE)


def _replace(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TYPE taskstatus RENAME TO taskstatus_before")
        sa.Enum(*new, name="taskstatus").create(op.get_bind())
        op.execute("ALTER TABLE tasks ALTER COLUMN status TYPE taskstatus USING status::text::taskstatus")
        op.execute("DROP TYPE taskstatus_before")
        return
    with op.batch_alter_table("tasks") as tasks:
        tasks.alter_column("status", existing_type=_enum(old), type_=_enum(new), existing_nullable=False)


def _enum(values: tuple[str, ...]) -> sa.Enum:
    return sa.Enum(*values, name="taskstatus", create_constraint=True)
