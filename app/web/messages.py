"""What a customer said, written down by a person on the ticket's page."""

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.httpkit.auth import current_staff, staff_required
from app.httpkit.container import container
from app.httpkit.htmx import answer, partial
from app.httpkit.language import gettext as _
from app.httpkit.language import say
from app.ids import new_id
from app.intake.fields import InvalidFields, parse_key
from app.intake.keys import KeyReused
from app.intake.messages import ReceivedMessage, receive_message
from app.review.ticket_page import ticket_id_of, ticket_page
from app.web.ticket_regions import Region, record_context, render_notice, render_regions

blueprint = Blueprint("messages", __name__, url_prefix="/tickets/<int:number>")

_FRESH = (Region.HEAD, Region.TIMELINE, Region.SIDE)
"""Desk and actions come by the stream, which leaves an editor with a person's own words alone."""


@blueprint.post("/messages")
@staff_required
def record(number: int) -> Response:
    """Take in what the customer said, as a message of theirs; what can't be taken stays in the form."""
    typed, key = request.form.get("content", "").replace("\r\n", "\n"), request.form.get("idempotency_key", "")
    try:
        received = _receive(number, parse_key(key), typed)
    except InvalidFields as error:
        faults = {fault.field: _(fault.message, **fault.values) for fault in error.errors}
        return answer(_form(number, typed=typed, key=key or new_id().hex, errors=faults), error.status)
    except KeyReused as error:
        # The form was changed after it had been taken: what is typed now is another message.
        return answer(_form(number, typed=typed, key=new_id().hex, errors={"": say(error)}), error.status)
    with container().transaction() as session:
        page = ticket_page(session, number, staff_id=current_staff().id)
    follow_up = received.ticket_number if received.follow_up else None
    form = _form(number, key=new_id().hex, recorded=True, follow_up=follow_up)
    return answer(form + render_notice(number) + render_regions(page, _FRESH))


def _receive(number: int, key: str, typed: str) -> ReceivedMessage:
    parts, staff_id = container(), current_staff().id
    with parts.transaction() as session:
        return receive_message(
            session,
            source=f"staff:{staff_id}",
            key=key,
            ticket_id=ticket_id_of(session, number),
            body=typed,
            plan=parts.run_plan(),
            window=parts.message_window,
            staff_id=staff_id,
        )


def _form(number: int, **filled: object) -> str:
    context = record_context(number) | filled
    return partial("#record-place", render_template("tickets/_record.html", **context), swap="innerHTML")
