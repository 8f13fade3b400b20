"""The outbox."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, Key


class DeliveryState(StrEnum):
    """How far a reply is on its way out. `unknown` waits for a person and is never sent again by itself."""

    HELD = "held"
    RECALLED = "recalled"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Delivery(Base):
    """One approved reply on its way: the payload is frozen at approval, and there is one row a sent artifact."""

    __tablename__ = "deliveries"
    __table_args__ = (
        Index("ix_deliveries_due", "not_before", postgresql_where=text("state IN ('held', 'sending')")),
        Index("ix_deliveries_ticket_id", "ticket_id"),
        Index("ix_deliveries_sent_at", "sent_at", "ticket_id", postgresql_where=text("state = 'sent'")),
    )

    id: Mapped[Key]
    artifact_id: Mapped[UUID] = mapped_column(ForeignKey("artifacts.id"), unique=True)
    ticket_id: Mapped[UUID] = mapped_column(ForeignKey("tickets.id"))
    channel: Mapped[str]
    payload: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(default=DeliveryState.HELD)
    not_before: Mapped[datetime]
    lease_until: Mapped[datetime | None]
    attempts: Mapped[int] = mapped_column(default=0)
    error: Mapped[str | None]
    created_at: Mapped[CreatedAt]
    sent_at: Mapped[datetime | None]
