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
    # Defaults of new columns stay, so that processes of 0.1.0 can go on until they are stopped.
    op.add_column("runs", sa.Column("origin", sa.Text(), nullable=False, server_default="ticket"))
    op.execute(
        "UPDATE runs SET origin = CASE WHEN planner = 'manual' THEN 'manual' ELSE 'regenerate' END"
        " WHERE planner = 'manual' OR retry_from IS NOT NULL"
    )
    op.add_column("runs", sa.Column("not_before", TIME))
    for name in ("deaths", "auto_retries"):
        op.add_column("runs", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("retry_at", TIME))
    op.add_column("runs", sa.Column("error_detail", postgresql.JSONB()))
    # Until now, who had started a run stood as who had moved it, until somebody did.
    op.add_column("runs", sa.Column("started_by", sa.Uuid()))
    op.create_foreign_key(op.f("fk_runs_started_by"), "runs", "staff", ["started_by"], ["id"])
    op.execute("UPDATE runs SET started_by = moved_by, moved_by = NULL WHERE moved_at IS NULL AND moved_by IS NOT NULL")
    op.create_index("ix_runs_retry_at", "runs", ["retry_at"], postgresql_where=sa.text("retry_at IS NOT NULL"))
    op.create_index("ix_runs_set_aside", "runs", ["id"], postgresql_where=sa.text("error_code = 'set_aside'"))
    op.create_index(
        "ix_runs_active_status",
        "runs",
        ["status", "id"],
        postgresql_where=sa.text(
            "status IN ('created', 'retrying', 'running', 'waiting_for_review', 'waiting_for_escalation')"
        ),
    )
    op.create_index("ix_runs_failed", "runs", ["id"], postgresql_where=sa.text("status = 'failed'"))

    op.add_column("tickets", sa.Column("reply_crossed_at", TIME))
    op.add_column("tickets", sa.Column("follow_up_of", sa.Uuid()))
    op.create_foreign_key(op.f("fk_tickets_follow_up_of"), "tickets", "tickets", ["follow_up_of"], ["id"])
    op.create_index(
        op.f("ix_tickets_follow_up_of"),
        "tickets",
        ["follow_up_of"],
        postgresql_where=sa.text("follow_up_of IS NOT NULL"),
    )
    op.add_column("tickets", sa.Column("moved_by", sa.Uuid()))
    op.create_foreign_key(op.f("fk_tickets_moved_by"), "tickets", "staff", ["moved_by"], ["id"])
    op.add_column("tickets", sa.Column("moved_at", TIME))

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
