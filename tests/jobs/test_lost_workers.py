"""Worker processes that die: what becomes of their runs, with the processes of the Procfile."""

from sqlalchemy import func, select, update

from app.bootstrap import Container
from app.db.signals import Job, JobName
from app.runs.fate import SET_ASIDE
from app.runs.lifecycle import latest_run
from app.runs.models import EventType, Run, RunOrigin, RunStatus
from app.runs.recovery import UNCLAIMED_AFTER
from tests.factories import MadeTicket, make_ticket
from tests.jobs.conftest import StartProcess
from tests.runs.looking import events_of, run_of, steps_of, ticket_of
from tests.support.own_valkey import OwnValkey
from tests.support.waiting import until

LEASE_S = "1"


def newest(parts: Container, made: MadeTicket) -> Run:
    with parts.transaction() as session:
        run = latest_run(session, made.thread_id)
        assert run is not None
        return run


def is_worked(run: Run) -> bool:
    """Say whether a worker has brought a run to a person; fail when it can't be any more."""
    assert run.status != RunStatus.FAILED, run.error_code
    return run.status in (RunStatus.WAITING_FOR_REVIEW, RunStatus.WAITING_FOR_ESCALATION)


def test_a_new_run_goes_on_where_the_killed_worker_was(
    parts: Container, own_valkey: OwnValkey, start_process: StartProcess
) -> None:
    own_valkey.start()
    made = make_ticket(parts)
    killed = start_process("tests.runs.lost_worker", "hangs", str(made.run_id), LEASE_S)
    until(lambda: len(steps_of(parts, made.run_id)) == 3, limit_s=60)
    killed.kill()

    start_process("jobs.schedule", STALE_RUNS="retry")
    start_process("jobs.worker")
    until(lambda: newest(parts, made).id != made.run_id and is_worked(newest(parts, made)), limit_s=120)

    old, new = run_of(parts, made.run_id), newest(parts, made)
    assert (old.status, old.error_code, old.deaths) == (RunStatus.FAILED, "worker_lost", 1)
    assert (new.origin, new.retry_from, new.deaths) == (RunOrigin.WORKER_LOST, old.id, 1)
    assert [step.skill for step in steps_of(parts, new.id)] == ["draft_reply"]
    begun = [event for event in events_of(parts, made.thread_id) if event.type == EventType.STEP_STARTED][-1]
    assert begun.payload["resumed"] == {"from_step": 2}


def test_a_run_that_kills_its_workers_is_set_aside_and_the_queue_goes_on(
    parts: Container, own_valkey: OwnValkey, start_process: StartProcess
) -> None:
    own_valkey.start()
    poison, other = make_ticket(parts), make_ticket(parts, customer="C-2")
    start_process("jobs.schedule", STALE_RUNS="retry", MAX_DEATHS="2")
    for deaths in (1, 2):
        run = newest(parts, poison)
        assert start_process("tests.runs.lost_worker", "dies", str(run.id), LEASE_S).wait() < 0
        until(lambda run=run: run_of(parts, run.id).status == RunStatus.FAILED, limit_s=60)
        assert run_of(parts, run.id).deaths == deaths
    assert (newest(parts, poison).id, newest(parts, poison).error_code) == (run.id, "set_aside")
    assert ticket_of(parts, poison.ticket_id).escalation_reason == SET_ASIDE

    # The jobs of the poison's runs still stand before the other's.
    start_process("jobs.worker")
    until(lambda: is_worked(newest(parts, other)), limit_s=60)
    assert newest(parts, poison).id == run.id


def test_a_worker_that_starts_looks_for_lost_runs_by_itself(
    parts: Container, own_valkey: OwnValkey, start_process: StartProcess
) -> None:
    dead = make_ticket(parts, run_status=RunStatus.RUNNING)
    unclaimed = make_ticket(parts, customer="C-2")
    with parts.transaction() as session:
        session.execute(update(Run).values(created_at=func.now() - UNCLAIMED_AFTER, lease_until=func.now()))
    own_valkey.start()  # without the job of the second
    start_process("jobs.worker").wait_until_ready()
    assert run_of(parts, dead.run_id).error_code == "worker_lost"
    until(lambda: is_worked(newest(parts, unclaimed)), limit_s=60)


def test_a_worker_takes_the_runs_of_urgent_tickets_first(
    parts: Container, own_valkey: OwnValkey, start_process: StartProcess
) -> None:
    own_valkey.start()
    tickets = [make_ticket(parts, customer=f"C-{number}") for number in range(4)]
    urgent = tickets[-1].run_id
    parts.redis.flushall()
    for made in tickets:
        parts.queue.enqueue(Job(JobName.EXECUTE_RUN, made.run_id, urgent=made.run_id == urgent))
    start_process("jobs.worker", WORKER_LANES="1")

    def started() -> list[object]:
        with parts.transaction() as session:
            return list(session.scalars(select(Run.id).where(Run.started_at.is_not(None)).order_by(Run.started_at)))

    until(lambda: len(started()) == len(tickets), limit_s=90)
    assert started()[0] == urgent
