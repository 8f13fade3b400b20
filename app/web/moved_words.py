"""Sentences about who was first: what became of a run or a ticket that a person still had before them."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from app.httpkit.container import container
from app.httpkit.language import clock, gettext
from app.msgids import msgid
from app.review.ticket_view import Phase, TicketPage
from app.runs.models import RunOrigin, RunStatus
from app.staff import queries as staff_queries
from app.tickets.models import MessageKind, TicketStatus

S = TypeVar("S", RunStatus, TicketStatus)
_RUN_BY = {
    RunStatus.COMPLETED: msgid("%(who)s approved and sent a reply first, at %(time)s."),
    RunStatus.CANCELLED: msgid("%(who)s stopped this draft at %(time)s."),
    RunStatus.SUPERSEDED: msgid("%(who)s started over at %(time)s, so this draft is out of date."),
    RunStatus.WAITING_FOR_ESCALATION: msgid("%(who)s escalated this ticket at %(time)s."),
}
_RUN = {
    RunStatus.COMPLETED: msgid("A reply to this ticket was approved meanwhile."),
    RunStatus.CANCELLED: msgid("This draft was stopped meanwhile."),
    RunStatus.SUPERSEDED: msgid("This draft is out of date: a newer one has been started."),
    RunStatus.WAITING_FOR_ESCALATION: msgid("This ticket was escalated meanwhile."),
    RunStatus.FAILED: msgid("This draft failed meanwhile."),
}
_TICKET_BY = {
    TicketStatus.PENDING: msgid("%(who)s reopened this ticket at %(time)s."),
    TicketStatus.RESOLVED: msgid("%(who)s resolved this ticket at %(time)s."),
    TicketStatus.CLOSED: msgid("%(who)s closed this ticket at %(time)s."),
    TicketStatus.SPAM: msgid("%(who)s marked this ticket as spam at %(time)s."),
}
_TICKET = {
    TicketStatus.PENDING: msgid("This ticket was reopened at %(time)s."),
    TicketStatus.RESOLVED: msgid("This ticket was resolved at %(time)s."),
    TicketStatus.CLOSED: msgid("This ticket was closed at %(time)s."),
    TicketStatus.SPAM: msgid("This ticket was marked as spam at %(time)s."),
}


def name_of(staff_id: UUID | None) -> str | None:
    """Return the name of who moved something; None when no person did."""
    if staff_id is None:
        return None
    with container().sessions() as session:
        return staff_queries.names(session, [staff_id]).get(staff_id)


def run_moved(status: str, who: str | None, at: datetime | None, *, followed_by: str | None = None) -> str:
    """Return what became of a run: who was first, and when. `followed_by` is the origin of the run after it."""
    if status == RunStatus.SUPERSEDED and followed_by == RunOrigin.MESSAGE and at:
        return _customer_wrote(at)
    return _say(RunStatus(status), _RUN_BY, _RUN, who, at)


def ticket_moved(status: str, who: str | None, at: datetime | None) -> str:
    """Return what became of a ticket: who was first, and when."""
    return _say(TicketStatus(status), _TICKET_BY, _TICKET, who, at)


def notice(page: TicketPage) -> str:
    """Return what a person is told whose unsent text is about to be replaced by this state of the page."""
    run = page.run
    if run is None:
        return ""
    by_reply = page.phase is Phase.SENT and page.status == TicketStatus.RESOLVED
    if not page.open and page.moved_by and not by_reply:
        return ticket_moved(page.status, page.moved_by, page.moved_at)
    if page.phase in (Phase.SENDING, Phase.SENT, Phase.NOT_SENT, Phase.RECALLED, Phase.CANCELLED):
        return run_moved(run.status, run.moved_by, run.moved_at)
    if page.phase is Phase.ESCALATED and (run.draft or run.manual):
        return run_moved(run.status, run.moved_by, run.moved_at)
    if run.origin == RunOrigin.MESSAGE:
        return _customer_wrote(max(message.at for message in page.messages if message.kind == MessageKind.CUSTOMER))
    if len(page.runs) > 1 and run.started_by:
        return run_moved(RunStatus.SUPERSEDED, run.started_by, run.created_at)
    return run_moved(RunStatus.SUPERSEDED, None, None)


def _customer_wrote(at: datetime) -> str:
    return gettext("The customer has written again, at %(time)s.", time=clock(at))


def _say(status: S, named: Mapping[S, str], plain: Mapping[S, str], who: str | None, at: datetime | None) -> str:
    if who and at and status in named:
        return gettext(named[status], who=who, time=clock(at))
    if status in plain:
        return gettext(plain[status], time=clock(at) if at else "–")
    return gettext("Something changed in the meantime.")
