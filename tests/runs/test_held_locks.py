"""A process that hangs in the middle of a transaction holds its locks; nothing but its own ticket stands still."""

import asyncio
import math

from psycopg.rows import DictRow
from redis.asyncio import Redis
from sqlalchemy import func, select, text

from app.bootstrap import Container
from app.db.session import IDLE_LIMIT_S, LOCK_LIMIT_S
from app.live.background import BackgroundPublisher
from app.review.service import cancel_run
from app.runs.events import NewEvent, append_events, lock_thread
from app.runs.leases import LEASE_S, RENEW_EVERY_S
from app.runs.ledger import STATEMENT_LIMIT_S, Ledger, make_pool
from app.runs.models import EventType
from app.runs.recovery import republish
from app.settings import Settings
from tests.agent.parts import FixedDrafter
from tests.factories import make_staff, make_ticket
from tests.runs.conftest import InBackground, StartRuntime, make_agent
from tests.runs.looking import run_of, thread_of, waiting_for_a_lock
from tests.support.waiting import until

LIMITS = """
SELECT current_setting('lock_timeout') AS lock, current_setting('statement_timeout') AS statement,
       current_setting('idle_in_transaction_session_timeout') AS idle
"""


def test_the_leases_of_a_workers_other_runs_are_renewed(container: Container, start_runtime: StartRuntime) -> None:
    staff_id = make_staff(container)
    drafter = FixedDrafter(gate=asyncio.Event())
    runtime = start_runtime(make_agent(drafter=drafter), renew_every_s=0.05)
    hung, other = make_ticket(container), make_ticket(container, customer="C-2")
    runs = [InBackground(runtime, made.run_id) for made in (hung, other)]
    until(lambda: all(run_of(container, made.run_id).cur_step == 3 for made in (hung, other)))
    with container.sessions() as hanging:
        cancel_run(hanging, ticket_id=hung.ticket_id, run_id=hung.run_id, staff_id=staff_id)
        left_at = run_of(container, hung.run_id).lease_until
        first = run_of(container, other.run_id).lease_until
        assert left_at is not None
        assert first is not None
        until(lambda: (run_of(container, other.run_id).lease_until or first) > first)
        assert run_of(container, hung.run_id).lease_until == left_at
    until(lambda: (run_of(container, hung.run_id).lease_until or left_at) > left_at)
    drafter.open_gate()
    for run in runs:
        run.wait()
    assert {run_of(container, made.run_id).status for made in (hung, other)} == {"waiting_for_review"}


def test_a_thread_that_is_held_is_marked_as_published_later(container: Container) -> None:
    made = make_ticket(container)
    with container.transaction() as session:
        append_events(session, lock_thread(session, made.ticket_id), [NewEvent(EventType.TICKET_CHANGED)])
    before = thread_of(container, made.thread_id)
    with container.sessions() as hanging:
        lock_thread(hanging, made.ticket_id)
        assert republish(container.transaction, container.publisher) == 1
        assert thread_of(container, made.thread_id).published_seq == before.published_seq < before.last_seq
    republish(container.transaction, container.publisher)
    assert thread_of(container, made.thread_id).published_seq == before.last_seq


def test_a_claim_that_waited_for_its_thread_has_its_whole_lease(container: Container, settings: Settings) -> None:
    made, lease_s = make_ticket(container), 60

    async def work() -> None:
        async with make_pool(settings.psycopg_dsn, 2) as pool, Redis.from_url(settings.redis_url) as redis:
            ledger = Ledger(pool, BackgroundPublisher(redis), lease_s=lease_s)
            with container.transaction() as session:
                lock_thread(session, made.ticket_id)
                claim = asyncio.create_task(ledger.claim(made.run_id, "one", ["rule"], suspect=True))
                await asyncio.to_thread(until, lambda: waiting_for_a_lock(container) == 1)
                let_go_at = session.scalars(select(func.clock_timestamp())).one()
            assert await claim is not None
        lease_until = run_of(container, made.run_id).lease_until
        assert lease_until is not None
        assert (lease_until - let_go_at).total_seconds() >= lease_s

    asyncio.run(work())


def test_who_hangs_lets_go(container: Container) -> None:
    made = make_ticket(container)
    hanging = container.sessions()
    hanging.execute(text("SET LOCAL idle_in_transaction_session_timeout = '1ms'"))
    lock_thread(hanging, made.ticket_id)
    with container.transaction() as session:
        lock_thread(session, made.ticket_id)
    hanging.invalidate()


def test_there_are_limits_and_a_lease_outlasts_a_hanging_transaction(container: Container, settings: Settings) -> None:
    async def of_workers() -> DictRow | None:
        async with make_pool(settings.psycopg_dsn, 2) as pool, pool.connection() as connection:
            return await (await connection.execute(LIMITS)).fetchone()

    with container.engine.connect() as connection:
        of_others = connection.execute(text(LIMITS)).one()
    assert (of_others.lock, of_others.idle) == (f"{LOCK_LIMIT_S}s", f"{IDLE_LIMIT_S}s")
    limits = asyncio.run(of_workers())
    assert limits is not None
    assert (limits["lock"], limits["statement"]) == (f"{LOCK_LIMIT_S}s", f"{STATEMENT_LIMIT_S}s")
    next_renewal_s = math.ceil(IDLE_LIMIT_S / RENEW_EVERY_S) * RENEW_EVERY_S
    assert next_renewal_s < LEASE_S - RENEW_EVERY_S
