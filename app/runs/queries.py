"""Reads of runs, for the API."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from app.runs.models import Event, EventType, Run, Step
from app.tickets.models import Thread

ENDS = (
    EventType.RUN_FAILED,
    EventType.RUN_CANCELLED,
    EventType.RUN_SUPERSEDED,
    EventType.REPLY_RECALLED,
    EventType.REPLY_SENT,
    EventType.REPLY_FAILED,
)
"""Events after which a run has no more: it ended without a reply, or its reply has left, or will not."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run; costs in millionths of the currency unit."""

    id: UUID
    ticket_id: UUID
    thread_id: UUID
    status: str
    planner: str
    retry_from: UUID | None
    tokens_in: int
    tokens_out: int
    cost_micro: int
    error_code: str | None
    error_message: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step; `summary` says what came of it in a sentence for the log."""

    number: int
    skill: str
    summary: str | None
    error_code: str | None
    started_at: datetime
    ended_at: datetime | None


def run_row(session: Session, run_id: UUID) -> RunRow | None:
    """Return a run, if there is one with this id."""
    run = session.get(Run, run_id)
    return _row(run) if run else None


def newest_runs(session: Session, ticket_ids: Collection[UUID]) -> dict[UUID, RunRow]:
    """Return the newest run of each ticket, by ticket."""
    query = (
        select(Run)
        .join(Thread, Thread.id == Run.thread_id)
        .where(Thread.ticket_id.in_(ticket_ids))
        .ext(distinct_on(Run.thread_id))
        .order_by(Run.thread_id, Run.id.desc())
    )
    return {run.ticket_id: _row(run) for run in session.scalars(query)}


def steps_of(session: Session, run_id: UUID) -> tuple[StepRow, ...]:
    """Return the steps of a run in order."""
    steps = session.scalars(select(Step).where(Step.run_id == run_id).order_by(Step.number))
    return tuple(
        StepRow(step.number, step.skill, step.summary, step.error_code, step.started_at, step.ended_at)
        for step in steps
    )


def end_seq(session: Session, run_id: UUID) -> int | None:
    """Return the number of the event that ended a run for good, if that has happened."""
    return session.scalar(
        select(Event.seq).where(Event.run_id == run_id, Event.type.in_(ENDS)).order_by(Event.seq.desc()).limit(1)
    )


def _row(run: Run) -> RunRow:
    return RunRow(
        run.id,
        run.ticket_id,
        run.thread_id,
        run.status,
        run.planner,
        run.retry_from,
        run.tokens_in,
        run.tokens_out,
        run.cost_micro,
        run.error_code,
        run.error_text,
        run.created_at,
        run.started_at,
        run.ended_at,
    )
