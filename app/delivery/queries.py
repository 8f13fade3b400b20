"""Reads of the outbox, for pages and other rooms."""

from uuid import UUID

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from app.delivery.models import Delivery, DeliveryState

LEAVING = (DeliveryState.HELD, DeliveryState.SENDING)
"""States of a reply that will leave without anyone doing more."""


def is_leaving(session: Session, ticket_id: UUID) -> bool:
    """Say whether a reply to the ticket is approved but not out yet."""
    return session.scalars(select(exists().where(Delivery.ticket_id == ticket_id, Delivery.state.in_(LEAVING)))).one()
