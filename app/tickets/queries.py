"""Reads of tickets, for other rooms and the API."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Row, Select, select
from sqlalchemy.orm import Session

from app.tickets.models import Customer, MessageKind, Ticket, TicketMessage, TicketStatus


@dataclass(frozen=True, slots=True)
class TicketRow:
    """One ticket. `customer_id` is the number that the source knows the customer by."""

    id: UUID
    number: int
    customer_id: str
    channel: str
    subject: str
    status: str
    priority: str | None
    category: str | None
    created_at: datetime
    resolved_at: datetime | None


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One message that the customer has written or read."""

    number: int
    kind: str
    body: str
    created_at: datetime


def tickets_newest_first(
    session: Session, *, before: int, status: TicketStatus | None, limit: int
) -> tuple[TicketRow, ...]:
    """Return up to `limit` tickets with numbers below `before`, newest first."""
    query = _select().where(Ticket.number < before).order_by(Ticket.number.desc()).limit(limit)
    if status is not None:
        query = query.where(Ticket.status == status)
    return tuple(_row(found) for found in session.execute(query))


def ticket_row(session: Session, ref: UUID | int) -> TicketRow | None:
    """Return the ticket with this id or number, if there is one."""
    by = Ticket.id == ref if isinstance(ref, UUID) else Ticket.number == ref
    found = session.execute(_select().where(by)).one_or_none()
    return _row(found) if found else None


def conversation(session: Session, ticket_id: UUID) -> tuple[MessageRow, ...]:
    """Return what the customer wrote and what we replied, in order; notes among ourselves are not in it."""
    rows: Sequence[TicketMessage] = session.scalars(
        select(TicketMessage)
        .where(TicketMessage.ticket_id == ticket_id, TicketMessage.kind != MessageKind.NOTE)
        .order_by(TicketMessage.number)
    ).all()
    return tuple(MessageRow(row.number, row.kind, row.body, row.created_at) for row in rows)


def _select() -> Select[Ticket, str]:
    return select(Ticket, Customer.external_id).join(Customer, Customer.id == Ticket.customer_id)


def _row(found: Row[Ticket, str]) -> TicketRow:
    ticket, customer_id = found
    return TicketRow(
        ticket.id,
        ticket.number,
        customer_id,
        ticket.channel,
        ticket.subject,
        ticket.status,
        ticket.priority,
        ticket.category,
        ticket.created_at,
        ticket.resolved_at,
    )
