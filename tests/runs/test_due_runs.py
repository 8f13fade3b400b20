"""Runs whose time has come: retries of what timed out, waits that are over, and jobs that were lost."""

import threading
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from app.agent.values import Priority
from app.bootstrap import Container
from app.db.signals import Job, JobName
from app.ids import new_id
from app.live.job_queue import RUNS, URGENT
from app.review.service import regenerate
from app.runs.events import lock_thread
from app.runs.explain import explain
from app.runs.lifecycle import create_run
from app.runs.models import EventType, Run, RunOrigin, RunStatus
from app.runs.recovery import LOOK, UNCLAIMED_AFTER, enqueue_due, enqueue_unclaimed, retry_due
from app.tickets.models import DONE, Ticket, TicketStatus
from tests.factories import MadeTicket, make_staff, make_ticket
from tests.runs.conftest import StartRuntime
from tests.runs.looking import events_of, run_of
from tests.runs.many import make_runs


def timed_out(container: Container, *, due_in_s: float = 0) -> MadeTicket:
    """A run that took too long and is to be retried, now or later."""
    made = make_ticket(container, customer=f"C-{new_id()}", run_status=RunStatus.FAILED)
    with container.transaction() as session:
        due = func.now() + timedelta(seconds=due_in_s)
        values = {"error_code": "timed_out", "retry_at": due, "hint": "客气一点", "deaths": 1}
        session.execute(update(Run).where(Run.id == made.run_id).values(values))
    return made


def retry(container: Container) -> int:
    """Look as the schedule does."""
    return retry_due(container.transaction, container.run_plan())


def runs_of(container: Container, made: MadeTicket) -> list[Run]:
    with container.transaction() as session:
        return list(session.scalars(select(Run).where(Run.thread_id == made.thread_id).order_by(Run.id)))


def queued(container: Container, queue: str = RUNS) -> list[str]:
    return [job_id.decode() for job_id in container.redis.lrange(f"rq:queue:{queue}", 0, -1)]


def test_a_run_that_timed_out_is_retried_once_and_the_new_one_says_why(container: Container) -> None:
    made = timed_out(container)
    assert retry(container) == 1
    assert retry(container) == 0
    old, new = runs_of(container, made)
    assert (old.status, old.retry_at) == (RunStatus.FAILED, None)
    assert (new.status, new.origin, new.retry_from, new.hint) == (
        RunStatus.CREATED,
        RunOrigin.TIMED_OUT,
        old.id,
        "客气一点",
    )
    assert (new.deaths, new.auto_retries) == (1, 1)
    created, retrying = events_of(container, made.thread_id)[-2:]
    assert (created.type, created.payload["origin"]) == (EventType.RUN_CREATED, "timed_out")
    assert (retrying.type, retrying.run_id) == (EventType.RUN_RETRYING, new.id)
    assert retrying.payload == {"from": str(old.id), "reason": "timed_out", "attempt": 3}
    assert str(new.id) in queued(container)


def test_a_retry_is_not_made_before_it_is_due(container: Container) -> None:
    made = timed_out(container, due_in_s=60)
    assert retry(container) == 0
    assert run_of(container, made.run_id).retry_at is not None


def dropped_for(container: Container, run: Run) -> list[str]:
    """Why a retry was dropped, by each event that says so."""
    events = [event for event in events_of(container, run.thread_id) if event.run_id == run.id]
    return [event.payload["reason"] for event in events if event.type == EventType.RUN_NOT_RETRIED]


@pytest.mark.parametrize("status", sorted(DONE))
def test_a_ticket_that_is_done_needs_no_retry(container: Container, status: TicketStatus) -> None:
    made = timed_out(container)
    with container.transaction() as session:
        session.execute(update(Ticket).values(status=status))
    assert retry(container) == 0
    (run,) = runs_of(container, made)
    assert run.retry_at is None
    assert dropped_for(container, run) == ["ticket_done"]
    with container.transaction() as session:
        told = [str(sentence) for sentence in explain(session, run.id)]
    assert "It was not retried after all: its ticket was done by then." in told


def test_a_run_that_somebody_has_retried_is_not_retried_again(container: Container) -> None:
    made = timed_out(container)
    staff_id = make_staff(container)
    with container.transaction() as session:
        regenerate(session, ticket_id=made.ticket_id, staff_id=staff_id, hint="", plan=container.run_plan())
    assert retry(container) == 0
    old, _ = runs_of(container, made)
    assert old.retry_at is None
    assert dropped_for(container, old) == ["newer_run"]


