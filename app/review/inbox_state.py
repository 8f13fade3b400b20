"""How the work on a ticket stands, as one word.

Derived from the latest run, the step that is open, and the reply on its way out; for a ticket at rest from its status
alone. An escalation outlives the run that brought it: a later draft does not take the ticket back to everybody. The
inbox, its filters and its counts, and the ticket page all read this one expression.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    cast,
    extract,
    func,
    literal,
    select,
    true,
)

from app.agent.values import Priority
from app.delivery.models import Delivery, DeliveryState
from app.runs.models import Run, RunStatus, Step
from app.tickets.models import DONE, Thread, Ticket, TicketStatus


class LiveState(StrEnum):
    """What is going on with a ticket right now."""

    NEW = "new"
    QUEUED = "queued"
    THINKING = "thinking"
    CLASSIFYING = "classifying"
    SEARCHING = "searching"
    DRAFTING = "drafting"
    DRAFT_READY = "draft_ready"
    WRITING = "writing"
    ESCALATED = "escalated"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SENDING = "sending"
    SEND_FAILED = "send_failed"
    WAITING = "waiting"
    RESOLVED = "resolved"
    CLOSED = "closed"
    SPAM = "spam"


class Group(IntEnum):
    """Who must act, in the order of the list."""

    DECIDE = 1
    AGENT = 2
    REST = 3


class Status(StrEnum):
    """The word that a person filters by; each covers one or more live states."""

    PENDING = "pending"
    RUNNING = "running"
    REVIEW = "review"
    ESCALATED = "escalated"
    FAILED = "failed"
    SENDING = "sending"
    WAITING = "waiting"
    RESOLVED = "resolved"
    CLOSED = "closed"


_S = LiveState
STATUS_OF: Mapping[LiveState, Status] = {
    _S.NEW: Status.PENDING,
    _S.CANCELLED: Status.PENDING,
    _S.QUEUED: Status.RUNNING,
    _S.THINKING: Status.RUNNING,
    _S.CLASSIFYING: Status.RUNNING,
    _S.SEARCHING: Status.RUNNING,
    _S.DRAFTING: Status.RUNNING,
    _S.DRAFT_READY: Status.REVIEW,
    _S.WRITING: Status.REVIEW,
    _S.ESCALATED: Status.ESCALATED,
    _S.FAILED: Status.FAILED,
    _S.SEND_FAILED: Status.FAILED,
    _S.SENDING: Status.SENDING,
    _S.WAITING: Status.WAITING,
    _S.RESOLVED: Status.RESOLVED,
    _S.CLOSED: Status.CLOSED,
    _S.SPAM: Status.CLOSED,
}
_REST = (Status.SENDING, Status.WAITING, Status.RESOLVED, Status.CLOSED)
_SKILL_STATES = {
    "classify_ticket": _S.CLASSIFYING,
    "search_knowledge": _S.SEARCHING,
    "draft_reply": _S.DRAFTING,
}
OPEN = tuple(status for status in TicketStatus if status not in DONE)
RESTING = tuple(status for status in TicketStatus if status in DONE)
"""Nothing is left to do on these, and no run is active. They pile up for years, so that only what a page shows of them
is read, by `ix_tickets_resting`; the open ones are looked at one by one."""
_AT_REST = {
    TicketStatus.RESOLVED: _S.RESOLVED,
    TicketStatus.CLOSED: _S.CLOSED,
    TicketStatus.SPAM: _S.SPAM,
}
IS_RESTING = Ticket.status.in_(bindparam("resting", RESTING, expanding=True, literal_execute=True))
"""Written into the statement, for a prepared one could not use the partial index by parameters."""
RESTED_AT: ColumnElement[datetime] = func.coalesce(Ticket.resolved_at, Ticket.last_customer_message_at)
"""Since when a ticket is at rest."""


def states_of(status: Status) -> tuple[LiveState, ...]:
    """Return the live states that a status covers."""
    return tuple(state for state, covering in STATUS_OF.items() if covering is status)


def group_of(state: LiveState) -> Group:
    """Return who must act on a ticket in this state."""
    status = STATUS_OF[state]
    if status is Status.RUNNING:
        return Group.AGENT
    return Group.REST if status in _REST else Group.DECIDE


def open_states(*narrowing: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Return a SELECT of `id`, `state`, `priority` and the place in the list: `band`, `rank`, `place`.

    It looks at the work on every ticket that it meets: narrow it to a few, or to those that are open. Within a band
    urgent tickets come first, then the longest waiting. What is at rest stands by time alone, newest first, so its
    `place` runs backwards.
    """
    inner = _states().where(*narrowing).subquery("states")
    band = case(
        (inner.c.state.in_([s.value for s in LiveState if group_of(s) is Group.AGENT]), Group.AGENT.value),
        (inner.c.state.in_([s.value for s in LiveState if group_of(s) is Group.REST]), Group.REST.value),
        else_=Group.DECIDE.value,
    )
    at_rest = band == Group.REST.value
    rank = case((and_(inner.c.priority == Priority.URGENT.value, ~at_rest), 0), else_=1)
    place = case((at_rest, -_micros(inner.c.rested_at)), else_=_micros(inner.c.last_customer_message_at))
    return select(
        inner.c.id,
        inner.c.state,
        inner.c.priority,
        band.label("band"),
        rank.label("rank"),
        place.label("place"),
    )


