"""Regions of the ticket list: what the page includes is what the stream swaps in later.

A row that stays where it is, is swapped in place by its id. When a ticket enters, leaves or moves, the whole list is
sent; `static/js/inbox.js` swaps it in, or, while someone points at, scrolls or uses the list, offers it instead.
"""

from dataclasses import dataclass
from uuid import UUID

from flask import g
from flask_babel import format_number
from sqlalchemy.orm import Session
from werkzeug.datastructures import MultiDict

from app.agent.values import Priority
from app.httpkit.container import container
from app.review.inbox import COUNTED_MOST, InboxCounts, InboxPage, InboxRow, inbox_counts, inbox_page, inbox_rows
from app.review.inbox_filter import InboxFilter, View
from app.review.inbox_state import Status
from app.tickets.text import without_controls

SEARCH_LIMIT = 100


def filter_from(args: "MultiDict[str, str]") -> InboxFilter:
    """Return the filter that an address spells; what it spells wrongly is left out."""
    view = args.get("view", "")
    return InboxFilter(
        view=View(view) if view in {v.value for v in View} else View.ALL,
        statuses=tuple(status for status in Status if status.value in args.getlist("status")),
        priorities=tuple(priority for priority in Priority if priority.value in args.getlist("priority")),
        search=without_controls(args.get("q", ""))[:SEARCH_LIMIT],
        time_zone=container().settings.time_zone,
    )


def filter_query(shown: InboxFilter) -> dict[str, str | list[str]]:
    """Return the filter as arguments for `url_for`; the opposite of `filter_from`."""
    query: dict[str, str | list[str]] = {}
    if shown.view is not View.ALL:
        query["view"] = shown.view.value
    if shown.statuses:
        query["status"] = [status.value for status in shown.statuses]
    if shown.priorities:
        query["priority"] = [priority.value for priority in shown.priorities]
    if shown.search:
        query["q"] = shown.search
    return query


@dataclass(frozen=True, slots=True)
class ListView:
    """The list beside a page: what it shows, and which ticket is open.

    `pinned` is the row of the open ticket when the rows of the page do not hold it; it stands on top of the list.
    """

    shown: InboxFilter
    page: InboxPage
    selected: UUID | None = None
    pinned: InboxRow | None = None

    @property
    def query(self) -> dict[str, str | list[str]]:
        """Return the filter as arguments for `url_for`, to stay in this list on the way to another page."""
        return filter_query(self.shown)


def list_view(session: Session, args: "MultiDict[str, str]", selected: UUID | None = None) -> ListView:
    """Read the list that an address names. Pass it to templates that extend `layout.html` as `inbox`."""
    shown = filter_from(args)
    page = inbox_page(session, shown)
    is_beyond = selected is not None and all(row.id != selected for row in page.rows)
    pinned = inbox_rows(session, InboxFilter(time_zone=shown.time_zone), [selected]) if selected and is_beyond else ()
    return ListView(shown, page, selected, next(iter(pinned), None))


def view_counts() -> InboxCounts:
    """Return the counts of the rail, read once a request."""
    if "view_counts" not in g:
        with container().sessions() as session:
            g.view_counts = inbox_counts(session, time_zone=container().settings.time_zone)
    counts: InboxCounts = g.view_counts
    return counts


def amount(count: int) -> str:
    """Return a count in words: beyond what is counted it is that much and more."""
    return f"{format_number(COUNTED_MOST)}+" if count > COUNTED_MOST else str(format_number(count))
