"""A new ticket by hand: what a customer said on the phone or at a desk."""

from flask import Blueprint, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.httpkit.auth import current_staff, staff_required
from app.httpkit.container import container
from app.httpkit.htmx import answer
from app.httpkit.language import gettext as _
from app.httpkit.language import say
from app.ids import new_id
from app.intake import fields
from app.intake.fields import InvalidFields, parse_key, parse_new_ticket
from app.intake.keys import KeyReused
from app.intake.service import receive_ticket

blueprint = Blueprint("new_ticket", __name__, url_prefix="/tickets")

LIMITS = {
    "customer_id": fields.CUSTOMER_ID_MAX,
    "customer_name": fields.CUSTOMER_NAME_MAX,
    "subject": fields.SUBJECT_MAX,
    "content": fields.CONTENT_MAX,
}


@blueprint.get("/new")
@staff_required
def new() -> Response:
    """Show the empty form. Its key makes a second click, or a reload after it, find the first ticket again."""
    return _form({"channel": fields.Channel.WEB.value}, key=new_id().hex)


@blueprint.post("/new")
@staff_required
def create() -> Response:
    """Take the ticket in and open it."""
    typed = {name: request.form.get(name, "").replace("\r\n", "\n") for name in fields.FIELDS}
    raw_key = request.form.get("idempotency_key", "")
    try:
        key, ticket = parse_key(raw_key), parse_new_ticket(typed)
        with container().transaction() as session:
            plan = container().run_plan(by=current_staff().id)
            received = receive_ticket(session, source=_source(), key=key, new=ticket, plan=plan)
    except InvalidFields as error:
        faults = {fault.field: _(fault.message, **fault.values) for fault in error.errors}
        return _form(typed, key=raw_key or new_id().hex, errors=faults)
    except KeyReused as error:
        # The form was changed after it had been taken: what is typed now is another ticket.
        return _form(typed, key=new_id().hex, errors={"": say(error)})
    if received.created:
        flash(_("Ticket #%(number)s was taken in.", number=received.number), "ok")
    return redirect(url_for("tickets.show", number=received.number), 303)


def _source() -> str:
    return f"staff:{current_staff().id}"


def _form(typed: dict[str, str], *, key: str, errors: dict[str, str] | None = None) -> Response:
    page = render_template(
        "tickets/new.html", typed=typed, key=key, errors=errors or {}, limits=LIMITS, channels=fields.Channel
    )
    return answer(page, 422 if errors else 200)
