"""Reads of the outbox, for pages and other rooms."""

from uuid import UUID

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from app.delivery.models import Delivery, DeliveryState
from app.runs.models import Artifact, Run

LEAVING = (DeliveryState.HELD, DeliveryState.SENDING)
"""States of a reply that will leave without anyone doing more."""


def is_leaving(session: Session, ticket_id: UUID) -> bool:
    """Say whether a reply to the ticket is approved but not out yet."""
    return session.scalars(select(exists().where(Delivery.ticket_id == ticket_id, Delivery.state.in_(LEAVING)))).one()


def leaving_run(session: Session, ticket_id: UUID) -> Run:
    """Return the run whose reply to the ticket is approved but not out yet, the newest of them; there must be one."""
    leaves = (Delivery.ticket_id == ticket_id, Delivery.state.in_(LEAVING))
    reply = select(Artifact.run_id).join(Delivery, Delivery.artifact_id == Artifact.id).where(*leaves)
    return session.scalars(select(Run).where(Run.id.in_(reply)).order_by(Run.id.desc()).limit(1)).one()
