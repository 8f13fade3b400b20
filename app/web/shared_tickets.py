"""The tickets that pages of this process show: each is read and rendered once, however many pages show it.

A page takes any young reading that has the event it was told of. What is a person's own, the editor with their unsent
text and the actions that go with it, is rendered for each page, and only when its state has changed: the page leaves
the same state alone.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from flask import current_app
from flask_babel import get_locale
from sqlalchemy.orm import Session, sessionmaker

from app.clock import monotonic
from app.db.signals import EventFact
from app.httpkit.container import container
from app.review.ticket_page import composer_of, ticket_page
from app.review.ticket_view import TicketPage
from app.web.ticket_regions import Region, dirty, render_regions, state_key

KEPT_S = 2.0
"""How long a reading may serve: what no event tells of, such as a document that was deleted, is never older."""
TICKETS_MOST = 100
"""Tickets that are remembered; beyond that the ones that were asked for longest ago go, and are read anew."""
_OWN = frozenset({Region.DESK, Region.ACTIONS})
_EXTENSION = "shared_tickets"


class Reading:
    """A ticket as it was read at one moment, without anybody's unsent text. Needs a request context to render in."""

    def __init__(self, page: TicketPage, at: float) -> None:
        self.page = page
        self.at = at
        self.key = state_key(page)
        self._markup: dict[tuple[Region, str], str] = {}

    def regions(self, regions: Collection[Region]) -> str:
        """Return regions that are the same for everybody."""
        return "".join(map(self._region, regions))

    def _region(self, region: Region) -> str:
        place = region, str(get_locale())
        if place not in self._markup:
            self._markup[place] = render_regions(self.page, [region])
        return self._markup[place]


@dataclass(slots=True)
class _Slot:
    lock: threading.Lock = field(default_factory=threading.Lock)
    reading: Reading | None = None


class SharedTickets:
    """The newest reading of each ticket. Used by every stream of the process at once."""

    def __init__(self, sessions: sessionmaker[Session], clock: Callable[[], float] = monotonic) -> None:
        self.sessions = sessions
        self._clock = clock
        self._slots: dict[int, _Slot] = {}
        self._lock = threading.Lock()

    def newest(self, number: int, seq: int, *, staff_id: UUID) -> Reading:
        """Return a young reading that has the event `seq` of the ticket, for `staff_id` to see. Raises NotFound."""
        slot = self._slot(number)
        with slot.lock:  # whoever comes while another page reads waits for it, and has it too
            reading, now = slot.reading, self._clock()
            if reading is None or reading.page.last_seq < seq or now > reading.at + KEPT_S:
                with self.sessions() as session:
                    page = ticket_page(session, number, staff_id=staff_id)
                reading = slot.reading = Reading(replace(page, composer=None), now)
            return reading

    def _slot(self, number: int) -> _Slot:
        with self._lock:
            slot = self._slots.pop(number) if number in self._slots else _Slot()
            self._slots[number] = slot  # last in order: asked for last
            while len(self._slots) > TICKETS_MOST:
                del self._slots[next(iter(self._slots))]
            return slot


def shared_tickets() -> SharedTickets:
    """Return the tickets of this process."""
    if _EXTENSION not in current_app.extensions:
        current_app.extensions.setdefault(_EXTENSION, SharedTickets(container().sessions))
    tickets: SharedTickets = current_app.extensions[_EXTENSION]
    return tickets


class TicketRegions:
    """Keeps the ticket of one page up to date over a stream. Needs an app and a request context to render in."""

    def __init__(self, tickets: SharedTickets, number: int, staff_id: UUID) -> None:
        self._tickets = tickets
        self._number = number
        self._staff_id = staff_id
        self._key: str | None = None

    def news(self, events: Sequence[EventFact]) -> str:
        """Return what these events of the ticket, in order, change on the page, as `<hx-partial>` regions."""
        if not events:
            return ""
        reading = self._tickets.newest(self._number, events[-1].seq, staff_id=self._staff_id)
        changed = dirty({event.type for event in events})
        markup = reading.regions([region for region in changed if region not in _OWN])
        if reading.key == self._key:
            return markup
        self._key = reading.key
        return markup + self._own(reading.page)

    def _own(self, page: TicketPage) -> str:
        with self._tickets.sessions() as session:
            composer = composer_of(session, page.ticket_id, self._staff_id)
        return render_regions(replace(page, composer=composer), [region for region in Region if region in _OWN])
