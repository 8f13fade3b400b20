"""The customer writes again: message, ticket, reply and run move in one transaction, once a key.

The run that was at work on the older words gives way to one that answers all that is unanswered; one that no worker has
begun takes the new message along. What was approved but has not begun to leave is taken back.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, aliased

from app.delivery.recall import recall_replies
from app.ids import new_id
from app.intake.fields import message_text
from app.intake.keys import known_key, take_key
from app.intake.service import open_ticket
from app.runs.events import NewEvent, append_events, lock_thread
from app.runs.lifecycle import RunPlan, active_run, create_run, move_run
from app.runs.models import EventType, Run, RunOrigin, RunStatus
from app.staff import audit
from app.tickets.lifecycle import ended_at, move_ticket
from app.tickets.messages import add_message
from app.tickets.models import MessageKind, Thread, Ticket, TicketMessage, TicketStatus

REASON = "customer_message"
"""Why runs give way, replies are taken back and tickets are opened again."""
_REOPENED = frozenset({TicketStatus.WAITING_FOR_CUSTOMER, TicketStatus.RESOLVED, TicketStatus.CLOSED})


@dataclass(frozen=True, slots=True)
class MessageWindow:
    """How long a run waits for further messages: `wait_s` after each, `most_s` in all. A ticket that was closed more
    than `reopen_days` ago stays closed; what the customer writes then opens another one."""

    wait_s: float
    most_s: float
    reopen_days: int


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """Where a message went: its ticket, and its number there.

    `follow_up` says that this is another ticket than the one written to, which had been closed for too long. `run_id`
    is the newest run that answers it, None where none does. `created` is false when an earlier request with this key
    brought the message.
    """

    message_id: UUID
    number: int
    ticket_id: UUID
    ticket_number: int
    run_id: UUID | None
    follow_up: bool
    created: bool


def receive_message(
    session: Session,
    *,
    source: str,
    key: str,
    ticket_id: UUID,
    body: str,
    plan: RunPlan,
    window: MessageWindow,
    staff_id: UUID | None = None,
    token: str | None = None,
) -> ReceivedMessage:
    """Take in what the customer wrote on a ticket; the same source, key and body again return what is there.

    `source` names the sender's key space. `staff_id` is who wrote it down, if a person did; a system sends it by its
    `token` (the name of it).
    Raises InvalidFields, KeyReused, NotFound.
    """
    text = message_text(body)
    digest, message_id = _digest(ticket_id, text), new_id()
    if not take_key(session, source=source, key=key, digest=digest, ticket_id=ticket_id, message_id=message_id):
        known = known_key(session, source=source, key=key, digest=digest)
        return _received(session, known.message_id or message_id, addressed=ticket_id, created=False)
    thread, ticket, is_over = _lock_newest(session, ticket_id, window)
    by = _teller(staff_id, token)
    if is_over:
        _follow_up(session, thread, ticket, message_id, text, plan, staff_id, by)
    else:
        add_message(
            session,
            ticket_id=ticket.id,
            kind=MessageKind.CUSTOMER,
            body=text,
            message_id=message_id,
            staff_id=staff_id,
        )
        _take_in(session, thread, ticket, message_id, plan, window, by)
    if by:
        told = str(message_id)
        audit.record(session, "message_recorded", staff_id=staff_id, ticket_id=ticket.id, message=told, token=token)
    return _received(session, message_id, addressed=ticket_id, created=True)


def _teller(staff_id: UUID | None, token: str | None) -> dict[str, str]:
    """Return who told us what the customer wrote, as events name them."""
    return {"by": str(staff_id)} if staff_id else {"token": token} if token else {}


def _digest(ticket_id: UUID, text: str) -> str:
    canonical = json.dumps({"content": text, "ticket": str(ticket_id)}, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _received(session: Session, message_id: UUID, *, addressed: UUID, created: bool) -> ReceivedMessage:
    message, number = session.execute(
        select(TicketMessage, Ticket.number)
        .join(Ticket, Ticket.id == TicketMessage.ticket_id)
        .where(TicketMessage.id == message_id)
    ).one()
    newest = aliased(TicketMessage)
    run_id = session.scalar(
        select(Run.id)
        .join(Thread, Thread.id == Run.thread_id)
        .join(newest, newest.id == Run.last_customer_message_id)
        .where(Thread.ticket_id == message.ticket_id, newest.number >= message.number)
        .order_by(Run.id.desc())
        .limit(1)
    )
    return ReceivedMessage(
        message_id=message.id,
        number=message.number,
        ticket_id=message.ticket_id,
        ticket_number=number,
        run_id=run_id,
        follow_up=message.ticket_id != addressed,
        created=created,
    )


def _lock_newest(session: Session, ticket_id: UUID, window: MessageWindow) -> tuple[Thread, Ticket, bool]:
    """Lock the ticket, or the newest of those that go on from it; True says that even that was closed too long ago.

    Threads are locked from older to newer tickets only, so that two messages never wait for each other.
    """
    thread = lock_thread(session, ticket_id)
    ticket = session.get_one(Ticket, ticket_id, populate_existing=True)
    if not _closed_for_good(session, ticket, window):
        return thread, ticket, False
    newer = select(Ticket.id).where(Ticket.follow_up_of == ticket_id).order_by(Ticket.number.desc()).limit(1)
    following = session.scalar(newer)
    return (thread, ticket, True) if following is None else _lock_newest(session, following, window)


def _closed_for_good(session: Session, ticket: Ticket, window: MessageWindow) -> bool:
    if ticket.status != TicketStatus.CLOSED:
        return False
    now = session.scalars(select(func.now())).one()
    return now - ended_at(ticket) > timedelta(days=window.reopen_days)


def _follow_up(
    session: Session,
    thread: Thread,
    closed: Ticket,
    message_id: UUID,
    text: str,
    plan: RunPlan,
    staff_id: UUID | None,
    by: Mapping[str, str],
) -> None:
    """Open the ticket that goes on from a closed one, of the same customer, and start its run."""
    ticket = Ticket(
        id=new_id(),
        customer_id=closed.customer_id,
        channel=closed.channel,
        subject=closed.subject,
        follow_up_of=closed.id,
    )
    facts = {"message": str(message_id), "follow_up": str(ticket.id), **by}
    new_thread = open_ticket(session, ticket, message_id=message_id, body=text, staff_id=staff_id)
    append_events(session, thread, [NewEvent(EventType.MESSAGE_RECEIVED, None, facts)])
    create_run(session, new_thread, ticket, replace(plan, origin=RunOrigin.MESSAGE))


def _take_in(
    session: Session,
    thread: Thread,
    ticket: Ticket,
    message_id: UUID,
    plan: RunPlan,
    window: MessageWindow,
    by: Mapping[str, str],
) -> None:
    """Let ticket, reply and run follow from a new message; spam stays spam, and nothing works on it."""
    ticket.last_customer_message_id = message_id
    ticket.last_customer_message_at = func.now()
    ticket.version += 1
    append_events(session, thread, [NewEvent(EventType.MESSAGE_RECEIVED, None, {"message": str(message_id), **by})])
    if ticket.status == TicketStatus.SPAM:
        return
    if ticket.status in _REOPENED:
        move = move_ticket(session, ticket, TicketStatus.PENDING, reason=REASON)
        append_events(session, thread, [NewEvent(EventType.TICKET_MOVED, None, move.facts)])
    if recall_replies(session, thread, reason=REASON).one_is_leaving:
        ticket.reply_crossed_at = func.now()
    _let_a_run_answer(session, thread, ticket, plan, window)


def _let_a_run_answer(session: Session, thread: Thread, ticket: Ticket, plan: RunPlan, window: MessageWindow) -> None:
    active = active_run(session, thread.id)
    if active is not None and active.status == RunStatus.CREATED:
        _join(session, active, ticket, window)
        return
    new = replace(plan, origin=RunOrigin.MESSAGE, wait_s=min(window.wait_s, window.most_s))
    if active is not None and active.planner == "manual":
        # The person who writes it themselves goes on writing, with the new message before them.
        new = replace(new, planner="manual", model=None, wait_s=0.0, started_by=active.started_by)
    if active is not None:
        event = NewEvent(EventType.RUN_SUPERSEDED, active.id, {"reason": REASON})
        move_run(session, thread, active.id, RunStatus.SUPERSEDED, [event])
    create_run(session, thread, ticket, new)


def _join(session: Session, run: Run, ticket: Ticket, window: MessageWindow) -> None:
    """Let a run that no worker has begun answer this message too, and wait for further ones, up to the cap."""
    due = func.least(func.now() + timedelta(seconds=window.wait_s), Run.created_at + timedelta(seconds=window.most_s))
    session.execute(
        update(Run)
        .where(Run.id == run.id, Run.status == RunStatus.CREATED)
        .values(not_before=due, last_customer_message_id=ticket.last_customer_message_id)
        .execution_options(synchronize_session=False)
    )
