"""Reads for the operations page: which runs stand in a list, how many there are, which processes hold some.

One statement reads a page of a list and one counts all lists, however many runs there are (see `admin_lists.py`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Float,
    Row,
    Select,
    SQLColumnExpression,
    Subquery,
    cast,
    extract,
    func,
    literal,
    select,
    true,
    union_all,
)
from sqlalchemy.orm import Session, aliased

from app.errors import NotFound
from app.runs.admin_lists import OVERDUE, RunList, count_in, due_at, has_status, ids_in
from app.runs.fate import SET_ASIDE_CODE
from app.runs.leases import LEASE_S
from app.runs.models import ACTIVE, Event, Run, RunStatus, Step
from app.tickets.models import DONE, Ticket

PAGE_SIZE = 50
SUBJECT = 120
WORKERS = 100
_FIELDS = (
    "id",
    "ticket_id",
    "status",
    "origin",
    "planner",
    "created_at",
    "moved_at",
    "cur_step",
    "max_steps",
    "lease_owner",
    "deaths",
    "fence",
    "retry_at",
    "error_code",
    "error_message",
    "error_detail",
)
"""What a row takes over from its run as it is."""


@dataclass(frozen=True, slots=True)
class NewerRun:
    """The run that a thread has gone on with: which run it goes on from, who asked for it, and since when."""

    id: UUID
    goes_on_from: UUID | None
    by: UUID | None
    at: datetime


@dataclass(frozen=True, slots=True)
class AdminRun:
    """One run as the operations page shows it.

    `lease_left` is negative once a running one's lease has run out; `due_in` is negative for one that no worker has
    taken though it was due. `newer` is the thread's newest run when that is not this one.
    """

    id: UUID
    ticket_id: UUID
    ticket_number: int
    ticket_done: bool
    subject: str
    status: RunStatus
    origin: str
    planner: str
    created_at: datetime
    moved_at: datetime | None
    cur_step: int
    max_steps: int
    skill: str | None
    step_ended: bool
    lease_owner: str | None
    lease_left: timedelta | None
    due_in: timedelta | None
    deaths: int
    fence: int
    event: str | None
    event_at: datetime | None
    retry_at: datetime | None
    error_code: str | None
    error_message: str | None
    error_detail: Mapping[str, Any] | None
    newer: NewerRun | None

    @property
    def stale(self) -> bool:
        """Whether it should move and nobody moves it."""
        if self.lease_left is not None:
            return self.lease_left < timedelta()
        return self.due_in is not None and self.due_in < -OVERDUE

    @property
    def set_aside(self) -> bool:
        """Whether it was set aside for a person."""
        return self.error_code == SET_ASIDE_CODE

    @property
    def may_stop(self) -> bool:
        """Whether a person may stop it."""
        return self.status in ACTIVE

    @property
    def may_take_out(self) -> bool:
        """Whether a worker has it or may get it, so that there is something to take it out of."""
        return self.status in (RunStatus.CREATED, RunStatus.RETRYING, RunStatus.RUNNING)

    @property
    def may_retry(self) -> bool:
        """Whether a new run in its place would help: it ended without a draft, or nobody moves it."""
        ended = self.status in (RunStatus.FAILED, RunStatus.CANCELLED)
        return (ended or self.stale) and self.newer is None and not self.ticket_done


@dataclass(frozen=True, slots=True)
class RunPage:
    """A stretch of a list; `after` is the run that the next one starts behind, None at the end."""

    runs: tuple[AdminRun, ...]
    after: UUID | None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker process, known by the leases that it holds: how many runs, and how long ago it renewed one last."""

    name: str
    runs: int
    renewed_ago: timedelta


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event of a run: what happened, when, and its small facts."""

    seq: int
    type: str
    payload: Mapping[str, Any]
    created_at: datetime


def run_list(
    session: Session,
    shown: RunList,
    after: UUID | None = None,
    *,
    also: Collection[UUID] = (),
    limit: int = PAGE_SIZE,
) -> RunPage:
    """Return a page of a list. One statement.

    The runs `also` are in it, each in its place, whether they stand in the list (any more) or not.
    """
    listed = ids_in(shown, after, limit + 1).cte("listed")
    others = select(Run.id, literal(False)).where(Run.id.in_(also), Run.id.not_in(select(listed.c.id)))
    picked = union_all(select(listed.c.id, literal(True).label("is_listed")), others).subquery("picked")
    found = session.execute(_shown(picked, shown)).all()
    in_list = [row.id for row in found if row.is_listed]
    beyond = in_list[limit:]
    runs = tuple(_as_run(row) for row in found if row.id not in beyond)
    return RunPage(runs, after=in_list[limit - 1] if beyond else None)


def one_run(session: Session, run_id: UUID) -> AdminRun:
    """Return one run, whatever it is doing. Raises NotFound."""
    picked = select(literal(run_id).label("id"), literal(False).label("is_listed"))
    row = session.execute(_shown(picked.subquery("picked"), RunList.RUNNING)).one_or_none()
    if row is None:
        raise NotFound("There is no such run.")
    return _as_run(row)


def run_counts(session: Session) -> dict[RunList, int]:
    """Return how many runs each list holds, exactly up to COUNTED_MOST. One statement."""
    row = session.execute(select(*(count_in(shown).label(shown) for shown in RunList))).one()
    return {RunList(name): count for name, count in row._mapping.items()}


def workers(session: Session) -> tuple[WorkerRow, ...]:
    """Return the processes that hold runs, by name; one that holds none leaves no trace here. One statement."""
    # A lease's owner is `host:pid:process id:claim id`; the last part differs from claim to claim.
    process = func.substring(Run.lease_owner, "^(.*):[^:]*$")
    renewed_ago = LEASE_S - _seconds_to(func.max(Run.lease_until))
    query = (
        select(process.label("process"), func.count().label("runs"), renewed_ago.label("renewed_ago"))
        .where(has_status(RunStatus.RUNNING), Run.lease_owner.is_not(None))
        .group_by(process)
        .order_by(process)
        .limit(WORKERS)
    )
    rows = session.execute(query)
    return tuple(WorkerRow(row.process, row.runs, timedelta(seconds=row.renewed_ago)) for row in rows)


def events_of(session: Session, run_id: UUID) -> tuple[EventRow, ...]:
    """Return the events of a run in order."""
    events = session.scalars(select(Event).where(Event.run_id == run_id).order_by(Event.seq))
    return tuple(EventRow(event.seq, event.type, event.payload, event.created_at) for event in events)


def _seconds_to(moment: SQLColumnExpression[Any]) -> ColumnElement[float]:
    return cast(extract("epoch", moment - func.now()), Float)


def _shown(picked: Subquery, shown: RunList) -> Select[*tuple[Any, ...]]:
    """Add what the rows show to the few runs that were picked, in the same statement."""
    event = select(Event.type, Event.created_at).where(Event.run_id == Run.id).order_by(Event.seq.desc()).limit(1)
    step = select(Step.skill, Step.ended_at).where(Step.run_id == Run.id).order_by(Step.number.desc()).limit(1)
    later = aliased(Run)
    newer = (
        select(later.id, later.retry_from, later.started_by, later.created_at)
        .where(later.thread_id == Run.thread_id, later.id > Run.id)
        .order_by(later.id.desc())
        .limit(1)
        .lateral("newer")
    )
    last_event, last_step = event.lateral("last_event"), step.lateral("last_step")
    return (
        select(
            picked.c.is_listed,
            *(getattr(Run, name) for name in _FIELDS),
            Ticket.number.label("ticket_number"),
            Ticket.status.in_(DONE).label("ticket_done"),
            func.left(Ticket.subject, SUBJECT).label("subject"),
            _seconds_to(Run.lease_until).label("lease_left_s"),
            _seconds_to(due_at()).label("due_in_s"),
            last_event.c.type.label("event"),
            last_event.c.created_at.label("event_at"),
            last_step.c.skill,
            last_step.c.ended_at.label("step_ended_at"),
            newer.c.id.label("newer_id"),
            newer.c.retry_from.label("newer_from"),
            newer.c.started_by.label("newer_by"),
            newer.c.created_at.label("newer_at"),
        )
        .select_from(picked)
        .join(Run, Run.id == picked.c.id)
        .join(Ticket, Ticket.id == Run.ticket_id)
        .outerjoin(last_event, true())
        .outerjoin(last_step, true())
        .outerjoin(newer, true())
        .order_by(Run.id.desc() if shown.newest_first else Run.id)
    )


def _as_run(row: Row[Any]) -> AdminRun:
    status = RunStatus(row.status)
    unclaimed = status in (RunStatus.CREATED, RunStatus.RETRYING)
    leased = status is RunStatus.RUNNING and row.lease_left_s is not None
    taken_over = {name: getattr(row, name) for name in _FIELDS if name != "status"}
    return AdminRun(
        **taken_over,
        status=status,
        ticket_number=row.ticket_number,
        ticket_done=row.ticket_done,
        subject=row.subject,
        skill=row.skill,
        step_ended=row.step_ended_at is not None,
        lease_left=timedelta(seconds=row.lease_left_s) if leased else None,
        due_in=timedelta(seconds=row.due_in_s) if unclaimed else None,
        event=row.event,
        event_at=row.event_at,
        newer=NewerRun(row.newer_id, row.newer_from, row.newer_by, row.newer_at) if row.newer_id else None,
    )
