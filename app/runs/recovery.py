"""What the sweep puts right: runs whose worker died, runs that nobody started, threads that the stream lags behind.

Ids are picked without locks, then each row is judged again under its lock in a transaction of its own.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.live.publisher import Publisher
from app.msgids import msgid
from app.runs.events import NewEvent, events_after, lock_thread
from app.runs.lifecycle import move_run
from app.runs.models import EventType, Run, RunStatus
from app.tickets.models import Thread

log = logging.getLogger(__name__)
Transaction = Callable[[], AbstractContextManager[Session]]

WORKER_LOST = msgid("The process that worked on this run no longer answers.")
UNCLAIMED_AFTER = timedelta(seconds=10)
"""So long a run may wait for its worker before it is enqueued again; a waiting job is never doubled."""
BATCH = 200


def fail_expired(transaction: Transaction) -> int:
    """Fail the runs whose lease has run out; returns how many. Their worker's later writes meet the guard."""
    expired = (Run.status == RunStatus.RUNNING, Run.lease_until < func.now())
    with transaction() as session:
        found = session.execute(select(Run.id, Run.ticket_id).where(*expired).limit(BATCH)).all()
    failed = 0
    for run_id, ticket_id in found:
        with transaction() as session:
            thread = lock_thread(session, ticket_id)
            if session.scalar(select(Run.id).where(Run.id == run_id, *expired).with_for_update(key_share=True)) is None:
                continue
            event = NewEvent(EventType.RUN_FAILED, run_id, {"code": "worker_lost"})
            move_run(
                session,
                thread,
                run_id,
                RunStatus.FAILED,
                [event],
                error_code="worker_lost",
                error_message=WORKER_LOST,
            )
        log.warning("run=%s failed: its worker was lost", run_id)
        failed += 1
    return failed


def enqueue_unclaimed(
    transaction: Transaction, enqueue: Callable[[UUID], None], *, older_than: timedelta = UNCLAIMED_AFTER
) -> int:
    """Start again the runs that no worker has claimed for a while; returns how many. Raises what `enqueue` raises."""
    with transaction() as session:
        unclaimed = session.scalars(
            select(Run.id)
            .where(Run.status.in_((RunStatus.CREATED, RunStatus.RETRYING)))
            .where(func.coalesce(Run.moved_at, Run.created_at) < func.now() - older_than)
            .order_by(Run.created_at)
            .limit(BATCH)
        ).all()
    for run_id in unclaimed:
        enqueue(run_id)
    return len(unclaimed)


def republish(transaction: Transaction, publisher: Publisher) -> int:
    """Publish again what the streams lack; returns how many threads lagged. Raises redis.RedisError.

    `published_seq` follows every burst of events this way, so most threads seen here lack nothing.
    """
    with transaction() as session:
        rows = session.execute(
            select(Thread.id, Thread.last_seq, Thread.published_seq)
            .where(Thread.published_seq < Thread.last_seq)
            .limit(BATCH)
        ).all()
        lagging = [(row.id, row.last_seq, events_after(session, row.id, row.published_seq)) for row in rows]
    for thread_id, _, events in lagging:
        known = publisher.last_published(thread_id)
        publisher.publish([event for event in events if event.seq > known])
    for thread_id, last_seq, _ in lagging:
        with transaction() as session:
            session.execute(
                update(Thread)
                .where(Thread.id == thread_id, Thread.published_seq < last_seq)
                .values(published_seq=last_seq)
            )
    return len(lagging)
