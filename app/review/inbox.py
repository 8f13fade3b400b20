"""The inbox: which tickets stand in a list, in which order, and what each row shows.

One statement reads a page, whatever its length; one more counts the views of the rail. Both look at the work on open
tickets only; of those at rest, which pile up, a page reads no more than it shows.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Subquery,
    false,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
    union_all,
)
from sqlalchemy.orm import Session

from app.agent.values import Priority
from app.delivery.models import Delivery
from app.guard.personal_data import mask_name
from app.ids import parse_id
from app.review.inbox_filter import (
    OPEN_VIEWS,
    InboxFilter,
    View,
    in_view,
    narrowed,
    sent_today,
    ticket_is,
    wanted_states,
)
from app.review.inbox_state import (
    OPEN,
    RESTED_AT,
    Group,
    LiveState,
    open_states,
    resting_states,
    statuses_at_rest,
)
from app.tickets.models import Customer, Ticket, TicketMessage

PAGE_SIZE = 50
SNIPPET = 80
COUNTED_MOST = 9_999
"""Tickets at rest are counted up to one more than this, which stands for any number beyond; nobody reads the rest."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One ticket as the list shows it. `place` is where it stands: (band, rank, microseconds, id).

    `crossed` says that the customer wrote while a reply was leaving, and has had no other one since.
    """

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
    crossed: bool
    waiting_since: datetime
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

    `total` and `group_totals` count the whole list, exactly up to COUNTED_MOST.
    """

    rows: tuple[InboxRow, ...]
    after: str | None
    total: int
    group_totals: Mapping[Group, int]

    @property
    def digest(self) -> str:
        """Return a short digest of what the rows show, to tell whether a page has gone stale."""
        return sha256(repr(self.rows).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class InboxCounts:
    """How many tickets each view holds, exactly up to COUNTED_MOST."""

    views: dict[View, int]


def inbox_page(session: Session, shown: InboxFilter, after: str | None = None, *, limit: int = PAGE_SIZE) -> InboxPage:
    """Return a page of the list: by who must act, urgent first, then the longest waiting. One statement.

    `after` is the cursor of the page before; one that can't be read is taken for none.
    """
    cursor = _parse_cursor(after)
    is_open = narrowed(open_states(Ticket.status.in_(OPEN), *ticket_is(shown)), shown).cte("is_open")
    resting, resting_count = _resting(shown, cursor, limit + 1)
    listed = union_all(select(is_open), select(resting)).subquery("listed")
    page = select(listed).order_by(*_order(listed)).limit(limit + 1)
    if cursor is not None:
        page = page.where(tuple_(*_order(listed)) > tuple_(*cursor))
    counted = select(*(func.count().filter(is_open.c.band == group.value).label(group.name) for group in Group))
    totals = counted.add_columns(resting_count.label("resting")).select_from(is_open).subquery("totals")
    found = session.execute(_shown(page, totals)).all()
    rows = tuple(_as_row(row) for row in found[:limit])
    in_group = {group: getattr(found[0], group.name) if found else 0 for group in Group}
    in_group[Group.REST] += found[0].resting if found else 0
    return InboxPage(
        rows,
        after=_cursor(rows[-1]) if len(found) > limit else None,
        total=sum(in_group.values()),
        group_totals=in_group,
    )


def inbox_rows(session: Session, shown: InboxFilter, ticket_ids: Collection[UUID]) -> tuple[InboxRow, ...]:
    """Return those of the tickets that the list shows, in its order. One statement."""
    page = narrowed(open_states(Ticket.id.in_(ticket_ids), *ticket_is(shown)), shown)
    return tuple(_as_row(row) for row in session.execute(_shown(page)))


def inbox_counts(session: Session, *, time_zone: str) -> InboxCounts:
    """Return how many tickets each view holds. One statement; of tickets at rest only so many are counted."""
    is_open = open_states(Ticket.status.in_(OPEN)).subquery("is_open")
    sent = select(func.count(Delivery.ticket_id.distinct())).where(*sent_today(time_zone))
    row = session.execute(
        select(
            *(func.count().filter(in_view(is_open, view)).label(view) for view in OPEN_VIEWS),
            sent.scalar_subquery().label(View.SENT_TODAY),
            (func.count() + _count(resting_states())).label(View.ALL),
        ).select_from(is_open)
    ).one()
    return InboxCounts({View(name): count for name, count in row._mapping.items()})


def _resting(
    shown: InboxFilter, cursor: tuple[int, int, int, UUID] | None, limit: int
) -> tuple[Subquery, ColumnElement[int]]:
    """Return the next tickets at rest that the list shows, and how many it shows in all."""
    wanted = [*ticket_is(shown)]
    if shown.view in OPEN_VIEWS:
        wanted.append(false())
    if shown.statuses:
        wanted.append(Ticket.status.in_(statuses_at_rest(wanted_states(shown))))
    page = resting_states(*wanted)
    if cursor is not None and cursor[0] == Group.REST:
        since = _EPOCH + timedelta(microseconds=-cursor[2])
        page = page.where(since >= RESTED_AT, or_(since > RESTED_AT, Ticket.id > cursor[3]))
    return page.limit(limit).subquery("resting"), _count(resting_states(*wanted))


def _count(states: Select[*tuple[Any, ...]]) -> ColumnElement[int]:
    some = states.with_only_columns(literal(1)).order_by(None).limit(COUNTED_MOST + 1)
    return select(func.count()).select_from(some.subquery("some")).scalar_subquery()


def _order(listed: Subquery) -> tuple[ColumnElement[object], ...]:
    return (listed.c.band, listed.c.rank, listed.c.place, listed.c.id)


def _shown(page: Select[*tuple[Any, ...]], totals: Subquery | None = None) -> Select[*tuple[Any, ...]]:
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
            Ticket.reply_crossed_at.is_not(None).label("crossed"),
            Ticket.last_customer_message_at,
            Ticket.version,
            Customer.name.label("customer"),
            func.left(TicketMessage.body, SNIPPET).label("snippet"),
        )
        .join(Ticket, Ticket.id == chosen.c.id)
        .join(Customer, Customer.id == Ticket.customer_id)
        .outerjoin(TicketMessage, TicketMessage.id == Ticket.last_customer_message_id)
        .order_by(*_order(chosen))
    )
    return shown if totals is None else shown.add_columns(totals).join(totals, true())


def _as_row(row: Row[Any]) -> InboxRow:
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
        crossed=row.crossed,
        waiting_since=row.last_customer_message_at,
        version=row.version,
        rank=row.rank,
        place=row.place,
    )


def _cursor(row: InboxRow) -> str:
    return ".".join(str(part) for part in (int(row.group), row.rank, row.place, row.id))


def _parse_cursor(text_form: str | None) -> tuple[int, int, int, UUID] | None:
    parts = (text_form or "").split(".")
    ticket_id = parse_id(parts[-1])
    numbers = [part.removeprefix("-") for part in parts[:-1]]
    if ticket_id is None or len(numbers) != 3:
        return None
    if not all(number.isascii() and number.isdigit() and len(number) < 17 for number in numbers):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2]), ticket_id
