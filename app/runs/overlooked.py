"""What the schedule should have taken care of by now: a sign, for the operations page, that it does not run."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from sqlalchemy import func, or_, select, true
from sqlalchemy.orm import Session

from app.runs.admin_lists import due_at, has_status
from app.runs.models import Run, RunStatus

LATE = timedelta(seconds=15)
"""So long after its time nothing is left undone while the schedule looks: it does every few seconds."""


def overlooked_for(session: Session, waits_in_queue: Callable[[UUID], bool]) -> timedelta | None:
    """Return for how long something has been left undone that the schedule does; None when nothing is LATE.

    That is a lease that ran out, a retry that is due, or the oldest run that nobody took and that stands in no queue:
    one that `waits_in_queue` waits for workers, who may just be busy. One statement.
    """
    clock = func.now()
    lease = select(func.min(Run.lease_until)).where(has_status(RunStatus.RUNNING)).scalar_subquery()
    retry = select(func.min(Run.retry_at)).where(Run.retry_at.is_not(None)).scalar_subquery()
    unclaimed = or_(has_status(RunStatus.CREATED), has_status(RunStatus.RETRYING))
    oldest = select(Run.id, (clock - due_at()).label("waits")).where(unclaimed, due_at() < clock - LATE)
    run = oldest.order_by(Run.id).limit(1).lateral("oldest")
    due = select((clock - func.least(lease, retry)).label("late")).subquery("due")
    row = session.execute(select(due.c.late, run.c.id, run.c.waits).select_from(due).outerjoin(run, true())).one()
    late = [row.late] if row.late is not None else []
    if row.id is not None and not waits_in_queue(row.id):
        late.append(row.waits)
    return max((length for length in late if length > LATE), default=None)
