"""What stands in each list of the operations page, as stretches of indexes: conditions on runs of one status each.

Ids are ordered by time, so each list is in their order, and no stretch is read further than a page or a count needs.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from sqlalchemy import ColumnElement, Select, bindparam, exists, false, func, literal, select, union_all
from sqlalchemy.orm import aliased

from app.clock import now
from app.ids import first_id_at
from app.runs.fate import SET_ASIDE_CODE
from app.runs.models import Run, RunStatus
from app.tickets.models import DONE, Ticket

_S = RunStatus
COUNTED_MOST = 999
"""Runs are counted up to one more than this, which stands for any number beyond."""
OVERDUE = timedelta(seconds=30)
"""So long after it was due a run that no worker has taken counts as stale."""
FAILED_FOR = timedelta(days=7)
"""How far the list of failed runs goes back."""


class RunList(StrEnum):
    """A list of the operations page. A stale run that nobody has taken stands among the queued ones too."""

    RUNNING = "running"
    QUEUED = "queued"
    STALE = "stale"
    SET_ASIDE = "set_aside"
    FAILED = "failed"
    WAITING = "waiting"

    @property
    def newest_first(self) -> bool:
        """Whether the newest run stands on top; what is under way has the oldest there."""
        return self in (RunList.SET_ASIDE, RunList.FAILED)


def has_status(status: RunStatus) -> ColumnElement[bool]:
    """Say that a run has this status, in a way that finds the partial indexes of it.

    The value is written into the statement: a prepared one could not use them by parameters.
    """
    return Run.status == bindparam(None, status.value, literal_execute=True)


def due_at() -> ColumnElement[datetime]:
    """Return since or from when a worker may take a run."""
    return func.greatest(func.coalesce(Run.moved_at, Run.created_at), Run.not_before)


def _stretches(shown: RunList) -> tuple[tuple[ColumnElement[bool], ...], ...]:
    """Return the conditions of the stretches that a list is made of, each of one status."""
    overdue = due_at() < func.now() - OVERDUE
    expired = func.coalesce(Run.lease_until < func.now(), false())
    match shown:
        case RunList.RUNNING:
            return ((has_status(_S.RUNNING), ~expired),)
        case RunList.QUEUED:
            return (has_status(_S.CREATED),), (has_status(_S.RETRYING),)
        case RunList.STALE:
            return (
                (has_status(_S.RUNNING), expired),
                (has_status(_S.CREATED), overdue),
                (has_status(_S.RETRYING), overdue),
            )
        case RunList.SET_ASIDE:
            set_aside = Run.error_code == bindparam(None, SET_ASIDE_CODE, literal_execute=True)
            return ((set_aside, _nothing_followed()),)
        case RunList.FAILED:
            return ((has_status(_S.FAILED), Run.id >= first_id_at(now() - FAILED_FOR)),)
        case RunList.WAITING:
            return (has_status(_S.WAITING_FOR_REVIEW),), (has_status(_S.WAITING_FOR_ESCALATION),)


def _nothing_followed() -> ColumnElement[bool]:
    """Say that a run is its thread's last word and that its ticket is still open."""
    last = aliased(Run)
    # One look into an index a run; as NOT EXISTS it was joined with all runs that there are.
    last_id = select(last.id).where(last.thread_id == Run.thread_id).order_by(last.id.desc()).limit(1)
    is_open = exists().where(Ticket.id == Run.ticket_id, Ticket.status.not_in(DONE))
    return (Run.id == last_id.scalar_subquery()) & is_open


def ids_in(shown: RunList, after: UUID | None, limit: int) -> Select[tuple[UUID]]:
    """Return a SELECT of the first ids of a list, or of the first behind `after`."""
    order = Run.id.desc() if shown.newest_first else Run.id.asc()
    stretches = []
    for conditions in _stretches(shown):
        stretch = select(Run.id).where(*conditions)
        if after is not None:
            stretch = stretch.where(Run.id < after if shown.newest_first else Run.id > after)
        stretches.append(select(stretch.order_by(order).limit(limit).subquery().c.id))
    together = union_all(*stretches).subquery()
    return select(together.c.id).order_by(together.c.id.desc() if shown.newest_first else together.c.id).limit(limit)


def count_in(shown: RunList) -> ColumnElement[int]:
    """Return how many runs a list holds, exactly up to COUNTED_MOST."""
    stretches = [
        select(select(literal(1)).select_from(Run).where(*conditions).limit(COUNTED_MOST + 1).subquery())
        for conditions in _stretches(shown)
    ]
    some = union_all(*stretches).subquery()
    return select(func.least(func.count(), COUNTED_MOST + 1)).select_from(some).scalar_subquery()
