"""GET /live: the one stream of a page. It feeds the regions of a ticket, the rows of the list, or the documents.

Facts come as hints; what they change is read once a batch and sent as `<hx-partial>` regions, each replacing the
element of its id, so that a replay never doubles. The id of a message is the number of the thread's newest event.
While Redis is away the server reads PostgreSQL every second by itself; the page notices nothing and never polls.
"""

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

from flask import Blueprint, Response, render_template, request
from werkzeug.wrappers import Response as BaseResponse

from app.clock import monotonic
from app.db.signals import EventFact
from app.httpkit.auth import SignedOut, StaffUser, current_staff, require
from app.httpkit.container import container
from app.httpkit.errors import error_answer
from app.httpkit.htmx import partial
from app.httpkit.language import say
from app.httpkit.sse import HEARTBEAT, RECONNECT_MS, event_stream, frame, last_event_id
from app.ids import parse_id
from app.live.hub import Batch, DraftFrame, Subscription
from app.live.thread_reader import ThreadReader
from app.review.ticket_page import ThreadOf, thread_of
from app.runs.events import events_after
from app.staff.models import Role
from app.web.inbox_regions import filter_from
from app.web.knowledge_regions import KnowledgeRegions
from app.web.shared_lists import InboxRegions, shared_lists
from app.web.shared_tickets import TicketRegions, shared_tickets

blueprint = Blueprint("live", __name__)

HEARTBEAT_S = 15.0
FALLBACK_S = 1.0
LIFE_S = 900.0
"""A stream ends cleanly after this; the page comes back with Last-Event-ID, and who it is gets checked again."""


@blueprint.get("/live")
def stream() -> Response:
    """Open the stream of a page: `?ticket=&after=&list=` and the list's filter, or `?knowledge=1&docs=`.

    Raises SignedOut (401, never a redirect: a stream would follow it), Forbidden, NotFound.
    """
    staff = current_staff()
    if "knowledge" in request.args:
        require(Role.SUPERVISOR)
    ticket_id = parse_id(request.args.get("ticket", ""))
    thread: ThreadOf | None = None
    if ticket_id is not None:
        with container().transaction() as session:
            thread = thread_of(session, ticket_id)
    after = last_event_id(request.headers.get("Last-Event-ID"), request.args.get("after"))
    return event_stream(_Page(staff, thread, after).frames())


@blueprint.errorhandler(SignedOut)
def signed_out(error: SignedOut) -> BaseResponse:
    """Answer 401 whoever asks, where pages are sent to the sign-in."""
    return error_answer(error.status, error.code, say(error))


class _Page:
    """One open page: what it shows, and how far it has been told."""

    def __init__(self, staff: StaffUser, thread: ThreadOf | None, after: int) -> None:
        self._thread = thread
        parts = container()
        self._reader = ThreadReader(parts.redis, _history, thread.thread_id, after) if thread else None
        self._ticket = TicketRegions(shared_tickets(), thread.number, staff.id) if thread else None
        knowledge = "knowledge" in request.args
        self._docs = KnowledgeRegions(request.args.get("docs")) if knowledge else None
        shown = filter_from(request.args)
        self._inbox = (
            None
            if knowledge
            else InboxRegions(
                shared_lists(),
                shown,
                selected=thread.ticket_id if thread else None,
                seen=request.args.get("list"),
            )
        )
        self._ends_at = monotonic() + LIFE_S

    def frames(self) -> Iterator[str]:
        """Yield frames until the stream's time is over or the page goes away; holds no database session meanwhile."""
        hub = container().hub
        with hub.subscribe(self._thread.thread_id if self._thread else None) as subscription:
            batch = Batch(reread=True, heard=monotonic())
            quiet_since = monotonic()
            while monotonic() < self._ends_at:
                sent = list(self._news(batch))
                if sent:
                    quiet_since = monotonic()
                    yield from sent
                elif monotonic() - quiet_since >= HEARTBEAT_S:
                    quiet_since = monotonic()
                    yield HEARTBEAT
                batch = self._wait(subscription, connected=hub.connected)

    def _wait(self, subscription: Subscription, *, connected: bool) -> Batch:
        list_due = self._inbox.due_in if self._inbox else None
        if connected:
            # While the list waits for its next reading, what happens elsewhere can wait with it.
            return subscription.take(HEARTBEAT_S if list_due is None else list_due, for_others=list_due is None)
        batch = subscription.take(FALLBACK_S)
        return replace(batch, reread=True, heard=monotonic())

    def _news(self, batch: Batch) -> Iterator[str]:
        if batch.draft is not None:
            yield frame(_draft(batch.draft))
        events = self._events(batch)
        ticket = self._ticket.news(events) if self._ticket else ""
        markup = ticket + self._list(batch) + self._documents(batch)
        if markup:
            yield frame(markup, event_id=self._reader.last if self._reader else None, retry_ms=RECONNECT_MS)

    def _events(self, batch: Batch) -> list[EventFact]:
        if self._reader is None or self._thread is None:
            return []
        newest = max((hint.seq for hint in batch.hints if hint.thread_id == self._thread.thread_id), default=0)
        return self._reader.read(at_least=newest) if newest or batch.reread else []

    def _list(self, batch: Batch) -> str:
        if self._inbox is None:
            return ""
        if batch.reread:
            self._inbox.note(batch.heard)
        if batch.hints:
            self._inbox.note(batch.heard, {hint.ticket_id for hint in batch.hints})
        return self._inbox.news()

    def _documents(self, batch: Batch) -> str:
        if self._docs is None or not (batch.docs or batch.reread):
            return ""
        with container().sessions() as session:
            return self._docs.catch_up(session) if batch.reread else self._docs.changed(session, batch.docs)


def _history(thread_id: UUID, after: int) -> list[EventFact]:
    with container().sessions() as session:
        return events_after(session, thread_id, after)


def _draft(draft: DraftFrame) -> str:
    """Return the draft in the making: no id, for it is not stored, and the whole text, so that none is missed."""
    return partial(
        f"#draft-live-{draft.run_id}", render_template("tickets/_draft_live.html", run_id=draft.run_id, text=draft.text)
    )
