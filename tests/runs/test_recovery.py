"""What happens to the runs of a worker that dies or stops."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from uuid import UUID

from sqlalchemy import func, update

from app.agent.skill import CallLog
from app.agent.values import Draft, Observation
from app.bootstrap import Container
from app.runs.events import lock_thread
from app.runs.fate import WORKER_LOST
from app.runs.models import Run
from app.runs.recovery import sweep
from app.settings import ROOT, Settings
from jobs.schedule import Periodic, run_schedule
from tests.agent.parts import FixedDrafter, FixedRetriever
from tests.factories import make_ticket
from tests.runs.conftest import InBackground, StartRuntime, make_agent
from tests.runs.looking import artifacts_of, events_of, run_of, steps_of, waiting_for_a_lock
from tests.support.waiting import until


def sweep_once(container: Container) -> int:
    """Sweep as the schedule does."""
    return sweep(container.transaction, container.stale_policy, container.run_plan())


def test_a_killed_worker_leaves_a_run_that_is_failed_with_a_reason(container: Container, settings: Settings) -> None:
    made = make_ticket(container)
    environment = {
        "DEMO": "1",
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
    }
    command = [sys.executable, "-m", "tests.runs.lost_worker", "hangs", str(made.run_id), "1"]
    worker = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        until(lambda: len(steps_of(container, made.run_id)) == 3, limit_s=60)
    finally:
        worker.kill()
        worker.wait()

    stopping = threading.Event()
    table = (Periodic("sweep", 0.2, sweep_once),)
    schedule = threading.Thread(target=run_schedule, args=(container, stopping, table))
    schedule.start()
    try:
        until(lambda: run_of(container, made.run_id).status == "failed", limit_s=15)
    finally:
        stopping.set()
        schedule.join()
    run = run_of(container, made.run_id)
    assert (run.error_code, run.error_message) == ("worker_lost", WORKER_LOST)
    assert steps_of(container, made.run_id)[2].ended_at is not None
    assert events_of(container, made.thread_id)[-1].type == "run_failed"


def test_the_sweep_leaves_runs_alone_whose_lease_holds(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    drafter = FixedDrafter(gate=asyncio.Event())
    run = InBackground(start_runtime(make_agent(drafter=drafter)), made.run_id)
    until(drafter.started.is_set)
    assert sweep_once(container) == 0
    drafter.open_gate()
    run.wait()
    assert run_of(container, made.run_id).status == "waiting_for_review"


def test_a_worker_that_comes_back_after_the_sweep_writes_nothing(
    container: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    drafter = FixedDrafter(gate=asyncio.Event())
    run = InBackground(start_runtime(make_agent(drafter=drafter), renew_every_s=0.1), made.run_id)
    until(drafter.started.is_set)

    def expire_and_sweep() -> int:
        with container.transaction() as session:
            session.execute(update(Run).values(lease_until=func.now()))
        return sweep_once(container)

    until(lambda: expire_and_sweep() == 1)
    run.wait(5)
    assert run_of(container, made.run_id).status == "failed"
    assert "draft" not in [row.type for row in artifacts_of(container, made.run_id)]


def test_a_stopping_worker_hands_its_runs_back_and_another_goes_on_with_them(
    container: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    drafter = FixedDrafter(gate=asyncio.Event())
    first = start_runtime(make_agent(drafter=drafter))
    run = InBackground(first, made.run_id)
    until(drafter.started.is_set)
    assert first.stop() == [made.run_id]
    run.wait()
    assert run_of(container, made.run_id).status == "retrying"

    retriever = FixedRetriever()
    start_runtime(make_agent(retriever=retriever)).execute(made.run_id)
    assert run_of(container, made.run_id).status == "waiting_for_review"
    assert run_of(container, made.run_id).fence == 2
    assert retriever.queries == []
    steps = steps_of(container, made.run_id)
    assert [step.skill for step in steps] == ["classify_ticket", "search_knowledge", "draft_reply", "draft_reply"]
    assert [step.error_code for step in steps] == [None, None, "retrying", None]


class BreakingDrafter(FixedDrafter):
    """Waits at the gate, and then breaks."""

    async def draft(self, observation: Observation, show: Callable[[str], Awaitable[None]], calls: CallLog) -> Draft:
        await super().draft(observation, show, calls)
        raise RuntimeError("as the test says")


def test_a_failure_that_is_being_written_when_the_worker_is_told_to_stop_is_written(
    container: Container, start_runtime: StartRuntime
) -> None:
    made, drafter = make_ticket(container), BreakingDrafter(gate=asyncio.Event())
    runtime = start_runtime(make_agent(drafter=drafter))
    run = InBackground(runtime, made.run_id)
    until(drafter.started.is_set)
    handed_back: list[UUID] = []
    stopping = threading.Thread(target=lambda: handed_back.extend(runtime.stop()))
    with container.transaction() as session:
        lock_thread(session, made.ticket_id)
        drafter.open_gate()
        until(lambda: waiting_for_a_lock(container) == 1)
        stopping.start()
        until(lambda: runtime._held.closing)
    stopping.join()
    run.wait()
    row = run_of(container, made.run_id)
    assert (row.status, row.error_code, handed_back) == ("failed", "unexpected", [])
    assert events_of(container, made.thread_id)[-1].type == "run_failed"
