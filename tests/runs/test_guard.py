"""The guard: what comes too late writes nothing at all, and people and workers never deadlock."""

import asyncio
import threading
from uuid import UUID

import pytest
from sqlalchemy import update

from app.bootstrap import Container
from app.review.service import cancel_run
from app.runs.events import NewEvent, lock_thread
from app.runs.lifecycle import move_run
from app.runs.models import EventType, Run, RunStatus
from tests.agent.parts import FixedDrafter
from tests.factories import MadeTicket, make_staff, make_ticket
from tests.runs.conftest import InBackground, StartRuntime, make_agent
from tests.runs.looking import (
    artifacts_of,
    calls_of,
    checkpoints_of,
    events_of,
    run_of,
    steps_of,
    thread_of,
    ticket_of,
    waiting_for_a_lock,
)
from tests.support.waiting import until


def gated() -> FixedDrafter:
    """A drafter that waits in the middle of its text."""
    return FixedDrafter(gate=asyncio.Event())


def cancel_quietly(container: Container, made: MadeTicket) -> None:
    """Cancel the run in PostgreSQL alone, as if the stop signal had been lost."""
    with container.transaction() as session:
        thread = lock_thread(session, made.ticket_id)
        move_run(session, thread, made.run_id, RunStatus.CANCELLED, [NewEvent(EventType.RUN_CANCELLED, made.run_id)])
        session.info.clear()


def started_steps(container: Container, run_id: UUID) -> int:
    return len(steps_of(container, run_id))


def test_a_step_that_ends_after_the_cancel_writes_nothing_but_what_was_paid(
    container: Container, start_runtime: StartRuntime
) -> None:
    made, drafter = make_ticket(container), gated()
    run = InBackground(start_runtime(make_agent(drafter=drafter)), made.run_id)
    until(lambda: started_steps(container, made.run_id) == 3)
    until(drafter.started.is_set)
    cancel_quietly(container, made)
    before = [row.seq for row in events_of(container, made.thread_id)]
    drafter.open_gate()
    run.wait()

    assert run_of(container, made.run_id).status == "cancelled"
    assert [row.seq for row in events_of(container, made.thread_id)] == before
    assert events_of(container, made.thread_id)[-1].type == "run_cancelled"
    assert [row.step_number for row in checkpoints_of(container, made.run_id)] == [1, 2]
    assert [row.type for row in artifacts_of(container, made.run_id)] == ["classification", "search_result"]
    assert steps_of(container, made.run_id)[2].output is None
    assert steps_of(container, made.run_id)[2].error_code == "cancelled"
    assert len(calls_of(container, made.run_id)) == 1
    paid = run_of(container, made.run_id)
    assert (paid.tokens_in, paid.tokens_out, paid.cost_micro, paid.model_used) == (10, 5, 7, "stub-1")


def test_a_worker_that_lost_its_fence_writes_nothing(container: Container, start_runtime: StartRuntime) -> None:
    made, drafter = make_ticket(container), gated()
    run = InBackground(start_runtime(make_agent(drafter=drafter)), made.run_id)
    until(drafter.started.is_set)
    with container.transaction() as session:
        session.execute(update(Run).values(fence=Run.fence + 1))
    drafter.open_gate()
    run.wait()
    assert run_of(container, made.run_id).status == "running"
    assert [row.type for row in artifacts_of(container, made.run_id)] == ["classification", "search_result"]


def test_a_transition_that_waits_for_the_thread_sees_the_cancel_that_it_waited_for(
    container: Container, start_runtime: StartRuntime
) -> None:
    """The statement's snapshot is older than the cancel; the guard must judge the row as it is after the wait."""
    made, drafter = make_ticket(container), gated()
    runtime = start_runtime(make_agent(drafter=drafter))
    run = InBackground(runtime, made.run_id)
    until(drafter.started.is_set)
    with container.transaction() as session:
        thread = lock_thread(session, made.ticket_id)
        drafter.open_gate()
        until(lambda: waiting_for_a_lock(container) == 1)
        move_run(session, thread, made.run_id, RunStatus.CANCELLED, [NewEvent(EventType.RUN_CANCELLED, made.run_id)])
        session.info.clear()
    run.wait()
    assert run_of(container, made.run_id).status == "cancelled"
    assert "draft" not in [row.type for row in artifacts_of(container, made.run_id)]
    assert [row.type for row in events_of(container, made.thread_id)][-1] == "run_cancelled"


@pytest.mark.parametrize("status", ["running", "waiting_for_review", "completed", "failed", "cancelled", "superseded"])
def test_only_a_waiting_run_is_claimed(container: Container, start_runtime: StartRuntime, status: str) -> None:
    made = make_ticket(container)
    with container.transaction() as session:
        session.execute(update(Run).values(status=status))
    start_runtime().execute(made.run_id)
    assert run_of(container, made.run_id).status == status
    assert thread_of(container, made.thread_id).last_seq == 1
    assert ticket_of(container, made.ticket_id).status == "pending"


def test_two_workers_with_the_same_job_drive_the_run_once(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    runtimes = [start_runtime(), start_runtime()]
    runs = [InBackground(runtime, made.run_id) for runtime in runtimes for _ in range(3)]
    for run in runs:
        run.wait()
    assert run_of(container, made.run_id).fence == 1
    assert len(steps_of(container, made.run_id)) == 3


def test_people_who_cancel_and_workers_that_write_never_deadlock(
    container: Container, start_runtime: StartRuntime
) -> None:
    staff_id = make_staff(container)
    tickets = [make_ticket(container, customer=f"C-{number}") for number in range(12)]
    runtime = start_runtime()
    runs = [InBackground(runtime, made.run_id) for made in tickets]

    def cancel(made: MadeTicket) -> None:
        with container.transaction() as session:
            cancel_run(session, ticket_id=made.ticket_id, run_id=made.run_id, staff_id=staff_id)

    people = [threading.Thread(target=cancel, args=(made,)) for made in tickets]
    for person in people:
        person.start()
    for person in people:
        person.join()
    for run in runs:
        run.wait()
    for made in tickets:
        assert run_of(container, made.run_id).status == "cancelled"
        numbers = [row.seq for row in events_of(container, made.thread_id)]
        assert numbers == sorted(set(numbers))
        assert numbers[-1] <= thread_of(container, made.thread_id).last_seq
