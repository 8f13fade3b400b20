"""The one way to make a run and the one way to move it.

The allowed moves are data. A move is a compare-and-set under the thread's lock; what it finds in another state it
leaves alone and raises RunMoved, which says who moved the run, to what, and when. The executor's own moves are single
guarded statements in `ledger.py`, built from the same table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.agent.values import Priority
from app.db.signals import Job, JobName, signals
from app.errors import Conflict, NotFound
from app.ids import new_id
from app.runs.events import NewEvent, append_events
from app.runs.models import ACTIVE, EventType, Run, RunOrigin, RunStatus, Step
from app.tickets.lifecycle import move_ticket
from app.tickets.models import Thread, Ticket, TicketStatus

S = RunStatus
_ENDS_BY_PERSON = frozenset({S.CANCELLED, S.SUPERSEDED})
MOVES: Mapping[RunStatus, frozenset[RunStatus]] = {
    S.CREATED: frozenset({S.RUNNING, S.FAILED}) | _ENDS_BY_PERSON,
    S.RETRYING: frozenset({S.RUNNING, S.FAILED}) | _ENDS_BY_PERSON,
    S.RUNNING: frozenset({S.WAITING_FOR_REVIEW, S.WAITING_FOR_ESCALATION, S.RETRYING, S.FAILED}) | _ENDS_BY_PERSON,
    S.WAITING_FOR_REVIEW: frozenset({S.WAITING_FOR_ESCALATION, S.COMPLETED}) | _ENDS_BY_PERSON,
    S.WAITING_FOR_ESCALATION: frozenset({S.WAITING_FOR_REVIEW, S.COMPLETED}) | _ENDS_BY_PERSON,
    S.COMPLETED: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELLED: frozenset(),
    S.SUPERSEDED: frozenset(),
}
FINAL = frozenset(status for status, targets in MOVES.items() if not targets)
FREES_TICKET = frozenset({S.FAILED, S.CANCELLED})
"""Ends after which nobody processes the ticket, so that it is pending again; a superseded run is followed at once."""
TICKET_FREED: Final = {"ticket": TicketStatus.PENDING.value}
"""What the last event of such a run tells beside, if the ticket was being processed until then."""


def sources(target: RunStatus) -> tuple[RunStatus, ...]:
    """Return the states from which a run may move to `target`."""
    return tuple(status for status, targets in MOVES.items() if target in targets)


class RunMoved(Conflict):
    """The run is not in a state that allows the move. `status`, `by` (staff id) and `at` say what it is in and why."""

    code = "run_moved"

    def __init__(self, run_id: UUID, status: str, by: UUID | None, at: datetime | None) -> None:
        super().__init__("Someone was faster: this run has moved on.")
        self.run_id = run_id
        self.run_status = status
        self.by = by
        self.at = at


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How a new run is to go: limits from the settings, origin from the caller.

    A run of planner `manual`, a reply that a person writes, waits for review from its start. No worker may claim a run
    for its first `wait_s` seconds; `deaths` and `auto_retries` are carried over from the run that it retries.
    """

    planner: Literal["model", "rule", "manual"]
    max_steps: int
    timeout_ms: int
    model: str | None = None
    hint: str | None = None
    retry_from: UUID | None = None
    started_by: UUID | None = None
    origin: RunOrigin = RunOrigin.TICKET
    wait_s: float = 0.0
    deaths: int = 0
    auto_retries: int = 0


def active_run(session: Session, thread_id: UUID) -> Run | None:
    """Return the thread's active run, if it has one; there is at most one."""
    return session.scalar(select(Run).where(Run.thread_id == thread_id, Run.status.in_(ACTIVE)))


def latest_run(session: Session, thread_id: UUID) -> Run | None:
    """Return the thread's newest run, whatever its state."""
    return session.scalar(select(Run).where(Run.thread_id == thread_id).order_by(Run.id.desc()).limit(1))


def run_job(run_id: UUID, priority: str | None) -> Job:
    """Return the job that drives a run; those of urgent tickets go ahead of the others."""
    return Job(JobName.EXECUTE_RUN, run_id, urgent=priority == Priority.URGENT)


