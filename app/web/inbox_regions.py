"""Regions of the ticket list: what the page includes is what the stream swaps in later.

A row that stays where it is, is swapped in place by its id. When a ticket enters, leaves or moves, the whole list is
sent; `static/js/inbox.js` swaps it in, or, while someone points at, scrolls or uses the list, offers it instead.
"""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from flask import g, render_template
from flask_babel import format_number
from sqlalchemy.orm import Session
from werkzeug.datastructures import MultiDict

from app.agent.values import Priority
from app.httpkit.container import container
from app.httpkit.htmx import partial
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
    """The list beside a page: what it shows, and which ticket is open."""

    shown: InboxFilter
    page: InboxPage
    selected: UUID | None = None

    @property
    def query(self) -> dict[str, str | list[str]]:
        """Return the filter as arguments for `url_for`, to stay in this list on the way to another page."""
        return filter_query(self.shown)


def list_view(session: Session, args: "MultiDict[str, str]", selected: UUID | None = None) -> ListView:
    """Read the list that an address names. Pass it to templates that extend `layout.html` as `inbox`."""
    shown = filter_from(args)
    return ListView(shown, inbox_page(session, shown), selected)


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


class InboxRegions:
    """Keeps one page's list up to date over a stream. Needs an app and a request context to render in."""

    def __init__(self, shown: InboxFilter, selected: UUID | None = None, seen: str | None = None) -> None:
        """`seen` is the digest of the list that the page holds (`ListView.page.digest`), if it holds one."""
        self._shown = shown
        self._selected = selected
        self._seen = seen
        self._known: dict[UUID, tuple[int, int, int, UUID]] = {}

    def catch_up(self, session: Session) -> str:
        """Read the list again and return what brings the page up to date: nothing, or the whole list.

        Call it first on every connection, and after any gap in the feed.
        """
        page = self._read(session)
        return "" if page.digest == self._seen else self._whole(session, page)

    def changed(self, session: Session, ticket_ids: Collection[UUID]) -> str:
        """Return what brings the page up to date after these tickets changed, as `<hx-partial>` regions."""
        before = self._known
        page = self._read(session)
        if before != self._known:
            return self._whole(session, page)
        rows = [row for row in page.rows if row.id in ticket_ids]
        further = [ticket_id for ticket_id in ticket_ids if ticket_id not in self._known]
        if further:  # rows that the page has loaded beyond the first stretch; htmx drops those that it has not
            rows += inbox_rows(session, self._shown, further)
        return "".join(self._row(row) for row in rows) + self._counts(session)

    def _read(self, session: Session) -> InboxPage:
        page = inbox_page(session, self._shown)
        self._known = {row.id: row.position for row in page.rows}
        return page

    def _whole(self, session: Session, page: InboxPage) -> str:
        view = ListView(self._shown, page, self._selected)
        rows = partial("#inbox-list", render_template("inbox/_list.html", inbox=view))
        return rows + partial("#inbox-total", amount(page.total), "innerHTML") + self._counts(session)

    def _row(self, row: InboxRow) -> str:
        view = ListView(self._shown, InboxPage((row,), None, 0, {}), self._selected)
        return partial(f"#ticket-row-{row.id}", render_template("inbox/_row.html", row=row, inbox=view))

    def _counts(self, session: Session) -> str:
        counts = inbox_counts(session, time_zone=self._shown.time_zone)
        return partial(
            "#rail-views", render_template("inbox/_views.html", counts=counts, current_view=self._shown.view)
        )
