"""Reads of the outbox, for pages and other rooms."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from app.delivery.models import Delivery, DeliveryState

LEAVING = (DeliveryState.HELD, DeliveryState.SENDING)
"""States of a reply that will leave without anyone doing more."""


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One reply on its way out, or gone; `error` is an English msgid."""

    id: UUID
    artifact_id: UUID
    state: DeliveryState
    error: str | None
    created_at: datetime
    sent_at: datetime | None


def deliveries_of(session: Session, ticket_id: UUID) -> tuple[DeliveryRow, ...]:
    """Return a ticket's deliveries, oldest first."""
    rows = session.scalars(select(Delivery).where(Delivery.ticket_id == ticket_id).order_by(Delivery.id))
    return tuple(
        DeliveryRow(row.id, row.artifact_id, DeliveryState(row.state), row.error, row.created_at, row.sent_at)
        for row in rows
    )


def is_leaving(session: Session, ticket_id: UUID) -> bool:
    """Say whether a reply to the ticket is approved but not out yet."""
    return session.scalars(select(exists().where(Delivery.ticket_id == ticket_id, Delivery.state.in_(LEAVING)))).one()
