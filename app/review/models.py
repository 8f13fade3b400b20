"""What a person is typing, and the approvals that were given."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, func
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt


class ComposerDraft(Base):
    """Text in a person's editor, saved as they type: per ticket and person, not per run."""

    __tablename__ = "composer_drafts"

    ticket_id: Mapped[UUID] = mapped_column(ForeignKey("tickets.id"), primary_key=True)
    staff_id: Mapped[UUID] = mapped_column(ForeignKey("staff.id"), primary_key=True)
    body: Mapped[str]
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now(), onupdate=func.now())


class ApprovalKey(Base):
    """The client's key of an approval: the same key again gets the same reply, not a second one."""

    __tablename__ = "approval_keys"

    key: Mapped[str] = mapped_column(primary_key=True)
    staff_id: Mapped[UUID] = mapped_column(ForeignKey("staff.id"))
    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id"))
    artifact_id: Mapped[UUID] = mapped_column(ForeignKey("artifacts.id"))
    created_at: Mapped[CreatedAt]
