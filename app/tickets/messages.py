"""What is said on a ticket, written in its order."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.ids import new_id
from app.tickets.models import MessageKind, TicketMessage


def add_message(
    session: Session,
    *,
    ticket_id: UUID,
    kind: MessageKind,
    body: str,
    message_id: UUID | None = None,
    staff_id: UUID | None = None,
    artifact_id: UUID | None = None,
    at: datetime | None = None,
) -> TicketMessage:
    """Add the ticket's next message; the thread must be locked or new, which keeps the numbers apart.

    `staff_id` is who wrote it, or who wrote down what the customer said; `at` is when it was said if that was earlier.
    """
    newest = select(func.coalesce(func.max(TicketMessage.number), 0)).where(TicketMessage.ticket_id == ticket_id)
    message = TicketMessage(
        id=message_id or new_id(),
        ticket_id=ticket_id,
        number=session.scalars(newest).one() + 1,
        kind=kind,
        body=body,
        staff_id=staff_id,
        artifact_id=artifact_id,
        created_at=at or func.now(),
    )
    session.add(message)
    session.flush()
    return message
