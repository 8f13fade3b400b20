"""Every row of the schedule's table is needed: each puts right, by the real table, what no other row does."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import func, select, update

from app.bootstrap import Container
from app.delivery.models import Delivery
from app.delivery.service import OVERDUE
from app.knowledge.models import KnowledgeDoc
from app.knowledge.service import STUCK_AFTER, add_document
from app.runs.models import Run, RunStatus
from app.runs.recovery import UNCLAIMED_AFTER
from app.tickets.models import Thread
from jobs.schedule import PERIODIC, run_schedule
from tests.delivery.test_deliver import approved
from tests.factories import MadeTicket, make_ticket
from tests.support.waiting import until


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong, made by `make`, which returns how to see that it has been put right."""

    row: str
    make: Callable[[Container], Callable[[], bool]]


def in_queue(container: Container, queue: str, key: UUID) -> bool:
    return str(key).encode() in container.redis.lrange(f"rq:queue:{queue}", 0, -1)


def change(container: Container, made: MadeTicket, **values: object) -> None:
    with container.transaction() as session:
        session.execute(update(Run).where(Run.id == made.run_id).values(**values))


def run_that_timed_out(container: Container) -> Callable[[], bool]:
    made = make_ticket(container, run_status=RunStatus.FAILED)
    change(container, made, error_code="timed_out", retry_at=func.now())

    def is_retried() -> bool:
        with container.transaction() as session:
            return session.scalar(select(Run.id).where(Run.retry_from == made.run_id)) is not None

    return is_retried


def run_whose_wait_is_over(container: Container) -> Callable[[], bool]:
    made = make_ticket(container)
    change(container, made, not_before=func.now())
    container.redis.flushall()
    return lambda: in_queue(container, "runs", made.run_id)


def run_whose_worker_died(container: Container) -> Callable[[], bool]:
    made = make_ticket(container, run_status=RunStatus.RUNNING)
    change(container, made, lease_until=func.now(), lease_owner="host-1:7:a:b")

    def is_ended() -> bool:
        with container.transaction() as session:
            return session.get_one(Run, made.run_id).status == RunStatus.FAILED

    return is_ended


def run_that_nobody_claimed(container: Container) -> Callable[[], bool]:
    made = make_ticket(container)
    change(container, made, created_at=func.now() - UNCLAIMED_AFTER)
    container.redis.flushall()
    return lambda: in_queue(container, "runs", made.run_id)


def thread_that_its_stream_lacks(container: Container) -> Callable[[], bool]:
    made = make_ticket(container, run_status=RunStatus.WAITING_FOR_REVIEW)
    with container.transaction() as session:
        session.execute(update(Thread).where(Thread.id == made.thread_id).values(published_seq=0))
    container.redis.flushall()
    return lambda: container.publisher.last_published(made.thread_id) > 0


def reply_whose_job_was_lost(container: Container) -> Callable[[], bool]:
    _, delivery_id = approved(container)
    with container.transaction() as session:
        past = func.now() - OVERDUE - timedelta(seconds=1)
        session.execute(update(Delivery).values(not_before=past))
    container.redis.flushall()
    return lambda: in_queue(container, "delivery", delivery_id)


def document_whose_job_was_lost(container: Container) -> Callable[[], bool]:
    with container.transaction() as session:
        doc_id = add_document(session, name="refund.md", content="# 退款\n\n五天到账。\n".encode(), staff_id=None)
    with container.transaction() as session:
        session.execute(update(KnowledgeDoc).values(enqueued_at=func.now() - STUCK_AFTER))
    container.redis.flushall()
    return lambda: in_queue(container, "knowledge", doc_id)


TROUBLES = (
    Trouble("retry runs that timed out", run_that_timed_out),
    Trouble("start runs whose wait is over", run_whose_wait_is_over),
    Trouble("decide on runs whose worker died", run_whose_worker_died),
    Trouble("start runs that nobody claimed", run_that_nobody_claimed),
    Trouble("publish events that streams lack", thread_that_its_stream_lacks),
    Trouble("start replies that are due", reply_whose_job_was_lost),
    Trouble("go on with documents that nobody works on", document_whose_job_was_lost),
)
trouble = pytest.mark.parametrize("trouble", TROUBLES, ids=lambda one: one.row)


@contextmanager
def schedule(container: Container) -> Iterator[None]:
    """The schedule with the table that it has by itself, until the block ends."""
    stopping = threading.Event()
    thread = threading.Thread(target=run_schedule, args=(container, stopping))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(timeout=30)


@trouble
def test_what_is_wrong_is_put_right_by_the_table(container: Container, trouble: Trouble) -> None:
    is_right = trouble.make(container)
    with schedule(container):
        until(is_right)


@trouble
def test_no_other_row_puts_it_right(container: Container, trouble: Trouble) -> None:
    is_right = trouble.make(container)
    for row in PERIODIC:
        if row.name != trouble.row:
            row.work(container)
    assert not is_right()


def test_every_row_has_a_trouble_that_needs_it() -> None:
    assert [one.row for one in TROUBLES] == [row.name for row in PERIODIC]
