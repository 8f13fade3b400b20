"""The one way to move a ticket.

The allowed moves are data. A move is a compare-and-set under the thread's lock; what it finds in another state it
leaves alone and raises TicketMoved, which says who moved the ticket, to what, and when. The moves outside this file,
pending to processing and back, are parts of a worker's guarded statements in `app.runs.statements`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, null, update
from sqlalchemy.orm import Session

from app.errors import Conflict
from app.tickets.models import DONE, Ticket, TicketStatus

S = TicketStatus
MOVES: Mapping[TicketStatus, frozenset[TicketStatus]] = {
    S.PENDING: frozenset({S.PROCESSING, S.WAITING_FOR_CUSTOMER}) | DONE,
    S.PROCESSING: frozenset({S.PENDING, S.WAITING_FOR_CUSTOMER}) | DONE,
    S.WAITING_FOR_CUSTOMER: frozenset({S.PENDING}) | DONE,
    S.RESOLVED: frozenset({S.PENDING, S.CLOSED, S.SPAM}),
    S.CLOSED: frozenset({S.PENDING, S.SPAM}),
    S.SPAM: frozenset({S.PENDING}),
}


class TicketMoved(Conflict):
    """The ticket is not in a state that allows the move. `ticket_status`, `by` (staff id; None when no person did it)
    and `at` say what it is in, and why."""

    code = "ticket_moved"

    def __init__(self, ticket: Ticket) -> None:
        super().__init__("Someone was faster: this ticket has moved on.")
        self.ticket_id = ticket.id
        self.ticket_status = ticket.status
        self.by = ticket.moved_by
        self.at = ticket.moved_at


@dataclass(frozen=True, slots=True)
class TicketMove:
    """A move that was made; the caller, who holds the thread, tells of it by an event. `facts` are its payload."""

    source: TicketStatus
    target: TicketStatus
    by: UUID | None
    reason: str

    @property
    def facts(self) -> dict[str, str]:
        """From where, to where, why, and who, if a person did it."""
        by = {"by": str(self.by)} if self.by else {}
        return {"from": self.source, "to": self.target, "reason": self.reason, **by}


def move_ticket(
    session: Session, ticket: Ticket, target: TicketStatus, *, reason: str, by: UUID | None = None
) -> TicketMove:
    """Move a ticket, as it was read under the thread's lock, to `target`. Raises TicketMoved.

    Being done ends an escalation and what a crossed reply left to answer; being open again forgets when the ticket was
    resolved.
    """
    source = TicketStatus(ticket.status)
    values: dict[str, object] = {"moved_by": by, "moved_at": func.now(), "version": Ticket.version + 1}
    if target in DONE:
        values |= {"escalated_at": null(), "escalation_reason": null(), "reply_crossed_at": null()}
    if target is S.RESOLVED:
        values["resolved_at"] = func.now()
    elif target not in DONE:
        values["resolved_at"] = null()
    moved = target in MOVES[source] and session.scalar(
        update(Ticket)
        .where(Ticket.id == ticket.id, Ticket.status == source)
        .values(status=target, **values)
        .returning(Ticket)
        .execution_options(populate_existing=True)
    )
    if not moved:
        session.refresh(ticket)
        raise TicketMoved(ticket)
    return TicketMove(source, target, by, reason)


def ended_at(ticket: Ticket) -> datetime:
    """Return since when a ticket that is done has been so."""
    return ticket.moved_at or ticket.resolved_at or ticket.last_customer_message_at
