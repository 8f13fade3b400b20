"""The inbox: which tickets stand in a list, in which order, and what each row shows.

One statement reads a page, whatever its length; one more counts the views of the rail.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, Subquery, and_, func, or_, select, true, tuple_
from sqlalchemy.orm import Session

from app.agent.values import Priority
from app.delivery.models import Delivery, DeliveryState
from app.guard.personal_data import mask_name
from app.ids import parse_id
from app.review.inbox_state import OPEN, Group, LiveState, Status, placed, states_of, ticket_states
from app.tickets.models import Customer, Ticket, TicketMessage

PAGE_SIZE = 50
SNIPPET = 80


class View(StrEnum):
    """The fixed views of the rail."""

    REVIEW = "review"
    URGENT = "urgent"
    ESCALATED = "escalated"
    FAILED = "failed"
    SENT_TODAY = "sent_today"
    ALL = "all"


OPEN_VIEWS = (View.REVIEW, View.URGENT, View.ESCALATED, View.FAILED)
"""Views that hold open tickets only, so that those at rest need not be looked at."""


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


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One ticket as the list shows it. `place` is where it stands: (band, rank, microseconds, id)."""

    id: UUID
    number: int
    subject: str
    snippet: str
    customer: str
    channel: str
    state: LiveState
    group: Group
    priority: Priority | None
    priority_set_by: str | None
    category: str | None
    category_set_by: str | None
    waiting_since: datetime
    run_id: UUID | None
    version: int
    rank: int
    place: int

    @property
    def position(self) -> tuple[int, int, int, UUID]:
        """Return where the row stands among the others."""
        return (self.group, self.rank, self.place, self.id)