def resting_states(*narrowing: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Return a SELECT of the same columns for tickets at rest, newest first; it stops early when it is limited."""
    return (
        select(
            Ticket.id,
            _resting_state().label("state"),
            Ticket.priority,
            literal(Group.REST.value).label("band"),
            literal(1).label("rank"),
            (-_micros(RESTED_AT)).label("place"),
        )
        .where(IS_RESTING, *narrowing)
        .order_by(RESTED_AT.desc(), Ticket.id)
    )


def statuses_at_rest(states: Collection[LiveState]) -> tuple[TicketStatus, ...]:
    """Return the ticket statuses at rest that show as one of these states."""
    return tuple(status for status in RESTING if _AT_REST[status] in states)


def _states() -> Select[*tuple[Any, ...]]:
    run = (
        select(Run.id, Run.status, Run.planner)
        .join(Thread, Thread.id == Run.thread_id)
        .where(Thread.ticket_id == Ticket.id)
        .order_by(Run.id.desc())
        .limit(1)
        .lateral("run")
    )
    step = (
        select(Step.skill)
        .where(Step.run_id == run.c.id, Step.ended_at.is_(None), run.c.status == RunStatus.RUNNING)
        .order_by(Step.number.desc())
        .limit(1)
        .lateral("step")
    )
    reply = (
        select(Delivery.state)
        .where(Delivery.ticket_id == Ticket.id)
        .order_by(Delivery.id.desc())
        .limit(1)
        .lateral("reply")
    )
    state = _state(run.c.status, run.c.planner, step.c.skill, reply.c.state)
    return (
        select(
            Ticket.id,
            Ticket.priority,
            Ticket.last_customer_message_at,
            RESTED_AT.label("rested_at"),
            state.label("state"),
        )
        .outerjoin(run, true())
        .outerjoin(step, true())
        .outerjoin(reply, true())
    )


def _resting_state() -> ColumnElement[str]:
    return case({status.value: state.value for status, state in _AT_REST.items()}, value=Ticket.status)


def _state(
    status: ColumnElement[str], planner: ColumnElement[str], skill: ColumnElement[str], reply: ColumnElement[str]
) -> ColumnElement[str]:
    working = case(
        *((skill == name, literal(state.value)) for name, state in _SKILL_STATES.items()), else_=_S.THINKING.value
    )
    return case(
        (IS_RESTING, _resting_state()),
        (status.in_([RunStatus.CREATED, RunStatus.RETRYING]), _S.QUEUED.value),
        (status == RunStatus.RUNNING, working),
        (and_(status == RunStatus.WAITING_FOR_REVIEW, planner == "manual"), _S.WRITING.value),
        (and_(status == RunStatus.WAITING_FOR_REVIEW, Ticket.escalated_at.is_not(None)), _S.ESCALATED.value),
        (status == RunStatus.WAITING_FOR_REVIEW, _S.DRAFT_READY.value),
        (status == RunStatus.WAITING_FOR_ESCALATION, _S.ESCALATED.value),
        (Ticket.status == TicketStatus.WAITING_FOR_CUSTOMER, _S.WAITING.value),
        (_completed_with(status, reply, DeliveryState.HELD, DeliveryState.SENDING), _S.SENDING.value),
        (_completed_with(status, reply, DeliveryState.FAILED, DeliveryState.UNKNOWN), _S.SEND_FAILED.value),
        (Ticket.escalated_at.is_not(None), _S.ESCALATED.value),
        (status == RunStatus.FAILED, _S.FAILED.value),
        (status == RunStatus.CANCELLED, _S.CANCELLED.value),
        else_=_S.NEW.value,
    )


def _completed_with(
    status: ColumnElement[str], reply: ColumnElement[str], *states: DeliveryState
) -> ColumnElement[bool]:
    return and_(status == RunStatus.COMPLETED, reply.in_(states))


def _micros(moment: ColumnElement[datetime]) -> ColumnElement[int]:
    return cast(extract("epoch", moment) * 1_000_000, BigInteger)
