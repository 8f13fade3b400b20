"""What the customer of a ticket writes, and what becomes of the ticket as a whole."""

from flask import Response
from werkzeug.wrappers import Response as BaseResponse

from app.api.entry import api_blueprint, holder, json_answer, json_object, moved_answer
from app.api.shapes import ReceivedMessageShape, TicketShape
from app.api.tickets import KEY, key_of, ticket_of, unknown_fields
from app.httpkit.container import container
from app.httpkit.language import gettext
from app.intake.fields import FieldError, InvalidFields, message_text, parse_key
from app.intake.messages import receive_message
from app.msgids import msgid
from app.review.ticket_state import CHOICES, set_ticket_status
from app.runs.queries import newest_runs
from app.tickets.lifecycle import TicketMoved
from app.tickets.models import TicketStatus

_STATUS = {
    TicketStatus.PENDING: msgid("pending"),
    TicketStatus.PROCESSING: msgid("being worked on"),
    TicketStatus.WAITING_FOR_CUSTOMER: msgid("waiting for the customer"),
    TicketStatus.RESOLVED: msgid("resolved"),
    TicketStatus.CLOSED: msgid("closed"),
    TicketStatus.SPAM: msgid("spam"),
}

bp = api_blueprint("messages")


@bp.post("/tickets/<ref>/messages")
def create(ref: str) -> Response:
    """Take in what the customer wrote: 201, or 200 with what an earlier request with this key brought."""
    key, body = _message_of(json_object())
    parts = container()
    with parts.transaction() as session:
        addressed = ticket_of(session, ref)
        received = receive_message(
            session,
            source=f"api:{holder().source}",
            key=key,
            ticket_id=addressed.id,
            body=body,
            plan=parts.run_plan(),
            window=parts.message_window,
            token=holder().name,
        )
    shape = ReceivedMessageShape.of(addressed, received)
    return json_answer(shape, 201 if received.created else 200)


@bp.post("/tickets/<ref>/status")
def move(ref: str) -> BaseResponse:
    """Resolve a ticket without a reply, close it, mark it as spam, or open it again; 409 when that can't be."""
    target = _target_of(json_object())
    try:
        with container().transaction() as session:
            ticket_id = ticket_of(session, ref).id
            set_ticket_status(session, ticket_id=ticket_id, target=target, staff_id=None, token=holder().name)
    except TicketMoved as error:
        return moved_answer(error, _can_not_be(error, target))
    with container().sessions() as session:
        row = ticket_of(session, str(ticket_id))
        return json_answer(TicketShape.of(row, newest_runs(session, [ticket_id]).get(ticket_id)))


def _message_of(fields: dict[str, object]) -> tuple[str, str]:
    """Return key and text. Raises InvalidFields that names every fault at once."""
    faults = unknown_fields(fields, ("content", KEY))
    key = body = None
    try:
        body = message_text(fields.get("content"))
    except InvalidFields as refused:
        faults += refused.errors
    try:
        key = parse_key(key_of(fields))
    except InvalidFields as refused:
        faults += refused.errors
    if key is None or body is None or faults:
        raise InvalidFields(tuple(faults))
    return key, body


def _can_not_be(error: TicketMoved, target: TicketStatus) -> str:
    """Say which move there is not: who asks names no status that they saw, so nobody was faster than they."""
    source = TicketStatus(error.ticket_status)
    values = {"target": gettext(_STATUS[target]), "source": gettext(_STATUS[source])}
    return gettext("A ticket can't become %(target)s from %(source)s.", **values)


def _target_of(fields: dict[str, object]) -> TicketStatus:
    faults = unknown_fields(fields, ("status",))
    wanted = fields.get("status")
    if not isinstance(wanted, str) or wanted not in CHOICES:
        faults.append(FieldError("status", msgid("Choose one of: %(choices)s."), {"choices": ", ".join(CHOICES)}))
    if faults:
        raise InvalidFields(tuple(faults))
    return TicketStatus(str(wanted))
