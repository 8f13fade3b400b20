"""What the end of a send does to the ticket. The thread must be locked.

A reply resolves the ticket only if the customer has not written since it was made; one that did not leave reopens it.
"""

from uuid import UUID

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session, aliased

from app.runs.lifecycle import active_run
from app.runs.models import Artifact, Run
from app.tickets.lifecycle import move_ticket
from app.tickets.messages import add_message
from app.tickets.models import DONE, MessageKind, Thread, Ticket, TicketMessage, TicketStatus


def write_reply(session: Session, artifact: Artifact, ticket_id: UUID, text: str) -> UUID:
    """Write a reply that has left into the ticket, and return the message's id.

    The ticket is resolved by it, that is by whoever approved it, unless a person has ended it otherwise, or the reply
    crossed with a newer message, which is then still to be answered.
    """
    message = add_message(
        session,
        ticket_id=ticket_id,
        kind=MessageKind.REPLY,
        body=text,
        staff_id=artifact.staff_id,
        artifact_id=artifact.id,
    )
    ticket = session.get_one(Ticket, ticket_id, populate_existing=True)
    answered = session.get_one(Run, artifact.run_id).last_customer_message_id
    is_open = ticket.status not in DONE
    crossed = is_open and answered != ticket.last_customer_message_id
    ticket.last_reply_id = message.id
    ticket.reply_crossed_at = (ticket.reply_crossed_at or func.now()) if crossed else None
    if is_open and not crossed:
        move_ticket(session, ticket, TicketStatus.RESOLVED, reason="reply_sent", by=artifact.staff_id)
    else:
        ticket.version += 1
    return message.id


def reopen(session: Session, thread: Thread, *, surely_not_sent: bool) -> None:
    """Give a ticket back to people whose reply did not surely leave; spam stays spam."""
    ticket = session.get_one(Ticket, thread.ticket_id, populate_existing=True)
    if surely_not_sent and not _last_reply_crossed(session, ticket):
        ticket.reply_crossed_at = None
    waits = ticket.status not in (TicketStatus.PENDING, TicketStatus.SPAM)
    if waits and active_run(session, thread.id) is None:
        move_ticket(session, ticket, TicketStatus.PENDING, reason="reply_failed")
    else:
        ticket.version += 1


def _last_reply_crossed(session: Session, ticket: Ticket) -> bool:
    """Say whether the customer wrote between what the last sent reply answers and its leaving."""
    reply, answered, between = aliased(TicketMessage), aliased(TicketMessage), aliased(TicketMessage)
    crossing = (
        exists()
        .where(reply.id == ticket.last_reply_id, Artifact.id == reply.artifact_id, Run.id == Artifact.run_id)
        .where(answered.id == Run.last_customer_message_id)
        .where(between.ticket_id == ticket.id, between.kind == MessageKind.CUSTOMER)
        .where(between.number > answered.number, between.number < reply.number)
    )
    return session.scalars(select(crossing)).one()
