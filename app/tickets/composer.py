"""What a person is typing on a ticket."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from app.db.base import Base


class ComposerDraft(Base):
    """Text in a person's editor, saved as they type: per ticket and person, not per run."""

    __tablename__ = "composer_drafts"

    ticket_id: Mapped[UUID] = mapped_column(ForeignKey("tickets.id"), primary_key=True)
    staff_id: Mapped[UUID] = mapped_column(ForeignKey("staff.id"), primary_key=True)
    body: Mapped[str]
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now(), onupdate=func.now())


def hand_back(session: Session, *, ticket_id: UUID, staff_id: UUID, body: str) -> None:
    """Put a text that did not leave back into its writer's editor, unless they have begun another one."""
    row = insert(ComposerDraft).values(ticket_id=ticket_id, staff_id=staff_id, body=body)
    session.execute(row.on_conflict_do_nothing())
