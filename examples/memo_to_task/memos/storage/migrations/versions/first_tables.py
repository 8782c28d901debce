"""Memos, tasks and decisions; a task is to do, in progress, waiting or done."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TASK_STATUSES = ("todo", "progress", "waiting", "done")
MEMO_STATUSES = ("inbox", "active", "idea", "archive")


def upgrade() -> None:
    op.create_table(
        "memos",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("text", sa.String, nullable=False),
        sa.Column("status", sa.Enum(*MEMO_STATUSES, name="memostatus", create_constraint=True), nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "tasks",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("memo_id", sa.Integer, sa.ForeignKey("memos.id")),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("description", sa.String),
        sa.Column("due_date", sa.String(40)),
        sa.Column("status", sa.Enum(*TASK_STATUSES, name="taskstatus", create_constraint=True), nullable=False),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("project_title", sa.String(200)),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "decisions",
        sa.Column("memo_id", sa.Integer, sa.ForeignKey("memos.id"), primary_key=True),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("conversation", sa.String, nullable=False),
        sa.Column("decided_at", sa.DateTime, nullable=False),
    )


def downgrade() -> None:
    for table in ("decisions", "tasks", "memos"):
        op.drop_table(table)
    for enum in ("taskstatus", "memostatus"):
        sa.Enum(name=enum).drop(op.get_bind(), checkfirst=True)
