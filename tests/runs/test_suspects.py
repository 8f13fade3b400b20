"""Runs whose workers died: a process drives one of them at a time, so that the one to blame takes no other along."""

import asyncio
from uuid import UUID

from sqlalchemy import update

from app.bootstrap import Container
from app.ids import new_id
from app.runs.models import Run, RunStatus
from tests.agent.parts import FixedDrafter
from tests.factories import make_ticket
from tests.runs.conftest import InBackground, StartRuntime, make_agent
from tests.runs.looking import run_of
from tests.support.waiting import until


def make_run(container: Container, *, deaths: int) -> UUID:
    """A run that waits for a worker, after so many have died with it."""
    made = make_ticket(container, customer=f"C-{new_id()}")
    with container.transaction() as session:
        session.execute(update(Run).where(Run.id == made.run_id).values(deaths=deaths))
    return made.run_id


def test_of_suspects_one_is_driven_at_a_time_and_others_do_not_wait(
    container: Container, start_runtime: StartRuntime
) -> None:
    suspects = [make_run(container, deaths=1), make_run(container, deaths=2)]
    innocent = make_run(container, deaths=0)
    drafter = FixedDrafter(gate=asyncio.Event())
    runtime = start_runtime(make_agent(drafter=drafter))
    driving = [InBackground(runtime, run_id) for run_id in suspects]
    until(lambda: len(drafter.hints) == 1)
    driving.append(InBackground(runtime, innocent))
    until(lambda: len(drafter.hints) == 2)
    assert run_of(container, innocent).status == RunStatus.RUNNING
    assert {run_of(container, run_id).status for run_id in suspects} == {RunStatus.RUNNING, RunStatus.CREATED}
    drafter.open_gate()
    for run in driving:
        run.wait()
    statuses = {run_of(container, run_id).status for run_id in (*suspects, innocent)}
    assert statuses == {RunStatus.WAITING_FOR_REVIEW}


def test_a_worker_that_stops_does_not_wait_for_its_suspects(container: Container, start_runtime: StartRuntime) -> None:
    suspects = [make_run(container, deaths=1) for _ in range(3)]
    drafter = FixedDrafter(gate=asyncio.Event())
    runtime = start_runtime(make_agent(drafter=drafter))
    driving = [InBackground(runtime, run_id) for run_id in suspects]
    until(lambda: len(drafter.hints) == 1)
    runtime.stop()
    for run in driving:
        run.wait()
    assert {run_of(container, run_id).status for run_id in suspects} <= {RunStatus.CREATED, RunStatus.RETRYING}
