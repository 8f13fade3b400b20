"""Events of a thread: appended under the thread's row lock, numbered by it, published after the commit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.db.signals import EventFact, signals
from app.errors import NotFound
from app.runs.models import Event, EventType
from app.tickets.models import Thread


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to append; `payload` holds ids and small facts only, personal data by reference."""

    type: EventType
    run_id: UUID | None = None
    payload: dict[str, Any] = field(default_factory=dict)


def lock_thread(session: Session, ticket_id: UUID) -> Thread:
    """Lock and return the ticket's thread: the first lock of every change (thread, run, artifact, delivery).

    Raises NotFound.
    """
    thread = _lock(session, ticket_id, skip_locked=False)
    if thread is None:
        raise NotFound("There is no such ticket.")
    return thread


def try_lock_thread(session: Session, ticket_id: UUID) -> Thread | None:
    """Lock and return the ticket's thread, unless somebody else holds it: who comes again anyway does not wait."""
    return _lock(session, ticket_id, skip_locked=True)


def _lock(session: Session, ticket_id: UUID, *, skip_locked: bool) -> Thread | None:
    return session.scalar(
        select(Thread)
        .where(Thread.ticket_id == ticket_id)
        .with_for_update(key_share=True, skip_locked=skip_locked)
        .execution_options(populate_existing=True)
    )


def append_events(session: Session, thread: Thread, events: Sequence[NewEvent]) -> None:
    """Append events to a thread that is locked (or was made in this transaction) and note them for publishing."""
    for event in events:
        thread.last_seq += 1
        session.add(
            Event(
                thread_id=thread.id,
                seq=thread.last_seq,
                run_id=event.run_id,
                type=event.type,
                payload=event.payload,
            )
        )
        signals(session).events.append(
            EventFact(thread.id, thread.ticket_id, thread.last_seq, event.type, event.run_id, event.payload)
        )
    session.flush()


def events_after(session: Session, thread_id: UUID, after: int) -> list[EventFact]:
    """Return the events of a thread after the number `after`, in order, as streams carry them."""
    rows = session.execute(
        select(Event, Thread.ticket_id)
        .join(Thread, Thread.id == Event.thread_id)
        .where(Event.thread_id == thread_id, Event.seq > after)
        .order_by(Event.seq)
    )
    return [
        EventFact(thread_id, ticket_id, event.seq, event.type, event.run_id, event.payload) for event, ticket_id in rows
    ]
