"""Whatever people, customers, workers and sweeps do to a ticket's runs: no run takes a path that there is not."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from redis.asyncio import Redis
from sqlalchemy import Engine, func, select, update
from sqlalchemy.orm import Session

from app.agent.ports import RunLost
from app.bootstrap import Container
from app.errors import Conflict, InvalidInput
from app.ids import new_id
from app.intake.messages import MessageWindow
from app.live.background import BackgroundPublisher
from app.review import service
from app.review.ticket_state import set_ticket_status
from app.runs.admin import take_out
from app.runs.ledger import Claimed, Failure, Happened, Ledger, Move, PaidCalls, make_pool
from app.runs.lifecycle import FINAL, MOVES
from app.runs.models import ACTIVE, Event, EventType, Run, RunStatus
from app.runs.recovery import retry_due, sweep
from app.settings import Settings
from app.tickets.models import TicketStatus
from tests.factories import make_staff, make_ticket
from tests.intake.writing import write
from tests.review.factories import see
from tests.support.witness import moves_seen, witnessed

T = TypeVar("T")
END_OF = {
    RunStatus.FAILED: EventType.RUN_FAILED,
    RunStatus.CANCELLED: EventType.RUN_CANCELLED,
    RunStatus.SUPERSEDED: EventType.RUN_SUPERSEDED,
    RunStatus.COMPLETED: EventType.RUN_COMPLETED,
}
WHICH = st.integers(0, 3)
"""Which of the ticket's runs, or of the claims on them, is meant; 0 is the newest."""


class Workers:
    """Claims runs and writes as the executor does, on a loop of its own."""

    def __init__(self, settings: Settings) -> None:
        self._loop = asyncio.new_event_loop()
        self._redis = Redis.from_url(settings.redis_url)
        self._pool = make_pool(settings.psycopg_dsn, 2)
        self._do(self._pool.open(wait=True))
        self._ledger = Ledger(self._pool, BackgroundPublisher(self._redis), lease_s=60)

    def claim(self, run_id: UUID) -> Claimed | None:
        """Take a run, if it waits for a worker."""
        return self._do(self._ledger.claim(run_id, "worker", ["rule"], suspect=True))

    def end(self, claimed: Claimed, move: Move) -> None:
        """Move a run between two steps. Raises RunLost."""
        self._do(self._ledger.end_run(claimed, move, PaidCalls()))

    def close(self) -> None:
        """Let go of everything."""
        self._do(self._pool.close())
        self._do(self._redis.aclose())
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)


