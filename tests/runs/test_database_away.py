"""PostgreSQL may be restarted under a run: it goes on over new connections, and nothing is written twice."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy.exc
from psycopg import OperationalError
from psycopg.errors import AdminShutdown
from sqlalchemy import create_engine, text

from app.agent.values import SearchResult
from app.bootstrap import Container
from app.runs.ledger import Ledger, Params
from app.runs.recovery import republish
from app.runs.statements import CLAIM, END_STEP, START_STEP
from tests.agent.parts import FixedDrafter
from tests.factories import make_ticket
from tests.runs.conftest import InBackground, StartRuntime, make_agent
from tests.runs.looking import calls_of, checkpoints_of, events_of, run_of, steps_of, stream_of
from tests.support.waiting import until


def end_backends(container: Container) -> int:
    """End every other connection to the database, as a restart does; returns how many there were."""
    with container.engine.connect() as connection:
        ended = connection.scalars(
            text(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        ).all()
    return len(ended)


def test_a_run_outlives_the_connections_that_it_had(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    drafter = FixedDrafter(gate=asyncio.Event())
    run = InBackground(start_runtime(make_agent(drafter=drafter)), made.run_id)
    until(drafter.started.is_set)
    assert end_backends(container) >= 2
    drafter.open_gate()
    run.wait()
    row = run_of(container, made.run_id)
    assert (row.status, row.error_code, row.tokens_in) == ("waiting_for_review", None, 10)
    assert [step.ended_at is not None for step in steps_of(container, made.run_id)] == [True] * 3


@contextmanager
def refuses_connections(container: Container) -> Iterator[None]:
    """Let nobody into the database, as while PostgreSQL is down."""
    name = container.engine.url.database
    elsewhere = create_engine(container.engine.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    try:
        with elsewhere.connect() as connection:
            connection.execute(text(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'))
            ending = text("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = :name")
            connection.execute(ending, {"name": name})
            try:
                yield
            finally:
                connection.execute(text(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'))
    finally:
        elsewhere.dispose()


def test_a_worker_that_stops_while_the_database_is_away_does_not_wait_for_it(
    container: Container, start_runtime: StartRuntime
) -> None:
    made, drafter = [make_ticket(container) for _ in range(3)], FixedDrafter(gate=asyncio.Event())
    runtime = start_runtime(make_agent(drafter=drafter))
    runs = [InBackground(runtime, one.run_id) for one in made]
    until(lambda: len(drafter.hints) == len(runs), limit_s=60)
    with refuses_connections(container):
        stopping = threading.Thread(target=runtime.stop, daemon=True)
        stopping.start()
        until(lambda: not stopping.is_alive(), limit_s=60)
        for run in runs:
            run.wait()
    container.engine.dispose()
    statuses = {run_of(container, one.run_id).status for one in made}
    assert statuses == {"running"}, "the sweep's, once their leases have run out"


class LosingRetriever:
    """A retriever whose search is cut off by a restart of PostgreSQL."""

    async def search(self, query: str) -> SearchResult:
        raise sqlalchemy.exc.OperationalError("SELECT", {}, AdminShutdown())


def test_a_run_that_lost_the_database_in_a_search_is_due_to_be_retried(
    container: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    start_runtime(make_agent(retriever=LosingRetriever())).execute(made.run_id)
    row = run_of(container, made.run_id)
    assert (row.status, row.error_code, row.retry_at is not None) == ("failed", "database_away", True)


def lose_answers(monkeypatch: pytest.MonkeyPatch, statement: str, lost: Callable[[Params], bool]) -> list[Params]:
    """Lose the connection once after such a statement has been committed, before its answer arrives."""
    ask, losses = Ledger._ask, list[Params]()

    async def ask_and_lose(self: Ledger, sent: str, params: Params) -> object:
        row = await ask(self, sent, params)
        if sent == statement and not losses and lost(params):
            losses.append(params)
            raise OperationalError("the connection is lost")
        return row

    monkeypatch.setattr(Ledger, "_ask", ask_and_lose)
    return losses


@pytest.mark.parametrize(
    ("statement", "step", "fence"), [(CLAIM, None, 2), (START_STEP, 2, 1), (END_STEP, 2, 1), (END_STEP, 3, 1)]
)
def test_a_write_whose_answer_was_lost_is_not_done_twice_and_not_taken_for_lost(
    container: Container,
    start_runtime: StartRuntime,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    step: int | None,
    fence: int,
) -> None:
    made = make_ticket(container)
    losses = lose_answers(monkeypatch, statement, lambda params: params.get("step") == step)
    start_runtime().execute(made.run_id)
    assert len(losses) == 1
    run = run_of(container, made.run_id)
    assert (run.status, run.fence, run.tokens_in) == ("waiting_for_review", fence, 10)
    assert [row.step_number for row in checkpoints_of(container, made.run_id)] == [1, 2, 3]
    assert len(calls_of(container, made.run_id)) == 1
    happened = [event.type for event in events_of(container, made.thread_id)]
    assert happened.count("step_started") == happened.count("step_completed") == 3
    until(lambda: republish(container.transaction, container.publisher) == 0)
    numbers = [event.seq for event in events_of(container, made.thread_id)]
    assert stream_of(container, made.thread_id)[-1] == numbers[-1]
