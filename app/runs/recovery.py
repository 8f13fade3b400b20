"""What is put right by looking again and again: runs whose worker died, runs that are due, threads that streams lack.

Ids are picked without locks, page by page; then each run is judged again under its thread's lock, in a transaction of
its own. A thread that somebody holds is left for the next look: none of this waits, and two looks at once have one
effect.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, tuple_, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.db.signals import JobName
from app.live.job_queue import JobQueue
from app.live.publisher import Publisher
from app.runs.events import NewEvent, append_events, events_after, try_lock_thread
from app.runs.fate import SET_ASIDE_CODE, StalePolicy
from app.runs.leases import LEASE_S
from app.runs.lifecycle import RunPlan, create_run, give_to_person, latest_run, move_run, run_job
from app.runs.models import EventType, Run, RunOrigin, RunStatus, Step
from app.tickets.models import DONE, Thread, Ticket

log = logging.getLogger(__name__)
Transaction = Callable[[], AbstractContextManager[Session]]

UNCLAIMED_AFTER = timedelta(seconds=10)
"""So long a run may wait for its worker before it is enqueued again; a waiting job is never doubled."""
SETTLED_AFTER = timedelta(seconds=LEASE_S)
"""So long after PostgreSQL has started nobody is taken for dead: nobody could renew a lease while it was away."""
PAGE = 200
"""Rows that a look holds at a time."""
LOOK = 500
"""Runs that one look takes care of at the most, so that other periodic work gets its turn; the next look goes on."""
_WAITS_FOR_WORKER = Run.status.in_((RunStatus.CREATED, RunStatus.RETRYING))


def sweep(transaction: Transaction, policy: StalePolicy, plan: RunPlan, *, limit: int = LOOK) -> int:
    """Decide on up to `limit` runs whose lease has run out; returns on how many. `plan` is how a new run would go.

    Each fails with a reason, and is retried by a new run or set aside for a person, as `policy` says. What its worker
    writes later meets the guard.
    """
    settled = func.pg_postmaster_start_time() < func.now() - SETTLED_AFTER
    expired = (Run.status == RunStatus.RUNNING, Run.lease_until < func.now(), settled)
    decided = 0
    for run_id, ticket_id, _ in _found(transaction, Run.lease_until, *expired):
        with transaction() as session:
            locked = _lock(session, ticket_id, run_id, *expired)
            if locked is None:
                continue
            _end(session, *locked, policy, plan)
        decided += 1
        if decided >= limit:
            break
    return decided


def retry_due(transaction: Transaction, plan: RunPlan, *, limit: int = LOOK) -> int:
    """Retry up to `limit` failed runs whose time for it has come; returns how many.

    A run that another one has followed, or whose ticket is done, is not retried any more. A reply that is leaving does
    not matter: it was approved before this run was made.
    """
    due = (Run.status == RunStatus.FAILED, Run.retry_at <= func.now())
    retried = 0
    for run_id, ticket_id, _ in islice(_found(transaction, Run.retry_at, *due), limit):
        with transaction() as session:
            locked = _lock(session, ticket_id, run_id, *due)
            if locked is not None:
                retried += _take_retry(session, *locked, plan)
    return retried


def enqueue_due(transaction: Transaction, queue: JobQueue) -> int:
    """Start the runs whose time to wait is over, as soon as it is; returns how many. Raises redis.RedisError.

    Those that no worker has claimed for a while are left to `enqueue_unclaimed`.
    """
    just_due = Run.not_before.between(func.now() - UNCLAIMED_AFTER, func.now())
    return _enqueue(transaction, queue, just_due)


def enqueue_unclaimed(transaction: Transaction, queue: JobQueue, *, older_than: timedelta = UNCLAIMED_AFTER) -> int:
    """Start again the runs that no worker has claimed for a while; returns how many. Raises redis.RedisError."""
    since = func.greatest(func.coalesce(Run.moved_at, Run.created_at), Run.not_before)
    return _enqueue(transaction, queue, since < func.now() - older_than)


def republish(transaction: Transaction, publisher: Publisher) -> int:
    """Publish again what the streams lack; returns how many threads lagged. Raises redis.RedisError.

    `published_seq` follows every burst of events this way, so most threads seen here lack nothing. One that somebody
    holds is not marked now, and seen again.
    """
    with transaction() as session:
        rows = session.execute(
            select(Thread.id, Thread.last_seq, Thread.published_seq)
            .where(Thread.published_seq < Thread.last_seq)
            .limit(PAGE)
        ).all()
        lagging = [(row.id, row.last_seq, events_after(session, row.id, row.published_seq)) for row in rows]
    for thread_id, _, events in lagging:
        known = publisher.last_published(thread_id)
        publisher.publish([event for event in events if event.seq > known])
    for thread_id, last_seq, _ in lagging:
        free = select(Thread.id).where(Thread.id == thread_id, Thread.published_seq < last_seq)
        free = free.with_for_update(key_share=True, skip_locked=True)
        with transaction() as session:
            session.execute(update(Thread).where(Thread.id.in_(free)).values(published_seq=last_seq))
    return len(lagging)


def _found(
    transaction: Transaction, by: InstrumentedAttribute[Any], *where: ColumnElement[bool]
) -> Iterator[tuple[UUID, UUID, str | None]]:
    """Yield id, ticket and its priority of the runs that match, by the time `by`; read a page at a time, unlocked."""
    query = select(Run.id, Run.ticket_id, Ticket.priority, by).join(Ticket, Ticket.id == Run.ticket_id)
    query = query.where(*where).order_by(by, Run.id).limit(PAGE)
    following = query
    while True:
        with transaction() as session:
            page = session.execute(following).all()
        yield from ((run_id, ticket_id, priority) for run_id, ticket_id, priority, _ in page)
        if len(page) < PAGE:
            return
        following = query.where(tuple_(by, Run.id) > tuple_(page[-1][3], page[-1][0]))


def _lock(session: Session, ticket_id: UUID, run_id: UUID, *where: ColumnElement[bool]) -> tuple[Thread, Run] | None:
    """Lock and return a thread and its run, if nobody holds them and the run still matches.

    The run needs a lock of its own: workers renew leases without the thread's.
    """
    thread = try_lock_thread(session, ticket_id)
    if thread is None:
        return None
    query = select(Run).where(Run.id == run_id, *where)
    run = session.scalar(query.with_for_update(key_share=True, skip_locked=True))
    return (thread, run) if run is not None else None


def _end(session: Session, thread: Thread, run: Run, policy: StalePolicy, plan: RunPlan) -> None:
    """Fail a run whose worker died, and do what follows from it."""
    ticket = session.get_one(Ticket, run.ticket_id)
    unfinished = session.scalars(select(Step.skill).where(Step.run_id == run.id, Step.ended_at.is_(None))).all()
    run.deaths += 1
    fate = policy.judge(
        deaths=run.deaths,
        unfinished=unfinished,
        newer_message=run.last_customer_message_id != ticket.last_customer_message_id,
    )
    facts = {"code": fate.code, "reason": fate.reason, "deaths": run.deaths, **({"retry": True} if fate.retry else {})}
    event = NewEvent(EventType.RUN_FAILED, run.id, facts)
    move_run(session, thread, run.id, RunStatus.FAILED, [event], error_code=fate.code, error_message=fate.message)
    if fate.code == SET_ASIDE_CODE:
        give_to_person(ticket, fate.message)
    if fate.retry:
        _retry(session, thread, ticket, run, plan, RunOrigin.WORKER_LOST)
    log.warning("run=%s: its worker was lost (%s by %s)", run.id, "retried" if fate.retry else fate.code, fate.reason)


def _take_retry(session: Session, thread: Thread, run: Run, plan: RunPlan) -> bool:
    """Retry a run that is due for it, unless its ticket has moved on, as its event says; it is due no more."""
    run.retry_at = None
    ticket = session.get_one(Ticket, run.ticket_id)
    newest = latest_run(session, thread.id)
    followed = newest is not None and newest.id != run.id
    if followed or ticket.status in DONE:
        facts = {"reason": "newer_run" if followed else "ticket_done"}
        append_events(session, thread, [NewEvent(EventType.RUN_NOT_RETRIED, run.id, facts)])
        return False
    _retry(session, thread, ticket, run, plan, RunOrigin.TIMED_OUT)
    return True


def _retry(session: Session, thread: Thread, ticket: Ticket, old: Run, plan: RunPlan, origin: RunOrigin) -> None:
    """Make the run that goes on with the work of one that failed, and say so on it."""
    timeouts = old.auto_retries + (origin is RunOrigin.TIMED_OUT)
    new = replace(plan, hint=old.hint, retry_from=old.id, origin=origin, deaths=old.deaths, auto_retries=timeouts)
    run = create_run(session, thread, ticket, new)
    facts = {"from": str(old.id), "reason": origin.value, "attempt": 1 + new.deaths + new.auto_retries}
    append_events(session, thread, [NewEvent(EventType.RUN_RETRYING, run.id, facts)])


def _enqueue(transaction: Transaction, queue: JobQueue, waits_long: ColumnElement[bool]) -> int:
    """Start up to LOOK of these runs that wait for a worker but in no queue."""
    waiting: frozenset[UUID] | None = None
    enqueued = 0
    for run_id, _, priority in _found(transaction, Run.created_at, _WAITS_FOR_WORKER, waits_long):
        if waiting is None:
            waiting = queue.waiting(JobName.EXECUTE_RUN)
        if run_id not in waiting:
            queue.enqueue(run_job(run_id, priority))
            enqueued += 1
        if enqueued >= LOOK:
            break
    return enqueued