class Everybody(RuleBasedStateMachine):
    """The runs of one ticket, and all who act on them."""

    container: ClassVar[Container]
    workers: ClassVar[Workers]

    @initialize()
    def arrive(self) -> None:
        self.staff_id = make_staff(self.container)
        self.at = make_ticket(self.container, customer=f"C-{new_id()}").ticket_id
        self.claims: list[Claimed] = []

    def _try(self, act: Callable[[Session], object]) -> None:
        """Do something that may be refused, in words; anything else that is raised is a fault."""
        with suppress(Conflict, InvalidInput), self.container.transaction() as session:
            act(session)

    def _run(self, which: int) -> UUID:
        with self.container.sessions() as session:
            runs = session.scalars(select(Run.id).where(Run.ticket_id == self.at).order_by(Run.id.desc())).all()
        return runs[min(which, len(runs) - 1)]

    @property
    def _who(self) -> dict[str, UUID]:
        return {"ticket_id": self.at, "staff_id": self.staff_id}

    @rule(which=WHICH, command=st.sampled_from([service.cancel_run, take_out]))
    def person_ends(self, which: int, command: Callable[..., None]) -> None:
        run_id = self._run(which)
        self._try(lambda session: command(session, **self._who, run_id=run_id))

    @rule(which=WHICH)
    def person_escalates(self, which: int) -> None:
        run_id = self._run(which)
        self._try(lambda session: service.escalate(session, **self._who, run_id=run_id, reason="x"))

    @rule(which=WHICH)
    def person_starts_over(self, which: int) -> None:
        run_id, plan = self._run(which), self.container.run_plan()
        self._try(lambda session: service.regenerate(session, **self._who, run_id=run_id, hint="", plan=plan))

    @rule(which=WHICH)
    def person_writes(self, which: int) -> None:
        run_id, plan = self._run(which), self.container.run_plan()
        self._try(lambda session: service.start_manual(session, **self._who, run_id=run_id, plan=plan))

    @rule(which=WHICH)
    def person_approves(self, which: int) -> None:
        seen = replace(see(self.container, self.at), run_id=self._run(which))
        self._try(lambda session: service.approve(session, **self._who, text="您好", seen=seen, key=new_id().hex))

    @rule(status=st.sampled_from([TicketStatus.CLOSED, TicketStatus.PENDING]))
    def person_moves_the_ticket(self, status: TicketStatus) -> None:
        self._try(lambda session: set_ticket_status(session, **self._who, target=status))

    @rule(wait_s=st.sampled_from([0, 60]))
    def customer_writes(self, wait_s: float) -> None:
        self.at = write(self.container, self.at, window=MessageWindow(wait_s, wait_s, 14)).ticket_id

    @rule(which=WHICH)
    def worker_claims(self, which: int) -> None:
        claimed = self.workers.claim(self._run(which))
        if claimed is not None:
            self.claims.insert(0, claimed)

    @rule(which=WHICH, status=st.sampled_from(sorted(MOVES[RunStatus.RUNNING])), retry=st.booleans())
    def worker_moves(self, which: int, status: RunStatus, retry: bool) -> None:
        if not self.claims:
            return
        failure = Failure("timed_out", "x", retry=retry) if status is RunStatus.FAILED else None
        events = [failure.event] if failure else [Happened(END_OF.get(status, EventType.REVIEW_REQUESTED))]
        with suppress(RunLost):
            self.workers.end(self.claims[min(which, len(self.claims) - 1)], Move(status, events, failure=failure))

    @rule(retry=st.booleans())
    def worker_dies(self, retry: bool) -> None:
        with self.container.transaction() as session:
            session.execute(update(Run).where(Run.status == RunStatus.RUNNING).values(lease_until=func.now()))
        policy = replace(self.container.stale_policy, retry=retry, max_deaths=2)
        sweep(self.container.transaction, policy, self.container.run_plan())

    @rule()
    def time_passes(self) -> None:
        with self.container.transaction() as session:
            session.execute(update(Run).where(Run.not_before > func.now()).values(not_before=func.now()))
        retry_due(self.container.transaction, self.container.run_plan())

    @rule(status=st.sampled_from(sorted(MOVES[RunStatus.RUNNING])))
    def worker_does_its_work(self, status: RunStatus) -> None:
        self.worker_claims(0)
        self.worker_moves(0, status, retry=True)

    @invariant()
    def only_moves_that_there_are(self) -> None:
        with self.container.sessions() as session:
            moves = moves_seen(session)
        assert all(RunStatus(target) in MOVES[RunStatus(source)] for source, target in moves), moves

    @invariant()
    def every_run_is_in_order(self) -> None:
        with self.container.sessions() as session:
            runs = session.scalars(select(Run).where(Run.ticket_id == self.at)).all()
            assert len([run for run in runs if run.status in ACTIVE]) <= 1
            assert {run.status for run in runs if run.retry_at is not None} <= {RunStatus.FAILED}
            ended = {run.id: END_OF[RunStatus(run.status)] for run in runs if run.status in FINAL}
            assert all(run.ended_at and run.lease_until is None for run in runs if run.id in ended)
            told = select(Event.run_id, Event.type).where(Event.run_id.in_(ended), Event.type.in_(END_OF.values()))
            assert sorted((run_id, end) for run_id, end in session.execute(told)) == sorted(ended.items())


@contextmanager
def working(settings: Settings) -> Iterator[Workers]:
    """Workers for the time of the block."""
    workers = Workers(settings)
    try:
        yield workers
    finally:
        workers.close()


def test_no_sequence_of_calls_reaches_a_move_that_there_is_not(container: Container, admin_engine: Engine) -> None:
    with working(container.settings) as workers, witnessed(admin_engine, "runs"):
        machine = type("EverybodyHere", (Everybody,), {"container": container, "workers": workers})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=40,
                stateful_step_count=20,
                deadline=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
        with container.sessions() as session:
            made = moves_seen(session)
    assert {source for source, _ in made} == set(MOVES) - FINAL, "states that were never left"
    assert {target for _, target in made} == set(MOVES) - {RunStatus.CREATED}, "states that were never reached"
