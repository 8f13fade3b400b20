"""What a person decides about a ticket as a whole: resolved without a reply, closed, spam, or open again."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy.orm import Session

from app.delivery.recall import recall_replies
from app.errors import Conflict
from app.runs.events import NewEvent, append_events, lock_thread
from app.runs.lifecycle import active_run, move_run
from app.runs.models import EventType, RunStatus
from app.staff import audit
from app.tickets.lifecycle import TicketMoved, move_ticket
from app.tickets.models import DONE, Ticket, TicketStatus

CHOICES: Final = (TicketStatus.RESOLVED, TicketStatus.CLOSED, TicketStatus.SPAM, TicketStatus.PENDING)
"""Where a person may move a ticket to; pending opens it again."""


@dataclass(frozen=True, slots=True)
class SeenTicket:
    """What the person saw of the ticket: nothing that came since may be decided along with it."""

    status: str
    last_customer_message_id: UUID | None


def set_ticket_status(
    session: Session,
    *,
    ticket_id: UUID,
    target: TicketStatus,
    staff_id: UUID | None,
    token: str | None = None,
    seen: SeenTicket | None = None,
) -> bool:
    """Move a ticket to one of CHOICES, and return whether it was not there already.

    A ticket that is done needs no work: its active run is cancelled and a held reply is taken back. A source moves it
    by its `token` (the name of it). Raises TicketMoved (who was first), Conflict when the customer has written since,
    NotFound; nothing is changed then.
    """
    thread = lock_thread(session, ticket_id)
    ticket = session.get_one(Ticket, ticket_id, populate_existing=True)
    if ticket.status == target:
        return False
    is_done = ticket.status in DONE
    if (seen and seen.status != ticket.status and (is_done or seen.status in DONE)) or not (is_done or target in DONE):
        raise TicketMoved(ticket)
    if seen and seen.last_customer_message_id != ticket.last_customer_message_id:
        raise Conflict("The customer has written again. Read that first.")
    who = {"by": str(staff_id)} if staff_id else {"token": token}
    move = move_ticket(session, ticket, target, reason="person" if staff_id else "source", by=staff_id)
    append_events(session, thread, [NewEvent(EventType.TICKET_MOVED, None, move.facts | who)])
    if target in DONE:
        reason = f"ticket_{target.value}"
        run = active_run(session, thread.id)
        if run is not None:
            event = NewEvent(EventType.RUN_CANCELLED, run.id, {"reason": reason, **who})
            move_run(session, thread, run.id, RunStatus.CANCELLED, [event], by=staff_id)
        recall_replies(session, thread, reason=reason, by=staff_id)
    audit.record(
        session,
        "ticket_moved",
        staff_id=staff_id,
        ticket_id=ticket_id,
        source=move.source.value,
        target=target.value,
        token=token,
    )
    return True
