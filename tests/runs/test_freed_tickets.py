"""A run that fails or is cancelled leaves a ticket that nobody processes: it is pending again, as the event says."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import func, update

from app.bootstrap import Container
from app.review.service import cancel_run
from app.runs.admin import take_out
from app.runs.models import Run
from app.runs.recovery import sweep
from app.tickets.lifecycle import MOVES
from app.tickets.models import Ticket, TicketStatus
from tests.factories import MadeTicket, make_staff, make_ticket
from tests.runs.conftest import StartRuntime, make_agent
from tests.runs.looking import events_of, run_of, stream_of, ticket_of
from tests.runs.ports import BrokenRetriever
from tests.runs.test_transitions import (
    Attempt,
    at_work,
    breaks_off,
    fails,
    finishes,
    hands_back,
    ledger_of,
    out_of_steps,
)
from tests.support.waiting import until

End = Callable[[Container, MadeTicket], None]


def by_worker(attempt: Attempt) -> End:
    """The worker that has the run makes the move."""

    def end(container: Container, made: MadeTicket) -> None:
        async def work() -> None:
            async with ledger_of(container.settings) as ledger:
                await attempt(await at_work(ledger, made.run_id))

        asyncio.run(work())

    return end


def begin(container: Container, made: MadeTicket) -> None:
    """Let a worker take the run, and leave it."""

    async def nothing(worker: object) -> None:
        """Do nothing."""

    by_worker(nothing)(container, made)


def cancelled(container: Container, made: MadeTicket) -> None:
    begin(container, made)
    staff_id = make_staff(container)
    with container.transaction() as session:
        cancel_run(session, ticket_id=made.ticket_id, run_id=made.run_id, staff_id=staff_id)


def taken_out(container: Container, made: MadeTicket) -> None:
    begin(container, made)
    staff_id = make_staff(container)
    with container.transaction() as session:
        take_out(session, ticket_id=made.ticket_id, run_id=made.run_id, staff_id=staff_id)


def swept(container: Container, made: MadeTicket) -> None:
    begin(container, made)
    with container.transaction() as session:
        session.execute(update(Run).values(lease_until=func.now()))
    sweep(container.transaction, replace(container.stale_policy, max_deaths=1), container.run_plan())


ENDS: dict[str, End] = {
    "failed within a step": by_worker(fails(out_of_steps)),
    "failed after a step": by_worker(finishes(out_of_steps)),
    "failed between steps": by_worker(breaks_off),
    "cancelled": cancelled,
    "taken out": taken_out,
    "set aside": swept,
}


def test_the_table_of_moves_has_this_one() -> None:
    assert TicketStatus.PENDING in MOVES[TicketStatus.PROCESSING]


@pytest.mark.parametrize("name", ENDS)
def test_the_ticket_is_pending_and_the_runs_last_event_says_so(container: Container, name: str) -> None:
    made = make_ticket(container)
    ENDS[name](container, made)
    run, ticket = run_of(container, made.run_id), ticket_of(container, made.ticket_id)
    assert (ticket.status, ticket.moved_by, ticket.moved_at) == ("pending", None, run.moved_at)
    event = events_of(container, made.thread_id)[-1]
    assert (event.type, event.payload["ticket"]) == (f"run_{run.status}", "pending")


def test_streams_are_told_too(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    start_runtime(make_agent(retriever=BrokenRetriever())).execute(made.run_id)
    last = len(events_of(container, made.thread_id))
    until(lambda: stream_of(container, made.thread_id)[-1:] == [last])
    ((_, entry),) = container.redis.xrevrange(f"thread:{made.thread_id}", count=1)
    assert b'"ticket":"pending"' in b"".join(entry.values())


@pytest.mark.parametrize("name", ENDS)
def test_a_ticket_that_is_not_being_processed_stays_where_it_is(container: Container, name: str) -> None:
    made = make_ticket(container)
    with container.transaction() as session:
        session.execute(update(Ticket).values(status=TicketStatus.WAITING_FOR_CUSTOMER))
    ENDS[name](container, made)
    assert ticket_of(container, made.ticket_id).status == "waiting_for_customer"
    assert "ticket" not in events_of(container, made.thread_id)[-1].payload


def test_a_run_that_is_handed_back_keeps_its_ticket(container: Container) -> None:
    made = make_ticket(container)
    by_worker(hands_back)(container, made)
    assert ticket_of(container, made.ticket_id).status == "processing"


def test_a_ticket_that_no_worker_has_begun_is_pending_as_before(container: Container) -> None:
    made, staff_id = make_ticket(container), make_staff(container)
    with container.transaction() as session:
        cancel_run(session, ticket_id=made.ticket_id, run_id=made.run_id, staff_id=staff_id)
    assert ticket_of(container, made.ticket_id).status == "pending"
    assert "ticket" not in events_of(container, made.thread_id)[-1].payload
