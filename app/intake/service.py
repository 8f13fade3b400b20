"""A ticket arrives: customer, ticket, first message, thread, run and event in one transaction, once a key."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.ids import new_id
from app.intake.fields import NewTicket
from app.intake.keys import known_key, take_key
from app.runs.lifecycle import RunPlan, create_run
from app.runs.models import Run
from app.tickets.messages import add_message
from app.tickets.models import Customer, MessageKind, Thread, Ticket


@dataclass(frozen=True, slots=True)
class Received:
    """The ticket that a request asked for; `created` is false when an earlier request with its key made it."""

    ticket_id: UUID
    number: int
    run_id: UUID
    created: bool


def receive_ticket(
    session: Session, *, source: str, key: str, new: NewTicket, plan: RunPlan, at: datetime | None = None
) -> Received:
    """Take a new ticket in and start its run; the same source, key and body again return the ticket that is there.

    `source` names the sender's key space, `at` is when the customer wrote if that was earlier. Raises KeyReused.
    """
    ticket_id = new_id()
    if not take_key(session, source=source, key=key, digest=new.digest(), ticket_id=ticket_id):
        return _earlier(session, known_key(session, source=source, key=key, digest=new.digest()).ticket_id)
    ticket = Ticket(
        id=ticket_id,
        customer_id=_known_customer(session, new),
        channel=new.channel,
        subject=new.subject,
    )
    thread = open_ticket(session, ticket, message_id=new_id(), body=new.content, at=at)
    run = create_run(session, thread, ticket, plan)
    return Received(ticket.id, ticket.number, run.id, created=True)


def open_ticket(
    session: Session,
    ticket: Ticket,
    *,
    message_id: UUID,
    body: str,
    staff_id: UUID | None = None,
    at: datetime | None = None,
) -> Thread:
    """Write a new ticket with its first message and its thread, which no one else can see yet; return the thread."""
    written_at = at or func.now()
    ticket.last_customer_message_id = message_id
    ticket.last_customer_message_at = written_at
    ticket.created_at = written_at
    session.add(ticket)
    session.flush()
    kind = MessageKind.CUSTOMER
    add_message(session, ticket_id=ticket.id, kind=kind, body=body, message_id=message_id, staff_id=staff_id, at=at)
    thread = Thread(id=new_id(), ticket_id=ticket.id, last_seq=0)
    session.add(thread)
    session.flush()
    return thread


def _earlier(session: Session, ticket_id: UUID) -> Received:
    number = session.scalars(select(Ticket.number).where(Ticket.id == ticket_id)).one()
    first = select(Run.id).join(Thread, Thread.id == Run.thread_id).where(Thread.ticket_id == ticket_id)
    run_id = session.scalars(first.order_by(Run.id).limit(1)).one()
    return Received(ticket_id, number, run_id, created=False)


def _known_customer(session: Session, new: NewTicket) -> UUID:
    """Return the customer's id, made now if new; a name that is given fills or changes the one that we have."""
    row = insert(Customer).values(id=new_id(), external_id=new.customer_id, name=new.customer_name)
    given = func.nullif(row.excluded.name, "")
    return session.scalars(
        row.on_conflict_do_update(
            index_elements=[Customer.external_id], set_={"name": func.coalesce(given, Customer.name)}
        ).returning(Customer.id)
    ).one()
