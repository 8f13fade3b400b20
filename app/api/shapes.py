"""The JSON that leaves: fields are added here, never renamed or taken away within v1."""

from datetime import datetime
from typing import Self
from uuid import UUID

from flask import url_for
from pydantic import BaseModel, ConfigDict

from app.intake.messages import ReceivedMessage
from app.intake.service import Received
from app.review.contract import StoredDraft
from app.runs.queries import RunRow, StepRow
from app.tickets.queries import MessageRow, TicketRow


class Shape(BaseModel):
    """Base of the shapes: made from the rows of queries by field name."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class ReceivedShape(Shape):
    """The answer to a new ticket; `created` is false for a repeated key."""

    id: UUID
    number: int
    run_id: UUID
    created: bool
    url: str
    events_url: str

    @classmethod
    def of(cls, received: Received) -> Self:
        """Return the shape, with the addresses to follow."""
        return cls(
            id=received.ticket_id,
            number=received.number,
            run_id=received.run_id,
            created=received.created,
            url=url_for("api_tickets.show", ref=str(received.number)),
            events_url=url_for("api_runs.events", run_id=received.run_id),
        )


class FollowUpShape(Shape):
    """The ticket that goes on from one which had been closed for too long."""

    id: UUID
    number: int
    url: str


class ReceivedMessageShape(Shape):
    """The answer to a message: the ticket written to, the message's number, the run that answers it.

    `follow_up` is the ticket that the message went to instead, if it did.
    """

    id: UUID
    ticket_id: UUID
    ticket_number: int
    number: int
    run_id: UUID | None
    created: bool
    follow_up: FollowUpShape | None
    url: str
    events_url: str | None

    @classmethod
    def of(cls, addressed: TicketRow, received: ReceivedMessage) -> Self:
        """Return the shape, with the addresses to follow."""
        url = url_for("api_tickets.show", ref=str(received.ticket_number))
        follow_up = FollowUpShape(id=received.ticket_id, number=received.ticket_number, url=url)
        return cls(
            id=received.message_id,
            ticket_id=addressed.id,
            ticket_number=addressed.number,
            number=received.number,
            run_id=received.run_id,
            created=received.created,
            follow_up=follow_up if received.follow_up else None,
            url=url,
            events_url=url_for("api_runs.events", run_id=received.run_id) if received.run_id else None,
        )


class MovedShape(Shape):
    """Who was first, to what, and when. `by` names a person, a token or a command; null where it went by itself."""

    to: str
    by: str | None
    at: datetime


class RunBrief(Shape):
    """A run in a list of tickets."""

    id: UUID
    status: str


class TicketShape(Shape):
    """A ticket in a list, with its newest run."""

    id: UUID
    number: int
    customer_id: str
    channel: str
    subject: str
    status: str
    priority: str | None
    category: str | None
    created_at: datetime
    resolved_at: datetime | None
    run: RunBrief | None = None

    @classmethod
    def of(cls, row: TicketRow, run: RunRow | None) -> Self:
        """Return the shape."""
        return cls.model_validate(row).model_copy(update={"run": RunBrief.model_validate(run) if run else None})


class TicketList(Shape):
    """A page of tickets; `next` is the address of the page after it, null on the last one."""

    tickets: tuple[TicketShape, ...]
    next: str | None


class MessageShape(Shape):
    """A message of the customer, or our reply."""

    number: int
    kind: str
    body: str
    created_at: datetime


class TicketDetail(TicketShape):
    """A ticket with its conversation."""

    messages: tuple[MessageShape, ...] = ()

    @classmethod
    def whole(cls, row: TicketRow, run: RunRow | None, messages: tuple[MessageRow, ...]) -> Self:
        """Return the shape."""
        said = tuple(MessageShape.model_validate(message) for message in messages)
        return cls.of(row, run).model_copy(update={"messages": said})


class StepShape(Shape):
    """A step of a run."""

    number: int
    skill: str
    summary: str | None
    error_code: str | None
    started_at: datetime
    ended_at: datetime | None


class CitationShape(Shape):
    """A passage that a draft used."""

    ref: str
    doc_title: str
    doc_version: int
    heading: str
    text: str


class DraftShape(Shape):
    """A draft; it has not been sent to anyone."""

    text: str
    confidence: float
    warning: str | None
    citations: tuple[CitationShape, ...]


class RunShape(Shape):
    """A run with its steps and its newest draft."""

    id: UUID
    ticket_id: UUID
    status: str
    planner: str
    retry_from: UUID | None
    tokens_in: int
    tokens_out: int
    cost_micro: int
    error_code: str | None
    error_message: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    steps: tuple[StepShape, ...] = ()
    draft: DraftShape | None = None

    @classmethod
    def of(cls, row: RunRow, steps: tuple[StepRow, ...], stored: StoredDraft | None) -> Self:
        """Return the shape."""
        taken = tuple(StepShape.model_validate(step) for step in steps)
        draft = DraftShape.model_validate(stored.draft) if stored else None
        return cls.model_validate(row).model_copy(update={"steps": taken, "draft": draft})
