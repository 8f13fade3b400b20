"""The lists that pages of this process show: each is read and rendered once, however many pages show it.

A page says since when it needs to know. A reading that began after that serves every page that shows the same list in
the same language; a new one begins at most twice a second, so that a burst of events costs no more than a few reads.
"""

import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from flask import current_app, render_template
from flask_babel import get_locale
from sqlalchemy.orm import Session, sessionmaker

from app.clock import monotonic
from app.httpkit.container import container
from app.httpkit.htmx import partial
from app.review.inbox import InboxCounts, InboxPage, InboxRow, inbox_counts, inbox_page, inbox_rows
from app.review.inbox_filter import InboxFilter
from app.web.inbox_regions import ListView, amount

EVERY_S = 0.5
"""How long a reading stands before the next begins."""
LISTS_MOST = 200
"""Lists that are remembered; beyond that the ones that were read longest ago go, and are read anew when asked for."""
_EXTENSION = "shared_lists"


class Reading:
    """A list as it was read at one moment, with the markup of it. Needs an app and a request context to render in."""

    def __init__(self, sessions: sessionmaker[Session], shown: InboxFilter, at: float) -> None:
        self.at = at
        self._sessions = sessions
        self._shown = shown
        with sessions() as session:
            self._page: InboxPage = inbox_page(session, shown)
            self._counted: InboxCounts = inbox_counts(session, time_zone=shown.time_zone)
        self.digest = self._page.digest
        self.places = {row.id: row.position for row in self._page.rows}
        self._rows: dict[UUID, str] = {}
        self._by_id = {row.id: row for row in self._page.rows}

    @cached_property
    def whole(self) -> str:
        """The whole list with its total and the counts of the rail."""
        rows = partial("#inbox-list", render_template("inbox/_list.html", inbox=ListView(self._shown, self._page)))
        return rows + partial("#inbox-total", amount(self._page.total), "innerHTML") + self.counts

    @cached_property
    def counts(self) -> str:
        """The counts of the rail."""
        views = render_template("inbox/_views.html", counts=self._counted, current_view=self._shown.view)
        return partial("#rail-views", views)

    def rows(self, ticket_ids: Collection[UUID]) -> str:
        """Return the rows of these tickets, each a region of its own, whether or not the list still shows them.

        Rows beyond the first stretch are looked up: a page may have loaded them, holds its list back, or has the open
        ticket on top of it. htmx drops those that it has not.
        """
        new = [ticket_id for ticket_id in ticket_ids if ticket_id not in self._rows]
        if new:
            self._render([self._by_id[ticket_id] for ticket_id in new if ticket_id in self._by_id])
            beyond = [ticket_id for ticket_id in new if ticket_id not in self._by_id]
            if beyond:
                with self._sessions() as session:
                    self._render(inbox_rows(session, InboxFilter(time_zone=self._shown.time_zone), beyond))
            self._rows |= {ticket_id: "" for ticket_id in new if ticket_id not in self._rows}
        return "".join(self._rows[ticket_id] for ticket_id in ticket_ids)

    def _render(self, rows: Iterable[InboxRow]) -> None:
        for row in rows:
            view = ListView(self._shown, InboxPage((row,), None, 0, {}))
            markup = render_template("inbox/_row.html", row=row, inbox=view)
            self._rows[row.id] = partial(f"#ticket-row-{row.id}", markup)


@dataclass(slots=True)
class _Slot:
    lock: threading.Lock = field(default_factory=threading.Lock)
    reading: Reading | None = None


class SharedLists:
    """The newest reading of each list and language. Used by every stream of the process at once."""

    def __init__(self, sessions: sessionmaker[Session], clock: Callable[[], float] = monotonic) -> None:
        self._sessions = sessions
        self._clock = clock
        self._slots: dict[tuple[InboxFilter, str], _Slot] = {}
        self._lock = threading.Lock()

    def newest(self, shown: InboxFilter, moment: float) -> Reading:
        """Return a reading that began at `moment` or later, or while it is too early to begin one the last there is."""
        slot = self._slot(shown)
        with slot.lock:  # whoever comes while another page reads waits for it, and has it too
            reading = slot.reading
            if reading is None or (reading.at < moment and self._clock() >= reading.at + EVERY_S):
                reading = slot.reading = Reading(self._sessions, shown, self._clock())
            return reading

    def due_in(self, shown: InboxFilter) -> float:
        """Return in how many seconds the next reading of a list may begin."""
        reading = self._slot(shown).reading
        return max(0.0, reading.at + EVERY_S - self._clock()) if reading else 0.0

    def _slot(self, shown: InboxFilter) -> _Slot:
        with self._lock:
            slot = self._slots.pop((shown, str(get_locale())), None) or _Slot()
            self._slots[shown, str(get_locale())] = slot  # last in order: asked for last
            while len(self._slots) > LISTS_MOST:
                del self._slots[next(iter(self._slots))]
            return slot


def shared_lists() -> SharedLists:
    """Return the lists of this process."""
    if _EXTENSION not in current_app.extensions:
        current_app.extensions.setdefault(_EXTENSION, SharedLists(container().sessions))
    lists: SharedLists = current_app.extensions[_EXTENSION]
    return lists


class InboxRegions:
    """Keeps one page's list up to date over a stream. Needs an app and a request context to render in."""

    def __init__(
        self, lists: SharedLists, shown: InboxFilter, selected: UUID | None = None, seen: str | None = None
    ) -> None:
        """`seen` is the digest of the list that the page holds (`ListView.page.digest`), if it holds one."""
        self._lists = lists
        self._shown = shown
        self._selected = selected
        self._seen = seen
        self._places: dict[UUID, tuple[int, int, int, UUID]] | None = None
        self._changed: set[UUID] = set()
        self._reread = False
        self._since: float | None = None
        self._at: float | None = None

    def note(self, moment: float, ticket_ids: Collection[UUID] | None = None) -> None:
        """Note that these tickets have changed by `moment`; without any, that anything may have."""
        self._since = moment if self._since is None else max(moment, self._since)
        self._at = moment if self._at is None else self._at  # a page is not sent back to what was before it
        self._changed.update(ticket_ids or ())
        self._reread |= ticket_ids is None

    @property
    def due_in(self) -> float | None:
        """In how many seconds to call `news` again; None when nothing was noted."""
        return None if self._since is None else self._lists.due_in(self._shown)

    def news(self) -> str:
        """Return what brings the page up to date, as `<hx-partial>` regions; nothing while it is too early to look."""
        if self._since is None or self._at is None:
            return ""
        reading = self._lists.newest(self._shown, self._since)
        has_all = reading.at >= self._since
        if reading.at <= self._at and not has_all:
            return ""
        markup = self._difference(reading)
        self._places, self._seen, self._at = reading.places, reading.digest, reading.at
        if has_all:  # else it is news all the same, and the rest comes with the next reading
            self._changed, self._reread, self._since = set(), False, None
        return self._with_selection(markup)

    def _difference(self, reading: Reading) -> str:
        if reading.digest != self._seen if self._reread else reading.places != self._places:
            return reading.whole + reading.rows(self._changed - reading.places.keys())
        return reading.rows(self._changed) + reading.counts if self._changed else ""

    def _with_selection(self, markup: str) -> str:
        """Mark the row of the open ticket: the one thing in a list that is not the same for every page."""
        row = f'id="ticket-row-{self._selected}"'
        return markup.replace(row, f'{row} aria-current="true"') if self._selected else markup
