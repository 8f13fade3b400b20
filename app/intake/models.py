"""Idempotency of what arrives."""

from uuid import UUID

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt


class IntakeKey(Base):
    """A key that a source has used, with SHA-256 of its body: same body, same ticket; another body is refused."""

    __tablename__ = "intake_keys"

    source: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str]
    # Checked at the commit: the key is taken before the ticket is made.
    ticket_id: Mapped[UUID] = mapped_column(ForeignKey("tickets.id", deferrable=True, initially="DEFERRED"))
    # The message that arrived under this key, None for a ticket's first one.
    message_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("ticket_messages.id", deferrable=True, initially="DEFERRED")
    )
    created_at: Mapped[CreatedAt]
