"""The outbox: a held reply leaves once, in order within its ticket, whatever dies on the way.

A send has three parts: claim it (committed), hand it to the channel, write down how it ended (committed). `attempts`
is the fence: whoever claimed last may finish. What the end does to the ticket stands in `settle.py`.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from app.db.signals import Job, JobName, signals
from app.delivery.channels import CHANNELS, channel_for
from app.delivery.channels.channel import Channel, NotSent
from app.delivery.models import Delivery, DeliveryState
from app.delivery.payload import Payload
from app.delivery.queries import LEAVING
from app.delivery.settle import reopen, write_reply
from app.ids import new_id
from app.msgids import msgid
from app.runs.events import NewEvent, append_events, lock_thread
from app.runs.models import Artifact, EventType

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
"""How long a send may take before its sender is taken for dead."""
OVERDUE = timedelta(seconds=5)
"""How long a reply may wait for its job before the sweep starts another."""
MOST_ATTEMPTS = 5

Transaction = Callable[[], AbstractContextManager[Session]]


@dataclass(frozen=True, slots=True)
class _Claimed:
    id: UUID
    ticket_id: UUID
    artifact_id: UUID
    channel: str
    payload: Payload
    attempt: int


@dataclass(frozen=True, slots=True)
class _Outcome:
    state: DeliveryState
    error: str | None = None


def hold_reply(session: Session, *, artifact_id: UUID, ticket_id: UUID, channel: str, payload: Payload) -> UUID:
    """Put an approved reply into the outbox; its job starts after the commit. The thread must be locked."""
    delivery = Delivery(
        id=new_id(),
        artifact_id=artifact_id,
        ticket_id=ticket_id,
        channel=channel,
        payload=payload.model_dump(mode="json"),
        not_before=func.now(),
    )
    session.add(delivery)
    session.flush()
    signals(session).jobs.append(Job(JobName.DELIVER_REPLY, delivery.id))
    return delivery.id


def deliver(transaction: Transaction, delivery_id: UUID, channels: Sequence[Channel] = CHANNELS) -> None:
    """Send a held reply if it is due and next in its ticket's order; does nothing when it is not, or another does it.

    The first of `channels` that serves the ticket's channel takes it. A send that its sender did not finish is tried
    again where the channel allows, else it becomes unknown.
    """
    with transaction() as session:
        claimed = _claim(session, delivery_id)
    if claimed is None:
        return
    outcome = _send(claimed, channels)
    with transaction() as session:
        _finish(session, claimed, outcome)


def sweep_due_deliveries(session: Session, *, limit: int = 100) -> int:
    """Start a job for each reply that should be out by now or whose sender died; returns how many."""
    waits = and_(Delivery.state == DeliveryState.HELD, Delivery.not_before < func.now() - OVERDUE, ~_has_earlier())
    due = session.scalars(select(Delivery.id).where(or_(waits, _abandoned())).order_by(Delivery.id).limit(limit)).all()
    signals(session).jobs.extend(Job(JobName.DELIVER_REPLY, delivery_id) for delivery_id in due)
    return len(due)


def _abandoned() -> ColumnElement[bool]:
    return and_(Delivery.state == DeliveryState.SENDING, Delivery.lease_until < func.now())


def _has_earlier() -> ColumnElement[bool]:
    earlier = aliased(Delivery)
    return exists().where(earlier.ticket_id == Delivery.ticket_id, earlier.id < Delivery.id, earlier.state.in_(LEAVING))


def _claim(session: Session, delivery_id: UUID) -> _Claimed | None:
    due = and_(Delivery.state == DeliveryState.HELD, Delivery.not_before <= func.now())
    row = session.scalar(
        update(Delivery)
        .where(Delivery.id == delivery_id, or_(due, _abandoned()), ~_has_earlier())
        .values(state=DeliveryState.SENDING, lease_until=func.now() + LEASE, attempts=Delivery.attempts + 1)
        .returning(Delivery)
        .execution_options(synchronize_session=False)
    )
    if row is None:
        return None
    payload = Payload.model_validate(row.payload)
    return _Claimed(row.id, row.ticket_id, row.artifact_id, row.channel, payload, row.attempts)


def _send(claimed: _Claimed, channels: Sequence[Channel]) -> _Outcome:
    channel = channel_for(claimed.channel, channels)
    if channel is None:
        return _Outcome(DeliveryState.FAILED, msgid("No channel takes replies to this ticket."))
    if claimed.attempt > 1 and not channel.repeatable:
        return _Outcome(DeliveryState.UNKNOWN, msgid("The sender stopped halfway; nobody knows whether it went out."))
    if claimed.attempt > MOST_ATTEMPTS:
        return _Outcome(DeliveryState.UNKNOWN, msgid("The sender stopped too often; nobody knows whether it went out."))
    try:
        channel.send(claimed.id, claimed.payload)
    except NotSent as refused:
        return _Outcome(DeliveryState.FAILED, refused.reason)
    except Exception:
        log.exception("delivery %s: the channel %s broke", claimed.id, channel.name)
        return _Outcome(DeliveryState.UNKNOWN, msgid("The channel broke; nobody knows whether it went out."))
    return _Outcome(DeliveryState.SENT)


def _finish(session: Session, claimed: _Claimed, outcome: _Outcome) -> None:
    """Write down how a send ended, on the ticket too; a sender that was taken for dead changes nothing."""
    sent = outcome.state == DeliveryState.SENT
    thread = lock_thread(session, claimed.ticket_id)
    mine = session.scalar(
        update(Delivery)
        .where(
            Delivery.id == claimed.id,
            Delivery.state == DeliveryState.SENDING,
            Delivery.attempts == claimed.attempt,
        )
        .values(
            state=outcome.state, error=outcome.error, lease_until=None, sent_at=func.clock_timestamp() if sent else None
        )
        .returning(Delivery.id)
    )
    if mine is None:
        log.warning("delivery %s: attempt %s was overtaken", claimed.id, claimed.attempt)
        return
    artifact = session.get_one(Artifact, claimed.artifact_id)
    facts = {"artifact": str(artifact.id), "state": outcome.state.value}
    if sent:
        facts["message"] = str(write_reply(session, artifact, claimed.ticket_id, claimed.payload.text))
        append_events(session, thread, [NewEvent(EventType.REPLY_SENT, artifact.run_id, facts)])
    else:
        reopen(session, thread, surely_not_sent=outcome.state == DeliveryState.FAILED)
        append_events(session, thread, [NewEvent(EventType.REPLY_FAILED, artifact.run_id, facts)])
    _start_next(session, claimed.ticket_id)


def _start_next(session: Session, ticket_id: UUID) -> None:
    """Start the job of the ticket's next held reply: its own job found that it was not its turn."""
    following = session.scalar(
        select(Delivery.id)
        .where(Delivery.ticket_id == ticket_id, Delivery.state == DeliveryState.HELD)
        .order_by(Delivery.id)
        .limit(1)
    )
    if following is not None:
        signals(session).jobs.append(Job(JobName.DELIVER_REPLY, following))
