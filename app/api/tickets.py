"""Tickets: take one in, look at one, list them."""

from collections.abc import Collection, Iterable
from uuid import UUID

from flask import Response, request, url_for
from sqlalchemy.orm import Session

from app.api.entry import api_blueprint, holder, json_answer, json_object
from app.api.shapes import ReceivedShape, TicketDetail, TicketList, TicketShape
from app.errors import NotFound
from app.httpkit.container import container
from app.ids import parse_id
from app.intake.fields import FIELDS, FieldError, InvalidFields, NewTicket, parse_key, parse_new_ticket
from app.intake.service import receive_ticket
from app.msgids import msgid
from app.runs.queries import newest_runs
from app.tickets.models import TicketStatus
from app.tickets.queries import TicketRow, conversation, ticket_row, tickets_newest_first

PAGE, PAGE_MAX = 50, 100
KEY = "idempotency_key"
_NUMBER_MAX = 2**63 - 1

bp = api_blueprint("tickets")


@bp.post("/tickets")
def create() -> Response:
    """Take a ticket in: 201, or 200 with the one that an earlier request with this key made."""
    key, new = _request_of(json_object())
    parts = container()
    with parts.transaction() as session:
        # The prefix keeps a token's keys apart from those of our own pages, whatever its source is called.
        source = f"api:{holder().source}"
        received = receive_ticket(session, source=source, key=key, new=new, plan=parts.run_plan())
    shape = ReceivedShape.of(received)
    return json_answer(shape, 201 if received.created else 200, Location=shape.url)


@bp.get("/tickets/<ref>")
def show(ref: str) -> Response:
    """Show a ticket by its number or id."""
    with container().sessions() as session:
        row = ticket_of(session, ref)
        run = newest_runs(session, [row.id]).get(row.id)
        return json_answer(TicketDetail.whole(row, run, conversation(session, row.id)))


@bp.get("/tickets")
def index() -> Response:
    """List tickets, newest first: `status`, `limit` (1 to 100), `before` (a number, from `next`)."""
    status = _status()
    limit, before = _whole("limit", PAGE, PAGE_MAX), _whole("before", _NUMBER_MAX, _NUMBER_MAX)
    with container().sessions() as session:
        rows = tickets_newest_first(session, before=before, status=status, limit=limit + 1)
        page, more = rows[:limit], len(rows) > limit
        runs = newest_runs(session, [row.id for row in page])
    following = url_for(".index", before=page[-1].number, limit=limit, status=status) if more else None
    tickets = tuple(TicketShape.of(row, runs.get(row.id)) for row in page)
    return json_answer(TicketList(tickets=tickets, next=following))


def _request_of(fields: dict[str, object]) -> tuple[str, NewTicket]:
    """Return key and ticket. Raises InvalidFields that names every fault at once."""
    faults = unknown_fields(fields, (*FIELDS, KEY))
    key = new = None
    try:
        new = parse_new_ticket(fields)
    except InvalidFields as refused:
        faults += refused.errors
    try:
        key = parse_key(key_of(fields))
    except InvalidFields as refused:
        faults += refused.errors
    if key is None or new is None or faults:
        raise InvalidFields(tuple(faults))
    return key, new


def unknown_fields(fields: Iterable[str], known: Collection[str]) -> list[FieldError]:
    """Return a fault for each field that there is not, so that a mistyped name does not go unnoticed."""
    return [FieldError(name, msgid("There is no such field.")) for name in sorted(fields) if name not in known]


def key_of(fields: dict[str, object]) -> object:
    """Return the idempotency key as it was sent, in header or body. Raises InvalidFields when they differ."""
    header, body = request.headers.get("Idempotency-Key"), fields.get(KEY)
    if header is not None and body is not None and header != body:
        raise InvalidFields((FieldError(KEY, msgid("Header and body name different keys.")),))
    return body if header is None else header


def ticket_of(session: Session, ref: str) -> TicketRow:
    """Return the ticket with this number or id. Raises NotFound."""
    row = ticket_row(session, _reference(ref))
    if row is None:
        raise NotFound("There is no such ticket.")
    return row


def _reference(ref: str) -> UUID | int:
    if ref.isascii() and ref.isdigit() and len(ref) < 19:
        return int(ref)
    ticket_id = parse_id(ref)
    if ticket_id is None:
        raise NotFound("There is no such ticket.")
    return ticket_id


def _status() -> TicketStatus | None:
    name = request.args.get("status")
    if name is None:
        return None
    if name not in tuple(TicketStatus):
        fault = FieldError("status", msgid("Choose one of: %(choices)s."), {"choices": ", ".join(TicketStatus)})
        raise InvalidFields((fault,))
    return TicketStatus(name)


def _whole(name: str, default: int, most: int) -> int:
    text = request.args.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 1 <= int(text) <= most):
        message = msgid("Give a whole number from %(least)s to %(most)s.")
        raise InvalidFields((FieldError(name, message, {"least": 1, "most": most}),))
    return int(text)
