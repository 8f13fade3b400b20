"""How the work on a ticket stands, as one word.

Derived from the latest run, the step that is open, and the reply on its way out. The inbox, its filters and its
counts all read this one expression.
"""

from collections.abc import Mapping
from enum import IntEnum, StrEnum

from sqlalchemy import BigInteger, ColumnElement, Select, and_, case, cast, extract, func, literal, select, true

from app.agent.values import Priority
from app.delivery.models import Delivery, DeliveryState
from app.runs.models import Run, RunStatus, Step
from app.tickets.models import Thread, Ticket, TicketStatus


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
}
_REST = (Status.SENDING, Status.WAITING, Status.RESOLVED, Status.CLOSED)
_SKILL_STATES = {
    "classify_ticket": _S.CLASSIFYING,
    "search_knowledge": _S.SEARCHING,
    "draft_reply": _S.DRAFTING,
}
OPEN = (TicketStatus.PENDING, TicketStatus.PROCESSING, TicketStatus.WAITING_FOR_CUSTOMER)


def states_of(status: Status) -> tuple[LiveState, ...]:
    """Return the live states that a status covers."""
    return tuple(state for state, covering in STATUS_OF.items() if covering is status)


def group_of(state: LiveState) -> Group:
    """Return who must act on a ticket in this state."""
    status = STATUS_OF[state]
    if status is Status.RUNNING:
        return Group.AGENT
    return Group.REST if status in _REST else Group.DECIDE


def ticket_states() -> Select[tuple[object, ...]]:
    """Return a SELECT of each ticket's id with `state`, `run_id` and `sent_at`; callers narrow it, then place it."""
    run = (
        select(Run.id, Run.status, Run.planner)
        .where(Run.thread_id == Thread.id)
        .order_by(Run.id.desc())
        .limit(1)
        .lateral("run")
    )
    step = (
        select(Step.skill)
        .where(Step.run_id == run.c.id, Step.ended_at.is_(None))
        .order_by(Step.number.desc())
        .limit(1)
        .lateral("step")
    )
    reply = (
        select(Delivery.state, Delivery.sent_at)
        .where(Delivery.ticket_id == Ticket.id)
        .order_by(Delivery.id.desc())
        .limit(1)
        .lateral("reply")
    )
    state = _state(run.c.status, run.c.planner, step.c.skill, reply.c.state)
    return (
        select(Ticket.id, run.c.id.label("run_id"), reply.c.sent_at, state.label("state"))
        .join(Thread, Thread.ticket_id == Ticket.id)
        .outerjoin(run, true())
        .outerjoin(step, and_(true(), run.c.status == RunStatus.RUNNING))
        .outerjoin(reply, true())
    )


def placed(states: Select[tuple[object, ...]]) -> Select[tuple[object, ...]]:
    """Return a SELECT over `ticket_states()` that adds the place in the list: `band`, `rank`, `place`.

    Within a band urgent tickets come first, then the longest waiting. What is at rest is sorted newest first, so its
    `place` runs backwards.
    """
    inner = states.add_columns(Ticket.priority, Ticket.last_customer_message_at, Ticket.resolved_at).subquery("states")
    band = case(
        (inner.c.state.in_([s.value for s in LiveState if group_of(s) is Group.AGENT]), Group.AGENT.value),
        (inner.c.state.in_([s.value for s in LiveState if group_of(s) is Group.REST]), Group.REST.value),
        else_=Group.DECIDE.value,
    )
    rank = case((inner.c.priority == Priority.URGENT.value, 0), else_=1)
    waiting = _micros(inner.c.last_customer_message_at)
    rested = -_micros(func.coalesce(inner.c.resolved_at, inner.c.last_customer_message_at))
    place = case((band == Group.REST.value, rested), else_=waiting)
    return select(inner, band.label("band"), rank.label("rank"), place.label("place"))


def _state(
    status: ColumnElement[str], planner: ColumnElement[str], skill: ColumnElement[str], reply: ColumnElement[str]
) -> ColumnElement[str]:
    working = case(
        *((skill == name, literal(state.value)) for name, state in _SKILL_STATES.items()), else_=_S.THINKING.value
    )
    return case(
        (status.in_([RunStatus.CREATED, RunStatus.RETRYING]), _S.QUEUED.value),
        (status == RunStatus.RUNNING, working),
        (and_(status == RunStatus.WAITING_FOR_REVIEW, planner == "manual"), _S.WRITING.value),
        (status == RunStatus.WAITING_FOR_REVIEW, _S.DRAFT_READY.value),
        (status == RunStatus.WAITING_FOR_ESCALATION, _S.ESCALATED.value),
        (Ticket.status.in_([TicketStatus.CLOSED, TicketStatus.SPAM]), _S.CLOSED.value),
        (Ticket.status == TicketStatus.RESOLVED, _S.RESOLVED.value),
        (Ticket.status == TicketStatus.WAITING_FOR_CUSTOMER, _S.WAITING.value),
        (_completed_with(status, reply, DeliveryState.HELD, DeliveryState.SENDING), _S.SENDING.value),
        (_completed_with(status, reply, DeliveryState.FAILED, DeliveryState.UNKNOWN), _S.SEND_FAILED.value),
        (_completed_with(status, reply, DeliveryState.SENT), _S.RESOLVED.value),
        (Ticket.escalated_at.is_not(None), _S.ESCALATED.value),
        (status == RunStatus.FAILED, _S.FAILED.value),
        (status == RunStatus.CANCELLED, _S.CANCELLED.value),
        else_=_S.NEW.value,
    )


def _completed_with(
    status: ColumnElement[str], reply: ColumnElement[str], *states: DeliveryState
) -> ColumnElement[bool]:
    return and_(status == RunStatus.COMPLETED, reply.in_(states))


def _micros(moment: ColumnElement[object]) -> ColumnElement[int]:
    return cast(extract("epoch", moment) * 1_000_000, BigInteger)
