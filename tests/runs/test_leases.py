"""What a process knows of the runs it holds: stops that come early, and leases that can't be renewed."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from uuid import UUID

import pytest
from sqlalchemy import select, update

from app.agent.ports import Plan, SkillOffer
from app.agent.rule_planner import RulePlanner
from app.agent.skill import CallLog
from app.agent.values import Observation
from app.bootstrap import Container, build_container
from app.review.service import cancel_run
from app.runs.leases import HeldRuns, LeaseKeeper
from app.runs.models import Run, RunStatus
from app.settings import Settings
from tests.agent.parts import FixedDrafter
from tests.factories import MadeTicket, make_staff, make_ticket
from tests.runs.conftest import InBackground, StartRuntime, make_agent
from tests.runs.looking import run_of, steps_of
from tests.support.own_valkey import OwnValkey
from tests.support.waiting import until


async def was_stopped(held: HeldRuns, run_id: UUID, *, before: bool = False, closing: bool = False) -> bool:
    """Say whether a task that claims and then drives a run is stopped; `before` is a stop while it claims."""

    async def work() -> None:
        with held.hold(run_id) as claimed:
            if before:
                held.hand_back() if closing else held.stop(run_id)
            await asyncio.sleep(0)  # the claim is not cut off
            claimed(1)
            await asyncio.sleep(0)

    task = asyncio.create_task(work())
    await asyncio.wait([task])
    return task.cancelled()


@pytest.mark.parametrize("closing", [False, True])
def test_a_stop_that_comes_while_a_run_is_claimed_is_kept_until_the_claim_is_there(closing: bool) -> None:
    run_id = UUID(int=1)
    assert asyncio.run(was_stopped(HeldRuns(), run_id, before=True, closing=closing))
    assert not asyncio.run(was_stopped(HeldRuns(), run_id))


def test_a_task_is_cancelled_once_however_many_notice() -> None:
    held, run_id = HeldRuns(), UUID(int=1)

    async def work() -> int | None:
        with held.hold(run_id) as claimed:
            claimed(1)
            held.stop(run_id)
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                held.stop(run_id)
                held.hand_back()
                await asyncio.sleep(0.01)  # what it has to see to
                task = asyncio.current_task()
                return task and task.cancelling()
        return None

    assert asyncio.run(work()) == 1


def test_a_stop_does_not_touch_other_runs_and_is_not_kept_for_a_later_claim() -> None:
    held, run_id = HeldRuns(), UUID(int=1)

    async def work() -> None:
        with held.hold(UUID(int=2)) as claimed:
            held.stop(run_id)
            claimed(1)
            await asyncio.sleep(0)
        assert not await was_stopped(held, run_id)

    asyncio.run(work())


def test_a_run_that_is_only_claimed_has_no_lease_to_renew() -> None:
    held, run_id = HeldRuns(), UUID(int=1)

    async def work() -> None:
        with held.hold(run_id) as claimed:
            assert held.leases() == []
            claimed(7)
            assert held.leases() == [(run_id, 7)]
        assert held.leases() == []

    asyncio.run(work())


class Renewals(HeldRuns):
    """Counts how often its leases were asked for."""

    asked = 0

    def leases(self) -> list[tuple[UUID, int]]:
        self.asked += 1
        return super().leases()


async def outlives_renewals(settings: Settings, run_id: UUID, fence: int) -> bool:
    """Say whether a task that holds a run is left alone by the leases' keeper."""
    held = Renewals()
    keeper = LeaseKeeper(settings.psycopg_dsn, held, every_s=0.01)

    async def work() -> None:
        with held.hold(run_id) as claimed:
            claimed(fence)
            keeper.start()
            while held.asked < 4:
                await asyncio.sleep(0.01)

    task = asyncio.create_task(work())
    await asyncio.wait([task])
    await asyncio.to_thread(keeper.close)
    return not task.cancelled()


@pytest.mark.parametrize("status", sorted(RunStatus))
def test_only_a_run_that_others_ended_is_stopped_when_its_lease_is_lost(
    container: Container, settings: Settings, status: RunStatus
) -> None:
    made = make_ticket(container, run_status=status)
    ended_by_others = status in (RunStatus.CANCELLED, RunStatus.SUPERSEDED, RunStatus.FAILED)
    assert asyncio.run(outlives_renewals(settings, made.run_id, fence=0)) is not ended_by_others


def test_a_run_that_another_process_has_claimed_is_stopped(container: Container, settings: Settings) -> None:
    made = make_ticket(container, run_status=RunStatus.RUNNING)
    with container.transaction() as session:
        session.execute(update(Run).values(fence=2))
    assert not asyncio.run(outlives_renewals(settings, made.run_id, fence=1))
    with container.transaction() as session:
        assert session.scalars(select(Run.lease_until)).one() is None


@pytest.fixture
def parts(container: Container, settings: Settings, own_valkey: OwnValkey) -> Iterator[Container]:
    """A container whose Valkey is not there; `container` empties the tables afterwards."""
    made = build_container(settings.model_copy(update={"redis_url": own_valkey.url}))
    yield made
    made.engine.dispose()
    made.redis.close()


def cancel(parts: Container, made: MadeTicket) -> None:
    """Cancel as the page does."""
    staff_id = make_staff(parts)
    with parts.transaction() as session:
        cancel_run(session, ticket_id=made.ticket_id, run_id=made.run_id, staff_id=staff_id)


def test_a_cancel_without_redis_stops_the_run_at_its_next_renewal(
    parts: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(parts)
    drafter = FixedDrafter(gate=asyncio.Event())
    runtime = start_runtime(make_agent(drafter=drafter), settings=parts.settings, renew_every_s=0.1)
    run = InBackground(runtime, made.run_id)
    until(drafter.started.is_set)
    cancel(parts, made)
    run.wait()
    assert run_of(parts, made.run_id).status == "cancelled"
    assert steps_of(parts, made.run_id)[-1].error_code == "cancelled"


class PausingPlanner(RulePlanner):
    """Pauses before it chooses the second step."""

    def __init__(self) -> None:
        self.paused, self.go_on = threading.Event(), threading.Event()

    async def plan(self, observation: Observation, offers: Sequence[SkillOffer], calls: CallLog) -> Plan:
        if observation.turns:
            self.paused.set()
            await asyncio.to_thread(self.go_on.wait)
        return await super().plan(observation, offers, calls)


def test_a_cancel_without_redis_stops_the_run_before_its_next_step(
    parts: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(parts)
    planner = PausingPlanner()
    # It never gets to a renewal.
    runtime = start_runtime(make_agent(planner=planner), settings=parts.settings, renew_every_s=60)
    run = InBackground(runtime, made.run_id)
    until(planner.paused.is_set)
    cancel(parts, made)
    planner.go_on.set()
    run.wait()
    assert run_of(parts, made.run_id).status == "cancelled"
    assert [step.skill for step in steps_of(parts, made.run_id)] == ["classify_ticket"]
