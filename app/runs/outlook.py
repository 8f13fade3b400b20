"""How a run stands and what will happen next, in sentences: the end of its story (see `explain.py`).

What the schedule does is promised as long as it does it: once something is late, the sentence asks whether it runs.
"""

from collections.abc import Iterator, Mapping, Set
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.msgids import msgid
from app.runs.admin_lists import OVERDUE
from app.runs.models import EventType, Run, RunStatus
from app.runs.overlooked import LATE
from app.tickets.models import DONE, Ticket

Values = Mapping[str, str | int]
Told = Iterator[tuple[str, Values]]
_REPLY_ENDS = {EventType.REPLY_RECALLED, EventType.REPLY_SENT, EventType.REPLY_FAILED}


def what_comes_next(session: Session, run: Run, types: Set[EventType]) -> Told:
    """Yield how a run stands and what will happen next; `types` are those of its events."""
    now = session.scalars(select(func.now())).one()
    match run.status:
        case RunStatus.CREATED | RunStatus.RETRYING:
            yield from _waits_for_worker(run, now)
        case RunStatus.RUNNING:
            yield from _is_held(run, now)
        case RunStatus.WAITING_FOR_REVIEW if run.planner == "manual":
            yield msgid("It waits for a person to write the reply."), {}
        case RunStatus.WAITING_FOR_REVIEW:
            yield msgid("It waits for a person to review the draft."), {}
        case RunStatus.WAITING_FOR_ESCALATION:
            yield msgid("It waits for a person to take the ticket over."), {}
        case RunStatus.COMPLETED if not types & _REPLY_ENDS:
            yield msgid("The reply leaves by itself."), {}
        case _:
            yield from _is_over(session, run, now)


def _waits_for_worker(run: Run, now: datetime) -> Told:
    wait_s = _seconds(run.not_before, now) if run.not_before else 0
    if wait_s > 0:
        yield msgid("It waits %(seconds)s s more for further messages; then a worker takes it."), {"seconds": wait_s}
        return
    overdue_s = -_seconds(max(filter(None, (run.moved_at or run.created_at, run.not_before))), now)
    if overdue_s > OVERDUE.total_seconds():
        text = msgid(
            "It has waited for a worker for %(seconds)s s: are all busy, or does the schedule process not run?"
        )
        yield text, {"seconds": overdue_s}
        return
    yield msgid("The next free worker takes it. If its place in the queue is lost, it gets another within seconds."), {}


def _is_held(run: Run, now: datetime) -> Told:
    yield msgid("Worker %(worker)s has it."), {"worker": _worker(run)}
    left_s = _seconds(run.lease_until, now) if run.lease_until else 0
    if left_s >= 0:
        text = msgid(
            "Its lease ends in %(seconds)s s unless it is renewed; then the run fails or is retried by itself."
        )
        yield text, {"seconds": left_s}
    elif -left_s > LATE.total_seconds():
        text = msgid("Its lease ended %(seconds)s s ago, and nobody has seen to it: is the schedule process running?")
        yield text, {"seconds": -left_s}
    else:
        text = msgid("Its lease ended %(seconds)s s ago: within seconds the run fails or is retried by itself.")
        yield text, {"seconds": -left_s}


def _is_over(session: Session, run: Run, now: datetime) -> Told:
    if run.lease_owner is not None:
        yield msgid("The last worker that had it was %(worker)s."), {"worker": _worker(run)}
    follower = session.scalar(
        select(Run.id).where(Run.thread_id == run.thread_id, Run.id > run.id).order_by(Run.id).limit(1)
    )
    if follower is not None:
        yield msgid("Nothing more happens to it: run %(run)s has taken over."), {"run": str(follower)}
    elif session.get_one(Ticket, run.ticket_id).status in DONE:
        yield msgid("Nothing more happens to it: its ticket is done."), {}
    elif run.retry_at is not None:
        yield _is_due(_seconds(run.retry_at, now))
    elif run.status == RunStatus.COMPLETED:
        yield msgid("Nothing more happens to it."), {}
    else:
        yield msgid("Nothing happens by itself: a person can retry it or write the reply."), {}


def _is_due(in_s: int) -> tuple[str, Values]:
    if -in_s > LATE.total_seconds():
        text = msgid("It was to be retried by itself %(seconds)s s ago: is the schedule process running?")
        return text, {"seconds": -in_s}
    return msgid("It will be retried by itself within a second."), {}


def _worker(run: Run) -> str:
    """Return host and process of who has or had the run; the lease's owner names each claim of its own."""
    return ":".join((run.lease_owner or "").split(":")[:2])


def _seconds(until: datetime, now: datetime) -> int:
    return round((until - now).total_seconds())
