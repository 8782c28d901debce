"""Memos, tasks and decisions; a task is to do, in progress, waiting or done."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

TASK_STATUSES = ("todo", "progress", "waiting", "done")
MEMO_STATUSES = ("inbox", "active", "idea", "archive")


def upgrade() -> None:
    json = sa.JSON().with_variant(JSONB(), "postgresql")
    op.create_table(
        "memos",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("text", sa.String, nullable=False),
        sa.Column("status", sa.Enum(*MEMO_STATUSES, name="memostatus", create_constraint=True), nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "tasks",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("memo_id", sa.Uuid, sa.ForeignKey("memos.id"), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("description", sa.String),
        sa.Column("due_date", sa.Date),
        sa.Column("route", sa.String(20)),
        sa.Column("status", sa.Enum(*TASK_STATUSES, name="taskstatus", create_constraint=True), nullable=False),
        sa.Column("tags", json, nullable=False),
        sa.Column("project_title", sa.String(200)),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "decisions",
        sa.Column("memo_id", sa.Uuid, sa.ForeignKey("memos.id"), primary_key=True),
        sa.Column("payload", json, nullable=False),
        sa.Column("conversation", sa.String, nullable=False),
        sa.Column("decided_at", sa.DateTime, nullable=False),
    )


def downgrade() -> None:
    for table in ("decisions", "tasks", "memos"):
        op.drop_table(table)
    for enum in ("taskstatus", "memostatus"):
        sa.Enum(name=enum).drop(op.get_bind(), checkfirst=True)
