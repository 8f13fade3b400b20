"""Every statement that moves a run: refused by its guard it writes nothing at all, sent twice it takes effect once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from uuid import UUID

import pytest
from redis.asyncio import Redis
from sqlalchemy import text, update

from app.agent.ports import RunLost, StepError, StepResult
from app.agent.skill import CallLog
from app.agent.steps import Continue, DraftReady, Escalate, Fail, Outcome
from app.agent.values import Observation, ToolMessage
from app.bootstrap import Container
from app.db.base import Base
from app.ids import new_id
from app.live.background import BackgroundPublisher
from app.runs import statements
from app.runs.events import NewEvent, append_events, lock_thread
from app.runs.journal import RunJournal
from app.runs.ledger import Claimed, Failure, Ledger, PaidCalls, make_pool
from app.runs.models import EventType, Run, RunStatus
from app.settings import Settings
from app.tickets.models import Ticket, TicketMessage
from tests.agent.parts import PAID, found, reply, ticket
from tests.factories import MadeTicket, make_ticket
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
from tests.runs.test_database_away import lose_answers
from tests.support.waiting import until

STEP = 2
READING = {"LANDED", "LOST_LEASES"}
WHATEVER_BECAME_OF_THE_RUN = {"SAVE_CALLS"}


@dataclass(frozen=True)
class Worker:
    """One that has claimed a run, taken its first step and begun its second, as far as PostgreSQL knows."""

    ledger: Ledger
    claimed: Claimed
    journal: RunJournal


@asynccontextmanager
async def ledger_of(settings: Settings) -> AsyncIterator[Ledger]:
    redis = Redis.from_url(settings.redis_url)
    pool = make_pool(settings.psycopg_dsn, 1)
    await pool.open()
    try:
        yield Ledger(pool, BackgroundPublisher(redis), lease_s=60)
    finally:
        await pool.close()
        await redis.aclose()


async def at_work(ledger: Ledger, run_id: UUID) -> Worker:
    claimed = await ledger.claim(run_id, "one", ["rule"], suspect=True)
    assert claimed is not None
    worker = Worker(ledger, claimed, RunJournal(ledger, claimed))
    await worker.journal.step_started(1, "plan", "{}", CallLog())
    await worker.journal.step_failed(1, StepError("bad", "It was bad."), Continue(known()), CallLog())
    await worker.journal.step_started(STEP, "draft_reply", "{}", CallLog())
    return worker


def known() -> Observation:
    turn = ToolMessage(skill="draft_reply", arguments="{}", summary="{}")
    return Observation(ticket=ticket(), search=found(), turns=(turn,))


def paid() -> CallLog:
    return CallLog([PAID])


def draft() -> StepResult:
    return StepResult("draft_reply", reply(known()), "{}")


def finishes(outcome: Callable[[Observation], Outcome]) -> "Attempt":
    async def attempt(worker: Worker) -> None:
        await worker.journal.step_finished(STEP, draft(), outcome(known()), paid())

    return attempt


def fails(outcome: Callable[[Observation], Outcome]) -> "Attempt":
    async def attempt(worker: Worker) -> None:
        await worker.journal.step_failed(STEP, StepError("bad", "It was bad."), outcome(known()), paid())

    return attempt


async def starts(worker: Worker) -> None:
    await worker.journal.step_started(STEP + 1, "draft_reply", "{}", paid())


async def ends(worker: Worker) -> None:
    await worker.journal.ended(Escalate(known(), "It needs a person."), paid())


async def breaks_off(worker: Worker) -> None:
    await worker.journal.failed(Failure("timed_out", "It took too long.", {"limit_s": 1}, retry=True), paid())


async def hands_back(worker: Worker) -> None:
    await worker.journal.handed_back(paid())


async def claims(worker: Worker) -> None:
    if await worker.ledger.claim(worker.claimed.run_id, "another", ["rule"], suspect=True) is None:
        raise RunLost


async def renews(worker: Worker) -> None:
    mine = {"runs": [worker.claimed.run_id], "fences": [worker.claimed.fence], "lease_s": 60}
    if await worker.ledger._ask(statements.RENEW_LEASES, mine) is None:
        raise RunLost


def out_of_steps(observation: Observation) -> Fail:
    return Fail(observation, "step_limit", "No step is left.", {"steps": 2})


def to_a_person(observation: Observation) -> Escalate:
    return Escalate(observation, "It needs a person.")


Attempt = Callable[[Worker], Awaitable[None]]
ATTEMPTS: dict[str, list[Attempt]] = {
    "CLAIM": [claims],
    "START_STEP": [starts],
    "END_STEP": [
        *(finishes(outcome) for outcome in (Continue, DraftReady, to_a_person, out_of_steps)),
        *(fails(outcome) for outcome in (Continue, to_a_person, out_of_steps)),
    ],
    "END_RUN": [ends, breaks_off, hands_back],
    "RENEW_LEASES": [renews],
}


def test_no_statement_is_left_out_here() -> None:
    all_of_them = {name for name, value in vars(statements).items() if name.isupper() and isinstance(value, str)}
    assert {name for name in all_of_them if not name.startswith("_")} == (
        ATTEMPTS.keys() | READING | WHATEVER_BECAME_OF_THE_RUN
    )


def rows(container: Container) -> dict[str, list[str]]:
    """Every row of every table with the transaction that wrote it: one that is written again unchanged shows too."""
    with container.engine.connect() as connection:
        return {
            table.name: sorted(connection.scalars(text(f'SELECT t.xmin || t::text FROM "{table.name}" t')))  # noqa: S608
            for table in Base.metadata.sorted_tables
        }


@contextmanager
def another(container: Container, **values: object) -> Iterator[None]:
    """Have a run stand otherwise meanwhile."""
    with container.transaction() as session:
        before = session.execute(text("SELECT status, fence FROM runs")).one()
        session.execute(update(Run).values(**values))
    yield
    with container.transaction() as session:
        session.execute(update(Run).values(status=before.status, fence=before.fence))


@pytest.mark.parametrize("name", ATTEMPTS)
def test_what_the_guard_refuses_writes_no_row(container: Container, settings: Settings, name: str) -> None:
    made = make_ticket(container)
    changes: list[dict[str, object]] = [{"status": status} for status in RunStatus if status != RunStatus.RUNNING]
    changes.append({"fence": Run.fence + 1})
    if name == "CLAIM":
        waiting = (RunStatus.CREATED, RunStatus.RETRYING)
        changes = [{"status": status} for status in RunStatus if status not in waiting]

    async def work() -> None:
        async with ledger_of(settings) as ledger:
            worker = await at_work(ledger, made.run_id)
            for change in changes:
                with another(container, **change):
                    before = rows(container)
                    for attempt in ATTEMPTS[name]:
                        with pytest.raises(RunLost):
                            await attempt(worker)
                        assert rows(container) == before, change

    asyncio.run(work())


def left(container: Container, made: MadeTicket) -> tuple[object, ...]:
    """What a run has left behind, without ids and times."""
    run = run_of(container, made.run_id)
    return (
        [(event.seq, event.type, event.payload.keys()) for event in events_of(container, made.thread_id)],
        thread_of(container, made.thread_id).last_seq,
        [(step.number, step.error_code, step.tokens_in) for step in steps_of(container, made.run_id)],
        [checkpoint.step_number for checkpoint in checkpoints_of(container, made.run_id)],
        [(artifact.type, artifact.version) for artifact in artifacts_of(container, made.run_id)],
        [(call.step_number, call.tokens_in) for call in calls_of(container, made.run_id)],
        (run.status, run.tokens_in, run.cost_micro, run.error_code, run.retry_at is not None),
        ticket_of(container, made.ticket_id).version,
    )


@pytest.mark.parametrize(
    ("name", "attempt"),
    [(name, attempt) for name in ("START_STEP", "END_STEP", "END_RUN") for attempt in ATTEMPTS[name]],
)
def test_what_is_sent_twice_takes_effect_once(
    container: Container, settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str, attempt: Attempt
) -> None:
    once, twice = make_ticket(container), make_ticket(container, customer="C-2")

    async def work() -> None:
        async with ledger_of(settings) as ledger:
            await attempt(await at_work(ledger, once.run_id))
            worker = await at_work(ledger, twice.run_id)
            losses = lose_answers(monkeypatch, getattr(statements, name), lambda params: "fence" in params)
            await attempt(worker)
            assert len(losses) == 1

    asyncio.run(work())
    assert left(container, twice) == left(container, once)


def test_paid_calls_that_are_saved_twice_are_counted_once(container: Container, settings: Settings) -> None:
    made, calls = make_ticket(container), PaidCalls()
    calls.add(1, [PAID])

    async def work() -> None:
        async with ledger_of(settings) as ledger:
            worker = await at_work(ledger, made.run_id)
            for _ in range(2):
                await ledger._ask(statements.SAVE_CALLS, {"run": made.run_id, **calls.params()})
            await ledger.save_calls(worker.claimed, calls)

    asyncio.run(work())
    assert len(calls_of(container, made.run_id)) == 1
    assert run_of(container, made.run_id).tokens_in == PAID.tokens_in


def test_a_transition_that_waited_for_the_thread_takes_the_numbers_after_those_it_waited_for(
    container: Container, settings: Settings
) -> None:
    """The statement's snapshot is older than the other's events; the numbers must be those of the row as it is."""
    made = make_ticket(container)

    async def work() -> None:
        async with ledger_of(settings) as ledger:
            worker = await at_work(ledger, made.run_id)
            with container.transaction() as session:
                thread = lock_thread(session, made.ticket_id)
                start = asyncio.create_task(hands_back(worker))
                await asyncio.to_thread(until, lambda: waiting_for_a_lock(container) == 1)
                append_events(session, thread, [NewEvent(EventType.TICKET_CHANGED) for _ in range(3)])
            await start

    asyncio.run(work())
    events = events_of(container, made.thread_id)
    assert [event.seq for event in events] == list(range(1, thread_of(container, made.thread_id).last_seq + 1))
    assert [event.type for event in events][-4:] == ["ticket_changed"] * 3 + ["run_retrying"]


def test_a_claim_is_refused_when_a_message_has_joined_the_run_while_it_waited(
    container: Container, settings: Settings
) -> None:
    """What it would return was read before: the run would not answer that message."""
    made = make_ticket(container)

    async def work() -> None:
        async with ledger_of(settings) as ledger:
            with container.transaction() as session:
                lock_thread(session, made.ticket_id)
                claim = asyncio.create_task(ledger.claim(made.run_id, "one", ["rule"], suspect=True))
                await asyncio.to_thread(until, lambda: waiting_for_a_lock(container) == 1)
                message = TicketMessage(id=new_id(), ticket_id=made.ticket_id, number=2, kind="customer", body="二")
                session.add(message)
                session.flush()
                session.execute(update(Ticket).values(last_customer_message_id=message.id))
                session.execute(update(Run).values(last_customer_message_id=message.id))
            assert await claim is None
            claimed = await ledger.claim(made.run_id, "one", ["rule"], suspect=True)
            assert claimed is not None
            assert claimed.row["content"].endswith("\n\n二")

    asyncio.run(work())
