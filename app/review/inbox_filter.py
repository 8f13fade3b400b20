"""What a list shows: a view, narrowed by statuses, priorities and words, and the SQL of it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, and_, func, literal, or_, select, true

from app.agent.values import Priority
from app.delivery.models import Delivery, DeliveryState
from app.review.inbox_state import Group, LiveState, Status, states_of
from app.tickets.models import Customer, Ticket


class View(StrEnum):
    """The fixed views of the rail."""

    REVIEW = "review"
    URGENT = "urgent"
    ESCALATED = "escalated"
    FAILED = "failed"
    SENT_TODAY = "sent_today"
    ALL = "all"


OPEN_VIEWS = (View.REVIEW, View.URGENT, View.ESCALATED, View.FAILED)
"""Views that no ticket at rest is in."""


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """What a list shows: a view, narrowed by statuses and priorities (any of each) and a search text.

    `time_zone` says when today began.
    """

    view: View = View.ALL
    statuses: tuple[Status, ...] = ()
    priorities: tuple[Priority, ...] = ()
    search: str = ""
    time_zone: str = "UTC"


def narrowed(states: Select[*tuple[Any, ...]], shown: InboxFilter) -> Select[*tuple[Any, ...]]:
    """Leave of a SELECT of states those that the list shows."""
    listed = states.subquery("placed")
    wanted = [in_view(listed, shown.view)]
    if shown.statuses:
        wanted.append(listed.c.state.in_([state.value for state in wanted_states(shown)]))
    return select(listed).where(*wanted)


def ticket_is(shown: InboxFilter) -> list[ColumnElement[bool]]:
    """Return what a filter asks of the ticket's own columns."""
    wanted: list[ColumnElement[bool]] = []
    if shown.search:
        wanted.append(_found(shown.search))
    if shown.priorities:
        wanted.append(Ticket.priority.in_(shown.priorities))
    if shown.view is View.SENT_TODAY:
        wanted.append(Ticket.id.in_(select(Delivery.ticket_id).where(*sent_today(shown.time_zone))))
    return wanted


def _found(search: str) -> ColumnElement[bool]:
    number = search.removeprefix("#")
    customer = select(Customer.id).where(Customer.external_id == search).scalar_subquery()
    words = or_(Ticket.subject.icontains(search, autoescape=True), Ticket.customer_id == customer)
    is_number = number.isascii() and number.isdigit() and len(number) < 18
    return or_(words, Ticket.number == int(number)) if is_number else words


def wanted_states(shown: InboxFilter) -> list[LiveState]:
    """Return the live states that the chosen statuses cover."""
    return [state for status in shown.statuses for state in states_of(status)]


def in_view(listed: Subquery, view: View) -> ColumnElement[bool]:
    """Return what a view asks of a SELECT of states."""
    match view:
        case View.REVIEW:
            return _in_states(listed, Status.REVIEW)
        case View.ESCALATED:
            return _in_states(listed, Status.ESCALATED)
        case View.FAILED:
            return _in_states(listed, Status.FAILED)
        case View.URGENT:
            return and_(listed.c.priority == Priority.URGENT.value, listed.c.band != Group.REST.value)
        case View.SENT_TODAY | View.ALL:  # `ticket_is` has narrowed it already
            return true()


def _in_states(listed: Subquery, status: Status) -> ColumnElement[bool]:
    states: ColumnElement[bool] = listed.c.state.in_([state.value for state in states_of(status)])
    return states


def sent_today(time_zone: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return what makes a delivery one of today."""
    is_sent = Delivery.state == literal(DeliveryState.SENT.value, literal_execute=True)
    return is_sent, Delivery.sent_at >= _today(time_zone)


def _today(time_zone: str) -> ColumnElement[datetime]:
    return func.date_trunc("day", func.now(), time_zone)