def test_a_retry_waits_while_somebody_holds_the_thread(container: Container) -> None:
    made = timed_out(container)
    with container.transaction() as session:
        lock_thread(session, made.ticket_id)
        assert retry(container) == 0
    assert retry(container) == 1


def test_two_looks_at_the_same_time_make_one_retry_each(container: Container) -> None:
    tickets = [timed_out(container) for _ in range(10)]
    start = threading.Barrier(3)

    def work() -> None:
        start.wait()
        retry(container)

    looks = [threading.Thread(target=work) for _ in range(3)]
    for one in looks:
        one.start()
    for one in looks:
        one.join()
    retry(container)  # what two of them stood in each other's way for
    assert [len(runs_of(container, made)) for made in tickets] == [2] * 10


def test_a_run_is_not_enqueued_before_its_wait_is_over_and_at_once_then(
    container: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    container.redis.flushall()

    def wait(seconds: float, *, created: timedelta = timedelta(0)) -> None:
        with container.transaction() as session:
            due = func.now() + timedelta(seconds=seconds)
            session.execute(update(Run).values(not_before=due, created_at=func.now() - created))

    wait(60, created=UNCLAIMED_AFTER * 2)
    assert enqueue_due(container.transaction, container.queue) == 0
    assert enqueue_unclaimed(container.transaction, container.queue) == 0
    start_runtime().execute(made.run_id)
    assert run_of(container, made.run_id).status == RunStatus.CREATED

    wait(-0.1, created=UNCLAIMED_AFTER * 2)
    assert enqueue_unclaimed(container.transaction, container.queue) == 0
    assert enqueue_due(container.transaction, container.queue) == 1
    assert enqueue_due(container.transaction, container.queue) == 0
    assert queued(container) == [str(made.run_id)]

    container.redis.flushall()
    wait(-(UNCLAIMED_AFTER.total_seconds() + 1), created=UNCLAIMED_AFTER * 2)
    assert enqueue_due(container.transaction, container.queue) == 0
    assert enqueue_unclaimed(container.transaction, container.queue) == 1
    assert queued(container) == [str(made.run_id)]


def test_a_run_that_was_handed_back_is_enqueued_again_like_one_that_nobody_claimed(container: Container) -> None:
    made = make_ticket(container, run_status=RunStatus.RETRYING)
    container.redis.flushall()
    with container.transaction() as session:
        session.execute(update(Run).values(created_at=func.now() - timedelta(hours=1), moved_at=func.now()))
    assert enqueue_unclaimed(container.transaction, container.queue) == 0
    with container.transaction() as session:
        session.execute(update(Run).values(moved_at=func.now() - UNCLAIMED_AFTER))
    assert enqueue_unclaimed(container.transaction, container.queue) == 1
    assert queued(container) == [str(made.run_id)]


def test_no_run_is_passed_over_however_many_wait_before_it(container: Container) -> None:
    container.redis.flushall()
    count = LOOK + 5
    make_runs(container, count, status="created")
    looks = [enqueue_unclaimed(container.transaction, container.queue) for _ in range(3)]
    assert looks == [LOOK, count - LOOK, 0]
    assert len(set(queued(container))) == len(queued(container)) == count
    lost = queued(container)[3]
    container.redis.lrem("rq:queue:runs", 1, lost)
    assert enqueue_unclaimed(container.transaction, container.queue) == 1
    assert queued(container)[-1] == lost


def test_runs_of_urgent_tickets_have_a_queue_of_their_own(container: Container) -> None:
    made = make_ticket(container, run_status=RunStatus.FAILED)
    container.redis.flushall()
    with container.transaction() as session:
        session.execute(update(Ticket).values(priority=Priority.URGENT))
    with container.transaction() as session:
        thread = lock_thread(session, made.ticket_id)
        run = create_run(session, thread, session.get_one(Ticket, made.ticket_id), container.run_plan())
    assert (queued(container, URGENT), queued(container)) == ([str(run.id)], [])

    container.redis.flushall()
    with container.transaction() as session:
        session.execute(update(Run).values(created_at=func.now() - UNCLAIMED_AFTER))
    assert enqueue_unclaimed(container.transaction, container.queue) == 1
    assert (queued(container, URGENT), queued(container)) == ([str(run.id)], [])


@pytest.mark.parametrize("first", [True, False])
def test_a_run_waits_in_one_queue_only(container: Container, first: bool) -> None:
    run_id = new_id()
    for urgent in (first, not first):
        container.queue.enqueue(Job(JobName.EXECUTE_RUN, run_id, urgent=urgent))
    assert (queued(container, URGENT), queued(container)) == (([str(run_id)], []) if first else ([], [str(run_id)]))