def create_run(session: Session, thread: Thread, ticket: Ticket, plan: RunPlan) -> Run:
    """Create the thread's next run with its run_created event; a worker is told after the commit, or by the sweep
    when it is due.

    The thread must be locked or new, and have no active run (the partial unique index refuses a second one).
    """
    manual = plan.planner == "manual"
    run = Run(
        id=new_id(),
        thread_id=thread.id,
        ticket_id=ticket.id,
        status=S.WAITING_FOR_REVIEW if manual else S.CREATED,
        origin=plan.origin,
        planner=plan.planner,
        max_steps=plan.max_steps,
        timeout_ms=plan.timeout_ms,
        model_planned=plan.model,
        hint=plan.hint,
        retry_from=plan.retry_from,
        last_customer_message_id=ticket.last_customer_message_id,
        not_before=func.now() + timedelta(seconds=plan.wait_s) if plan.wait_s else None,
        deaths=plan.deaths,
        auto_retries=plan.auto_retries,
        started_by=plan.started_by,
    )
    session.add(run)
    session.flush()
    facts = {"planner": plan.planner, "origin": plan.origin.value}
    append_events(session, thread, [NewEvent(EventType.RUN_CREATED, run.id, facts)])
    if not manual and not plan.wait_s:
        signals(session).jobs.append(run_job(run.id, ticket.priority))
    return run


def move_run(
    session: Session,
    thread: Thread,
    run_id: UUID,
    target: RunStatus,
    events: Sequence[NewEvent],
    *,
    by: UUID | None = None,
    error_code: str | None = None,
    error_message: str | None = None,
    error_detail: Mapping[str, Any] | None = None,
) -> Run:
    """Move a run of a locked thread to `target` and append `events`; returns the run as it is now.

    A final move ends the run and closes its open steps; workers that hold the run are signalled after the commit. One
    that leaves the ticket with nobody to process it makes the ticket pending again, and the last event tells of it.
    Raises RunMoved when the run's state does not allow it, NotFound when the thread has no such run.
    """
    final = target in FINAL
    moved = session.scalar(
        update(Run)
        .where(Run.id == run_id, Run.thread_id == thread.id, Run.status.in_(sources(target)))
        .values(
            status=target,
            moved_by=by,
            moved_at=func.now(),
            error_code=error_code,
            error_message=error_message,
            error_detail=error_detail,
            ended_at=func.now() if final else None,
            lease_until=None,
        )
        .returning(Run)
        .execution_options(populate_existing=True)
    )
    if moved is None:
        raise _refusal(session, thread, run_id)
    if final:
        session.execute(
            update(Step)
            .where(Step.run_id == run_id, Step.ended_at.is_(None))
            .values(ended_at=func.now(), error_code=target.value)
        )
        signals(session).stopped_runs.append(run_id)
    if target in FREES_TICKET and _free_ticket(session, moved.ticket_id):
        events = [*events[:-1], replace(events[-1], payload={**events[-1].payload, **TICKET_FREED})]
    append_events(session, thread, events)
    return moved


def give_to_person(ticket: Ticket, reason: str) -> None:
    """Escalate the ticket of a locked thread: a person must look at it, for `reason` (a msgid).

    One that is escalated already keeps since when and why: a person may have said it.
    """
    ticket.version += 1
    if ticket.escalated_at is None:
        ticket.escalated_at = func.now()
        ticket.escalation_reason = reason


def _free_ticket(session: Session, ticket_id: UUID) -> bool:
    """Make a ticket pending that was being processed; a thread has one active run, so nobody processes it now."""
    ticket = session.get_one(Ticket, ticket_id, populate_existing=True)
    if ticket.status != TicketStatus.PROCESSING:
        return False
    move_ticket(session, ticket, TicketStatus.PENDING, reason="run_ended")
    return True


def _refusal(session: Session, thread: Thread, run_id: UUID) -> Conflict | NotFound:
    run = session.get(Run, run_id, populate_existing=True)
    if run is None or run.thread_id != thread.id:
        return NotFound("There is no such run.")
    return RunMoved(run_id, run.status, run.moved_by, run.moved_at or run.ended_at)
