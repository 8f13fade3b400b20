"""let runs wait, retry and be set aside; let messages and crossed replies be told

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("runs", sa.Column("origin", sa.Text(), nullable=False, server_default="ticket"))
    op.execute(
        "UPDATE runs SET origin = CASE WHEN planner = 'manual' THEN 'manual' ELSE 'regenerate' END"
        " WHERE planner = 'manual' OR retry_from IS NOT NULL"
    )
    op.alter_column("runs", "origin", server_default=None)
    op.add_column("runs", sa.Column("not_before", TIME))
    for name in ("deaths", "auto_retries"):
        op.add_column("runs", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
        op.alter_column("runs", name, server_default=None)
    op.add_column("runs", sa.Column("retry_at", TIME))
    op.add_column("runs", sa.Column("error_detail", postgresql.JSONB()))
    op.create_index("ix_runs_retry_at", "runs", ["retry_at"], postgresql_where=sa.text("retry_at IS NOT NULL"))
    op.create_index("ix_runs_set_aside", "runs", ["id"], postgresql_where=sa.text("error_code = 'set_aside'"))

    op.add_column("tickets", sa.Column("reply_crossed_at", TIME))
    op.add_column("tickets", sa.Column("follow_up_of", sa.Uuid()))
    op.create_foreign_key(op.f("fk_tickets_follow_up_of"), "tickets", "tickets", ["follow_up_of"], ["id"])

    op.add_column("intake_keys", sa.Column("message_id", sa.Uuid()))
    op.create_foreign_key(
        op.f("fk_intake_keys_message_id"),
        "intake_keys",
        "ticket_messages",
        ["message_id"],
        ["id"],
        deferrable=True,
        initially="DEFERRED",
    )


def downgrade() -> None:
    raise NotImplementedError("migrations run forward only")
