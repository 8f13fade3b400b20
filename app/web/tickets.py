"""The ticket page."""

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.httpkit.auth import current_staff, staff_required
from app.httpkit.container import container
from app.httpkit.htmx import answer
from app.review.ticket_page import ticket_page
from app.web.inbox_regions import list_view
from app.web.ticket_regions import page_context, render_notice, render_regions

blueprint = Blueprint("tickets", __name__, url_prefix="/tickets")


@blueprint.get("/<int:number>")
@staff_required
def show(number: int) -> Response:
    """Show a ticket beside its list."""
    with container().transaction() as session:
        page = ticket_page(session, number, staff_id=current_staff().id)
        inbox = list_view(session, request.args, selected=page.ticket_id)
    return answer(render_template("tickets/show.html", inbox=inbox, **page_context(page)))


@blueprint.get("/<int:number>/regions")
@staff_required
def regions(number: int) -> Response:
    """Return every region of the page anew: for someone whose editor held an older state."""
    with container().transaction() as session:
        page = ticket_page(session, number, staff_id=current_staff().id)
    return answer(render_notice(number) + render_regions(page))
