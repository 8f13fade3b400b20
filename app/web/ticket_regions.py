"""The regions of a ticket page. The page includes them, the stream and every action send them: one template each."""

import hashlib
from collections.abc import Collection
from dataclasses import asdict, dataclass
from enum import StrEnum

from flask import render_template

from app.delivery.channels import channel_for
from app.httpkit.auth import current_staff
from app.httpkit.htmx import partial
from app.httpkit.language import gettext
from app.ids import new_id
from app.intake.fields import CONTENT_MAX
from app.review.contract import Seen
from app.review.run_view import RunView
from app.review.ticket_view import Phase, TicketPage
from app.runs.models import EventType
from app.web import failure_words, moved_words, ticket_words
from app.web.browser_findings import browser_findings


class Region(StrEnum):
    """A part of the page by the id of its root element; its template is `tickets/_<name>.html`."""

    HEAD = "ticket-head"
    TIMELINE = "timeline"
    DESK = "desk"
    ACTIONS = "actions"
    SIDE = "ticket-side"


ALL = tuple(Region)
_WORK = frozenset({Region.HEAD, Region.TIMELINE, Region.DESK, Region.ACTIONS, Region.SIDE})
_STEP = frozenset({Region.HEAD, Region.TIMELINE, Region.DESK, Region.ACTIONS})
DIRTY: dict[str, frozenset[Region]] = {
    EventType.STEP_STARTED: _STEP,
    EventType.STEP_COMPLETED: _STEP,
    EventType.STEP_FAILED: _STEP,
    EventType.RUN_STARTED: _STEP,
}
"""What an event changes; one that is not named changes everything."""

_TEMPLATES = {region: f"tickets/_{region.removeprefix('ticket-')}.html" for region in Region}
_EDITABLE = (Phase.REVIEW, Phase.ESCALATED)


def dirty(types: Collection[str]) -> tuple[Region, ...]:
    """Return the regions that events of these types change, in the order of the page."""
    touched = frozenset[Region]().union(*(DIRTY.get(type_, _WORK) for type_ in types))
    return tuple(region for region in Region if region in touched)


def render_regions(page: TicketPage, regions: Collection[Region] = ALL) -> str:
    """Return regions as `<hx-partial>`, each replacing the element of its id."""
    context = page_context(page)
    return "".join(partial(f"#{region}", render_template(_TEMPLATES[region], **context)) for region in regions)


def render_notice(number: int, words: str = "", kind: str = "conflict") -> str:
    """Return the place where the page says why an action was refused; without words it is empty again."""
    return partial("#notice", render_template("tickets/_notice.html", message=words, kind=kind, number=number))


def page_context(page: TicketPage) -> dict[str, object]:
    """Return what the templates of a ticket page are rendered with."""
    editor = editor_of(page)
    return {
        "page": page,
        "run": page.run,
        "phase": page.phase,
        "state_key": state_key(page),
        "notice": moved_words.notice(page),
        "editor": editor,
        "findings": browser_findings(editor.text) if editor else (),
        "words": ticket_words,
        "failure": failure_words,
        "moved": moved_words,
        "delivery_note": delivery_note(page.channel),
        "staff": current_staff(),
    }


def record_context(number: int) -> dict[str, object]:
    """Return what the empty form for a message of the customer is rendered with."""
    return {"number": number, "key": new_id().hex, "typed": "", "errors": {}, "longest": CONTENT_MAX}


def delivery_note(ticket_channel: str) -> str:
    """Return what to know of how a reply reaches the customer; nothing where it goes the way they wrote."""
    channel = channel_for(ticket_channel)
    if channel is None or ticket_channel not in channel.stands_in_for:
        return ""
    return gettext("Nothing goes out by this channel yet; the reply can be read in the product and through the API.")


@dataclass(frozen=True, slots=True)
class Editor:
    """The reply editor: the text in it, the draft it began with, what the page has seen, and the key of its approval.

    `kept` is an older text of the person that the newest draft has not replaced; it is offered, not put in.
    """

    run: RunView
    text: str
    draft: str
    kept: str | None
    seen: Seen
    key: str

    @property
    def fields(self) -> dict[str, str]:
        """What the form carries back: all that was seen, and the key."""
        seen = {name: "" if value is None else str(value) for name, value in asdict(self.seen).items()}
        return seen | {"key": self.key}


def editor_of(page: TicketPage) -> Editor | None:
    """Return the editor that this state of the page has, or None when there is nothing to edit."""
    run = page.run
    if run is None or page.seen is None or page.phase not in _EDITABLE or not (run.draft or run.manual):
        return None
    draft = run.draft.draft.text if run.draft else ""
    born = run.draft.created_at if run.draft else run.created_at
    typed = page.composer
    goes_on = typed is not None and (run.manual or typed.updated_at > born)
    return Editor(
        run=run,
        text=typed.body if typed and goes_on else draft,
        draft=draft,
        kept=typed.body if typed and not goes_on and typed.body.strip() != draft.strip() else None,
        seen=page.seen,
        key=new_id().hex,
    )


def state_key(page: TicketPage) -> str:
    """Return a key of what desk and action bar show: the same key means that there is nothing to replace."""
    run = page.run
    parts = (
        page.phase,
        page.open,
        run and run.id,
        run and run.drafting,
        run and run.draft and run.draft.id,
        run and run.reply and run.reply.state,
        page.last_customer_message_id,
        page.last_reply_id,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
