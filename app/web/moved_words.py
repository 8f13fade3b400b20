"""Sentences about who was first: what became of a run or a ticket that a person still had before them."""

from datetime import datetime

from app.httpkit.container import container
from app.httpkit.moved import say_told
from app.review.moved import run_told, ticket_told, who_moved, wrote_again
from app.review.ticket_view import Phase, TicketPage
from app.runs.lifecycle import RunMoved
from app.runs.models import RunOrigin, RunStatus
from app.tickets.lifecycle import TicketMoved
from app.tickets.models import MessageKind, TicketStatus


def refused(error: RunMoved | TicketMoved) -> str:
    """Return who was faster than the person of this request, to what, and when."""
    with container().sessions() as session:
        return say_told(who_moved(session, error).told)


def ticket_moved(status: str, who: str | None, at: datetime) -> str:
    """Return what became of a ticket."""
    return say_told(ticket_told(status, who, at))


def notice(page: TicketPage) -> str:
    """Return what a person is told whose unsent text is about to be replaced by this state of the page."""
    run = page.run
    if run is None:
        return ""
    by_reply = page.phase is Phase.SENT and page.status == TicketStatus.RESOLVED
    if not page.open and page.moved_by and not by_reply:
        return ticket_moved(page.status, page.moved_by, page.moved_at or page.created_at)
    ended = page.phase in (Phase.SENDING, Phase.SENT, Phase.NOT_SENT, Phase.RECALLED, Phase.CANCELLED)
    if ended or (page.phase is Phase.ESCALATED and (run.draft or run.manual)):
        return say_told(run_told(run.status, run.moved_by, run.moved_at or run.created_at))
    if run.origin == RunOrigin.MESSAGE:
        wrote = (message.at for message in page.messages if message.kind == MessageKind.CUSTOMER)
        return say_told(wrote_again(max(wrote)))
    who = run.started_by if len(page.runs) > 1 else None
    return say_told(run_told(RunStatus.SUPERSEDED, who, run.created_at))
