"""The ticket page."""

from typing import TypeVar

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.agent.values import Category, Priority
from app.errors import Conflict, InvalidInput
from app.httpkit.auth import current_staff, staff_required
from app.httpkit.container import container
from app.httpkit.htmx import answer
from app.httpkit.language import say
from app.ids import parse_id
from app.review.ticket_class import set_class
from app.review.ticket_page import ticket_id_of, ticket_page
from app.review.ticket_state import CHOICES, SeenTicket, set_ticket_status
from app.tickets.lifecycle import TicketMoved
from app.tickets.models import TicketStatus
from app.web import moved_words
from app.web.inbox_regions import list_view
from app.web.ticket_regions import ALL, Region, page_context, record_context, render_notice, render_regions

C = TypeVar("C", Category, Priority)
blueprint = Blueprint("tickets", __name__, url_prefix="/tickets")


@blueprint.get("/<int:number>")
@staff_required
def show(number: int) -> Response:
    """Show a ticket beside its list."""
    with container().transaction() as session:
        page = ticket_page(session, number, staff_id=current_staff().id)
        inbox = list_view(session, request.args, selected=page.ticket_id)
    return answer(render_template("tickets/show.html", inbox=inbox, **page_context(page), **record_context(number)))


@blueprint.get("/<int:number>/regions")
@staff_required
def regions(number: int) -> Response:
    """Return every region of the page anew: for someone whose editor held an older state."""
    with container().transaction() as session:
        page = ticket_page(session, number, staff_id=current_staff().id)
    return answer(render_notice(number) + render_regions(page))


@blueprint.post("/<int:number>/class")
@staff_required
def classify(number: int) -> Response:
    """Set or confirm priority and category; what the person saw is shown anew when it has moved on."""
    form = request.form
    version = form.get("version", "")
    if not (version.isascii() and version.isdigit() and len(version) < 10):
        raise InvalidInput("The form is not complete. Reload the page and try again.", field="version")
    refused = ""
    try:
        with container().transaction() as session:
            set_class(
                session,
                ticket_id=ticket_id_of(session, number),
                staff_id=current_staff().id,
                seen_version=int(version),
                priority=_choice(Priority, "priority"),
                category=_choice(Category, "category"),
                confirm="confirm" in form,
            )
    except Conflict as error:
        refused = say(error)
    with container().transaction() as session:
        page = ticket_page(session, number, staff_id=current_staff().id)
    regions = render_regions(page, (Region.HEAD, Region.TIMELINE))
    return answer(render_notice(number, refused, "invalid") + regions, 409 if refused else 200)


@blueprint.post("/<int:number>/status")
@staff_required
def move(number: int) -> Response:
    """Resolve a ticket without a reply, close it, mark it as spam, or open it again; 409 says what came first."""
    target = request.form.get("status", "")
    if target not in CHOICES:
        raise InvalidInput("There is no such choice.", field="status")
    seen = SeenTicket(request.form.get("seen_status", ""), parse_id(request.form.get("seen_message", "")))
    refused = ""
    try:
        with container().transaction() as session:
            set_ticket_status(
                session,
                ticket_id=ticket_id_of(session, number),
                target=TicketStatus(target),
                staff_id=current_staff().id,
                seen=seen,
            )
    except TicketMoved as error:
        refused = moved_words.refused(error)
    except Conflict as error:
        refused = say(error)
    with container().transaction() as session:
        page = ticket_page(session, number, staff_id=current_staff().id)
    shown = (Region.HEAD, Region.TIMELINE) if refused else ALL
    return answer(render_notice(number, refused) + render_regions(page, shown), 409 if refused else 200)


def _choice(values: type[C], name: str) -> C | None:
    """Return a field's value, None when it is left as it is. Raises InvalidInput for one that there is not."""
    chosen = request.form.get(name, "")
    if chosen and chosen not in {value.value for value in values}:
        raise InvalidInput("There is no such choice.", field=name)
    return values(chosen) if chosen else None
