"""A ticket arrives: customer, ticket, first message, thread, run and event in one transaction, once a key."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.errors import InvalidInput
from app.ids import new_id
from app.intake.fields import NewTicket
from app.intake.models import IntakeKey
from app.runs.lifecycle import RunPlan, create_run
from app.runs.models import Run
from app.tickets.models import Customer, MessageKind, Thread, Ticket, TicketMessage


class KeyReused(InvalidInput):
    """The source has used this idempotency key for another ticket."""

    code = "key_reused"

    def __init__(self) -> None:
        super().__init__("This idempotency key was used for another ticket.", field="idempotency_key")


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
    if not _take_key(session, source, key, new.digest(), ticket_id):
        return _earlier(session, source, key, new.digest())
    ticket = _open_ticket(session, ticket_id, new, at)
    thread = Thread(id=new_id(), ticket_id=ticket.id, last_seq=0)
    session.add(thread)
    session.flush()
    run = create_run(session, thread, ticket, plan)
    return Received(ticket.id, ticket.number, run.id, created=True)


def _take_key(session: Session, source: str, key: str, digest: str, ticket_id: UUID) -> bool:
    """Claim the key before anything else is written: a racing request with the same key waits here for our end."""
    taken = session.scalar(
        insert(IntakeKey)
        .values(source=source, key=key, digest=digest, ticket_id=ticket_id)
        .on_conflict_do_nothing()
        .returning(IntakeKey.key)
    )
    return taken is not None


def _earlier(session: Session, source: str, key: str, digest: str) -> Received:
    known, ticket_id, number = session.execute(
        select(IntakeKey.digest, Ticket.id, Ticket.number)
        .join(Ticket, Ticket.id == IntakeKey.ticket_id)
        .where(IntakeKey.source == source, IntakeKey.key == key)
    ).one()
    if known != digest:
        raise KeyReused
    first = select(Run.id).join(Thread, Thread.id == Run.thread_id).where(Thread.ticket_id == ticket_id)
    run_id = session.scalars(first.order_by(Run.id).limit(1)).one()
    return Received(ticket_id, number, run_id, created=False)


def _open_ticket(session: Session, ticket_id: UUID, new: NewTicket, at: datetime | None) -> Ticket:
    written_at = at or func.now()
    message_id = new_id()
    ticket = Ticket(
        id=ticket_id,
        customer_id=_known_customer(session, new),
        channel=new.channel,
        subject=new.subject,
        last_customer_message_id=message_id,
        last_customer_message_at=written_at,
        created_at=written_at,
    )
    session.add(ticket)
    session.flush()
    session.add(
        TicketMessage(
            id=message_id,
            ticket_id=ticket_id,
            number=1,
            kind=MessageKind.CUSTOMER,
            body=new.content,
            created_at=written_at,
        )
    )
    return ticket


def _known_customer(session: Session, new: NewTicket) -> UUID:
    """Return the customer's id, made now if new; a name that is given fills or changes the one that we have."""
    row = insert(Customer).values(id=new_id(), external_id=new.customer_id, name=new.customer_name)
    given = func.nullif(row.excluded.name, "")
    return session.scalars(
        row.on_conflict_do_update(
            index_elements=[Customer.external_id], set_={"name": func.coalesce(given, Customer.name)}
        ).returning(Customer.id)
    ).one()