@dataclass(frozen=True, slots=True)
class InboxPage:
    """A stretch of the list; `after` is the cursor of the next one, None at the end.

    `total` and `group_totals` count from this stretch on to the end of the list, so all of it on the first page.
    """

    rows: tuple[InboxRow, ...]
    after: str | None
    total: int
    group_totals: dict[Group, int]

    @property
    def digest(self) -> str:
        """Return a short digest of what the rows show, to tell whether a page has gone stale."""
        return sha256(repr(self.rows).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class InboxCounts:
    """How many tickets each view holds."""

    views: dict[View, int]


def inbox_page(session: Session, shown: InboxFilter, after: str | None = None, *, limit: int = PAGE_SIZE) -> InboxPage:
    """Return a page of the list: by who must act, urgent first, then the longest waiting. One statement.

    `after` is the cursor of the page before; one that can't be read is taken for none.
    """
    listed = _listed(shown)
    cursor = _parse_cursor(after)
    in_band = func.count().over(partition_by=listed.c.band).label("in_band")
    page = select(listed, in_band, func.count().over().label("total")).where(_matches(listed, shown))
    if cursor is not None:
        page = page.where(tuple_(*_order(listed)) > tuple_(*cursor))
    found = _read(session, page.order_by(*_order(listed)).limit(limit + 1))
    rows = tuple(_as_row(row) for row in found[:limit])
    return InboxPage(
        rows,
        after=_cursor(rows[-1]) if len(found) > limit else None,
        total=found[0].total if found else 0,
        group_totals={Group(row.band): row.in_band for row in found[:limit]},
    )


def inbox_rows(session: Session, shown: InboxFilter, ticket_ids: Collection[UUID]) -> tuple[InboxRow, ...]:
    """Return those of the tickets that the list shows, in its order. One statement."""
    listed = _listed(shown, Ticket.id.in_(ticket_ids))
    found = _read(session, select(listed).where(_matches(listed, shown)).order_by(*_order(listed)))
    return tuple(_as_row(row) for row in found)


def inbox_counts(session: Session, *, time_zone: str) -> InboxCounts:
    """Return how many tickets each view holds. One statement; only tickets that are not at rest are looked at."""
    open_ones = placed(ticket_states().where(Ticket.status.in_(OPEN))).subquery("listed")
    today = Delivery.state == DeliveryState.SENT, Delivery.sent_at >= _today(time_zone)
    row = session.execute(
        select(
            *(func.count().filter(_in_view(open_ones, view, time_zone)).label(view) for view in OPEN_VIEWS),
            select(func.count(Delivery.ticket_id.distinct())).where(*today).scalar_subquery().label(View.SENT_TODAY),
            select(func.count()).select_from(Ticket).scalar_subquery().label(View.ALL),
        ).select_from(open_ones)
    ).one()
    return InboxCounts({View(name): count for name, count in row._mapping.items()})


def _listed(shown: InboxFilter, *narrowing: ColumnElement[bool]) -> Subquery:
    states = ticket_states().where(*narrowing)
    if shown.view in OPEN_VIEWS:
        states = states.where(Ticket.status.in_(OPEN))
    if shown.search:
        states = states.join(Customer, Customer.id == Ticket.customer_id).where(_found(shown.search))
    if shown.priorities:
        states = states.where(Ticket.priority.in_(shown.priorities))
    return placed(states).subquery("listed")


def _found(search: str) -> ColumnElement[bool]:
    number = search.removeprefix("#")
    by_number = Ticket.number == int(number) if number.isascii() and number.isdigit() and len(number) < 18 else None
    words = or_(Ticket.subject.icontains(search, autoescape=True), Customer.external_id == search)
    return words if by_number is None else or_(words, by_number)


def _matches(listed: Subquery, shown: InboxFilter) -> ColumnElement[bool]:
    wanted = [_in_view(listed, shown.view, shown.time_zone)]
    if shown.statuses:
        wanted.append(listed.c.state.in_([state.value for status in shown.statuses for state in states_of(status)]))
    return and_(*wanted)


def _in_view(listed: Subquery, view: View, time_zone: str) -> ColumnElement[bool]:
    match view:
        case View.REVIEW:
            return _in_states(listed, Status.REVIEW)
        case View.ESCALATED:
            return _in_states(listed, Status.ESCALATED)
        case View.FAILED:
            return _in_states(listed, Status.FAILED)
        case View.URGENT:
            return and_(listed.c.priority == Priority.URGENT.value, listed.c.band != Group.REST.value)
        case View.SENT_TODAY:
            return and_(listed.c.sent_at.is_not(None), listed.c.sent_at >= _today(time_zone))
        case View.ALL:
            return true()


def _in_states(listed: Subquery, status: Status) -> ColumnElement[bool]:
    states: ColumnElement[bool] = listed.c.state.in_([state.value for state in states_of(status)])
    return states


def _today(time_zone: str) -> ColumnElement[datetime]:
    return func.date_trunc("day", func.now(), time_zone)


def _order(listed: Subquery) -> tuple[ColumnElement[object], ...]:
    return (listed.c.band, listed.c.rank, listed.c.place, listed.c.id)


def _read(session: Session, page: Select[tuple[object, ...]]) -> Sequence[Row[tuple[object, ...]]]:
    """Add what the rows show to the few tickets that were chosen, in the same statement."""
    chosen = page.subquery("chosen")
    shown = (
        select(
            chosen,
            Ticket.number,
            Ticket.subject,
            Ticket.channel,
            Ticket.priority_set_by,
            Ticket.category,
            Ticket.category_set_by,
            Ticket.version,
            Customer.name.label("customer"),
            func.left(TicketMessage.body, SNIPPET).label("snippet"),
        )
        .join(Ticket, Ticket.id == chosen.c.id)
        .join(Customer, Customer.id == Ticket.customer_id)
        .outerjoin(TicketMessage, TicketMessage.id == Ticket.last_customer_message_id)
        .order_by(*_order(chosen))
    )
    return session.execute(shown).all()


def _as_row(row: Row[tuple[object, ...]]) -> InboxRow:
    return InboxRow(
        id=row.id,
        number=row.number,
        subject=row.subject,
        snippet=" ".join((row.snippet or "").split()),
        customer=mask_name(row.customer),
        channel=row.channel,
        state=LiveState(row.state),
        group=Group(row.band),
        priority=Priority(row.priority) if row.priority else None,
        priority_set_by=row.priority_set_by,
        category=row.category,
        category_set_by=row.category_set_by,
        waiting_since=row.last_customer_message_at,
        run_id=row.run_id,
        version=row.version,
        rank=row.rank,
        place=row.place,
    )


def _cursor(row: InboxRow) -> str:
    return ".".join(str(part) for part in (int(row.group), row.rank, row.place, row.id))


def _parse_cursor(text_form: str | None) -> tuple[object, ...] | None:
    parts = (text_form or "").split(".")
    if len(parts) != 4:
        return None
    ticket_id = parse_id(parts[3])
    try:
        numbers = [int(part) for part in parts[:3]]
    except ValueError:
        return None
    return (*numbers, ticket_id) if ticket_id else None
