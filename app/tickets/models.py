"""Customers, tickets, what was said on them, and their threads."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, Identity, Index, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, Key


class TicketStatus(StrEnum):
    """Where a ticket stands."""

    PENDING = "pending"
    PROCESSING = "processing"
    WAITING_FOR_CUSTOMER = "waiting_for_customer"
    RESOLVED = "resolved"
    CLOSED = "closed"
    SPAM = "spam"


DONE = frozenset({TicketStatus.RESOLVED, TicketStatus.CLOSED, TicketStatus.SPAM})
"""Nothing is left to answer."""


class MessageKind(StrEnum):
    """Who speaks: the customer, we to the customer, or we among ourselves."""

    CUSTOMER = "customer"
    REPLY = "reply"
    NOTE = "note"


class SetBy(StrEnum):
    """Who set a value; an agent run never overwrites what a person set."""

    AI = "ai"
    PERSON = "person"


class Customer(Base):
    """Who writes. `external_id` is the number that the source systems know the customer by."""

    __tablename__ = "customers"

    id: Mapped[Key]
    external_id: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    created_at: Mapped[CreatedAt]


class Ticket(Base):
    """One request of a customer. `version` grows with every change that a page may have missed.

    `moved_by` and `moved_at` tell of the last move by `lifecycle`: who, None when no person did it, and when.
    `reply_crossed_at` is set while the newest message crossed with a reply that was already leaving; `follow_up_of` is
    the closed ticket that this one goes on from.
    """

    __tablename__ = "tickets"
    __table_args__ = (
        Index("ix_tickets_status", "status", "last_customer_message_at", "id"),
        Index("ix_tickets_customer_id", "customer_id"),
        Index(
            "ix_tickets_resting",
            text("coalesce(resolved_at, last_customer_message_at) DESC"),
            "id",
            postgresql_where=text("status IN ('resolved', 'closed', 'spam')"),
        ),
        Index("ix_tickets_follow_up_of", "follow_up_of", postgresql_where=text("follow_up_of IS NOT NULL")),
    )

    id: Mapped[Key]
    number: Mapped[int] = mapped_column(BigInteger, Identity(start=1001), unique=True)
    customer_id: Mapped[UUID] = mapped_column(ForeignKey("customers.id"))
    channel: Mapped[str]
    subject: Mapped[str]
    status: Mapped[str] = mapped_column(default=TicketStatus.PENDING)
    moved_by: Mapped[UUID | None] = mapped_column(ForeignKey("staff.id"))
    moved_at: Mapped[datetime | None]
    priority: Mapped[str | None]
    priority_set_by: Mapped[str | None]
    category: Mapped[str | None]
    category_set_by: Mapped[str | None]
    confidence: Mapped[float | None]
    escalated_at: Mapped[datetime | None]
    escalation_reason: Mapped[str | None]
    last_customer_message_id: Mapped[UUID | None]
    last_customer_message_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_reply_id: Mapped[UUID | None]
    reply_crossed_at: Mapped[datetime | None]
    follow_up_of: Mapped[UUID | None] = mapped_column(ForeignKey("tickets.id"))
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[CreatedAt]
    resolved_at: Mapped[datetime | None]


class TicketMessage(Base):
    """What was said, in order: (ticket, number). A reply names the sent artifact that it is.

    `staff_id` is who wrote it; of a customer's message, who wrote down what the customer said.
    """

    __tablename__ = "ticket_messages"
    __table_args__ = (UniqueConstraint("ticket_id", "number"),)

    id: Mapped[Key]
    ticket_id: Mapped[UUID] = mapped_column(ForeignKey("tickets.id"))
    number: Mapped[int]
    kind: Mapped[str]
    body: Mapped[str]
    staff_id: Mapped[UUID | None] = mapped_column(ForeignKey("staff.id"))
    artifact_id: Mapped[UUID | None] = mapped_column(unique=True)
    created_at: Mapped[CreatedAt]


class Thread(Base):
    """The long context of a ticket, one to one. `last_seq` numbers its events, `published_seq` is how far the stream
    has them; where it lags the sweep publishes again."""

    __tablename__ = "threads"
    __table_args__ = (Index("ix_threads_unpublished", "id", postgresql_where=text("published_seq < last_seq")),)

    id: Mapped[Key]
    ticket_id: Mapped[UUID] = mapped_column(ForeignKey("tickets.id"), unique=True)
    last_seq: Mapped[int] = mapped_column(BigInteger, default=0)
    published_seq: Mapped[int] = mapped_column(BigInteger, default=0)
    created_at: Mapped[CreatedAt]
