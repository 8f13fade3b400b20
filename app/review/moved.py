"""Who was first: what became of a run or a ticket that somebody still had before them, by whom, and when.

A sentence is an English msgid with places for `who` and `time`, which page, API and command line fill each in its way.
A person stands on the row that moved; a token or a command stands in the event of the same transaction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from app.msgids import msgid
from app.runs.lifecycle import RunMoved
from app.runs.models import Event, EventType, Run, RunOrigin, RunStatus
from app.staff import queries as staff_queries
from app.staff.models import AuditEntry
from app.tickets.lifecycle import TicketMoved
from app.tickets.models import Thread, Ticket, TicketStatus

S = TypeVar("S", RunStatus, TicketStatus)
_RUN_BY = {
    RunStatus.COMPLETED: msgid("%(who)s approved and sent a reply first, at %(time)s."),
    RunStatus.CANCELLED: msgid("%(who)s stopped this draft at %(time)s."),
    RunStatus.SUPERSEDED: msgid("%(who)s started over at %(time)s, so this draft is out of date."),
    RunStatus.WAITING_FOR_ESCALATION: msgid("%(who)s escalated this ticket at %(time)s."),
    RunStatus.FAILED: msgid("%(who)s set this draft aside at %(time)s; the ticket waits for a person."),
}
_RUN = {
    RunStatus.CREATED: msgid("This draft was asked for at %(time)s and has not been begun yet."),
    RunStatus.RETRYING: msgid("This draft was interrupted at %(time)s and goes on by itself."),
    RunStatus.RUNNING: msgid("This draft has been in the making since %(time)s."),
    RunStatus.WAITING_FOR_REVIEW: msgid("This draft has waited for a person since %(time)s."),
    RunStatus.WAITING_FOR_ESCALATION: msgid("This ticket was escalated at %(time)s."),
    RunStatus.COMPLETED: msgid("A reply to this ticket was approved at %(time)s."),
    RunStatus.FAILED: msgid("This draft failed at %(time)s."),
    RunStatus.CANCELLED: msgid("This draft was stopped at %(time)s."),
    RunStatus.SUPERSEDED: msgid("This draft is out of date: a newer one was started at %(time)s."),
}
_TICKET_BY = {
    TicketStatus.PENDING: msgid("%(who)s reopened this ticket at %(time)s."),
    TicketStatus.WAITING_FOR_CUSTOMER: msgid("%(who)s let this ticket wait for the customer at %(time)s."),
    TicketStatus.RESOLVED: msgid("%(who)s resolved this ticket at %(time)s."),
    TicketStatus.CLOSED: msgid("%(who)s closed this ticket at %(time)s."),
    TicketStatus.SPAM: msgid("%(who)s marked this ticket as spam at %(time)s."),
}
_TICKET = {
    TicketStatus.PENDING: msgid("This ticket has been open since %(time)s."),
    TicketStatus.PROCESSING: msgid("This ticket has been worked on since %(time)s."),
    TicketStatus.WAITING_FOR_CUSTOMER: msgid("This ticket has waited for the customer since %(time)s."),
    TicketStatus.RESOLVED: msgid("This ticket was resolved at %(time)s."),
    TicketStatus.CLOSED: msgid("This ticket was closed at %(time)s."),
    TicketStatus.SPAM: msgid("This ticket was marked as spam at %(time)s."),
}
_WROTE_AGAIN = msgid("The customer has written again, at %(time)s.")
_REPLACED_BY = msgid("%(who)s began to write the reply at %(time)s, so this draft is out of date.")
_BY_ITSELF = msgid("This draft did not come about; it was started once more by itself at %(time)s.")
_GAVE_WAY = frozenset({RunStatus.SUPERSEDED, RunStatus.FAILED, RunStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class Told:
    """One sentence: a msgid, and what fills its places."""

    text: str
    who: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Moved:
    """To what status, by whom, when, and the sentence about it.

    `by` is the name of a person, of a token or of a command; None where the system did it by itself.
    """

    to: str
    by: str | None
    at: datetime
    told: Told


def wrote_again(at: datetime) -> Told:
    """Return that the customer has written."""
    return Told(_WROTE_AGAIN, None, at)


def run_told(status: str, who: str | None, at: datetime) -> Told:
    """Return what became of a run."""
    return _told(RunStatus(status), _RUN_BY, _RUN, who, at)


def ticket_told(status: str, who: str | None, at: datetime) -> Told:
    """Return what became of a ticket."""
    return _told(TicketStatus(status), _TICKET_BY, _TICKET, who, at)


def who_moved(session: Session, error: RunMoved | TicketMoved) -> Moved:
    """Return who was first. Of a run that gave way the sentence tells what took its place."""
    return _moved_run(session, error) if isinstance(error, RunMoved) else _moved_ticket(session, error)


def _moved_run(session: Session, error: RunMoved) -> Moved:
    run = session.get_one(Run, error.run_id)
    at = error.at or run.created_at
    by = _person(session, error.by) or _no_person(session, at, Event.run_id == run.id)
    newer = session.scalar(select(Run).where(Run.thread_id == run.thread_id, Run.id > run.id).order_by(Run.id).limit(1))
    gave_way = newer is not None and error.run_status in _GAVE_WAY
    told = _replaced(session, newer) if newer and gave_way else run_told(error.run_status, by, at)
    return Moved(error.run_status, by, at, told)


def _moved_ticket(session: Session, error: TicketMoved) -> Moved:
    ticket = session.get_one(Ticket, error.ticket_id)
    at = error.at or ticket.created_at
    of_thread = Event.thread_id == select(Thread.id).where(Thread.ticket_id == ticket.id).scalar_subquery()
    moves = (of_thread, Event.type == EventType.TICKET_MOVED)
    by = _person(session, error.by) or _no_person(session, at, *moves)
    reopened = session.scalar(select(Event.payload["reason"].astext).where(*moves, Event.created_at == at).limit(1))
    told = wrote_again(at) if reopened == "customer_message" else ticket_told(error.ticket_status, by, at)
    return Moved(error.ticket_status, by, at, told)


def _starter(session: Session, run: Run) -> str | None:
    """Return the name of the person or the command that asked for a run; None when it was made by itself."""
    if run.started_by is not None:
        return _person(session, run.started_by)
    asked = (AuditEntry.ticket_id == run.ticket_id, AuditEntry.run_id == run.id)
    return session.scalar(select(AuditEntry.detail["command"].astext).where(*asked).order_by(AuditEntry.id).limit(1))


def _replaced(session: Session, newer: Run) -> Told:
    match newer.origin:
        case RunOrigin.MESSAGE:
            return wrote_again(newer.created_at)
        case RunOrigin.TIMED_OUT | RunOrigin.WORKER_LOST:
            return Told(_BY_ITSELF, None, newer.created_at)
    who = _starter(session, newer)
    if who and newer.origin == RunOrigin.MANUAL:
        return Told(_REPLACED_BY, who, newer.created_at)
    return run_told(RunStatus.SUPERSEDED, who, newer.created_at)


def _told(status: S, named: Mapping[S, str], plain: Mapping[S, str], who: str | None, at: datetime) -> Told:
    return Told(named[status], who, at) if who and status in named else Told(plain[status], who, at)


def _person(session: Session, staff_id: UUID | None) -> str | None:
    return staff_queries.names(session, [staff_id]).get(staff_id) if staff_id else None


def _no_person(session: Session, at: datetime, *where: ColumnElement[bool]) -> str | None:
    """Return the token or the command that an event of the move names; event and move have one transaction's time."""
    for facts in session.scalars(select(Event.payload).where(*where, Event.created_at == at)):
        if name := facts.get("token") or facts.get("command"):
            return str(name)
    return None
