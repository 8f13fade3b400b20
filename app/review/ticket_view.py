"""The values that a ticket page is made of, and what the page is about in each state of its newest run."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from heapq import merge
from uuid import UUID

from app.agent.values import Classification
from app.delivery.models import DeliveryState
from app.review.contract import Seen
from app.review.inbox_state import LiveState
from app.review.run_view import MoveView, ReplyView, RunView
from app.runs.models import RunStatus
from app.tickets.models import DONE


class Phase(StrEnum):
    """What the page is about at the moment; each has its own sheet and its own actions."""

    QUEUED = "queued"
    RUNNING = "running"
    REVIEW = "review"
    ESCALATED = "escalated"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SENDING = "sending"
    SENT = "sent"
    NOT_SENT = "not_sent"
    RECALLED = "recalled"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class CustomerView:
    """Who writes; the name is masked."""

    external_id: str
    name: str


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message; `author` is the member of staff who wrote it, or who wrote down what the customer said;
    `artifact_id` is the sent reply that it is."""

    id: UUID
    number: int
    kind: str
    body: str
    at: datetime
    author: str | None
    artifact_id: UUID | None


@dataclass(frozen=True, slots=True)
class PastTicketView:
    """An earlier ticket of the same customer."""

    number: int
    subject: str
    status: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ComposerView:
    """What the person was typing, and when it was last saved."""

    body: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class TicketPage:
    """The whole page. `last_seq` is the thread's newest number when it was read; runs are oldest first. `state` is how
    the ticket stands, the same as in the list.

    `moved_by` is the name of who moved the ticket last, None when no person did. `follows` and `followed_by` are the
    numbers of the tickets before and after this one. `past` holds the customer's newest other tickets, of `past_total`.
    `seen` is what an approval compares. `gone_sources` are documents that the newest draft cites and that have been
    replaced or deleted since.
    """

    ticket_id: UUID
    thread_id: UUID
    last_seq: int
    number: int
    subject: str
    status: str
    state: LiveState
    moved_by: str | None
    moved_at: datetime | None
    follows: int | None
    followed_by: int | None
    channel: str
    priority: str | None
    priority_by_ai: bool
    category: str | None
    category_by_ai: bool
    confidence: float | None
    version: int
    created_at: datetime
    escalated_at: datetime | None
    escalation_reason: str | None
    reply_crossed_at: datetime | None
    last_customer_message_id: UUID | None
    last_reply_id: UUID | None
    customer: CustomerView
    messages: tuple[MessageView, ...]
    moves: tuple[MoveView, ...]
    runs: tuple[RunView, ...]
    past: tuple[PastTicketView, ...]
    past_total: int
    composer: ComposerView | None
    seen: Seen | None
    gone_sources: frozenset[UUID]

    @property
    def run(self) -> RunView | None:
        """The newest run: what the page is about."""
        return self.runs[-1] if self.runs else None

    @property
    def history(self) -> tuple[MessageView | MoveView, ...]:
        """Messages as they came, and between them what people made of the ticket.

        The reply of the newest run is left out: the page has a place for it.
        """
        shown_below = self.run.reply.artifact_id if self.run and self.run.reply else None
        messages = (m for m in self.messages if shown_below is None or m.artifact_id != shown_below)
        return tuple(merge(messages, self.moves, key=lambda entry: entry.at))

    @property
    def classification(self) -> Classification | None:
        """The class that the agent found last; a run that starts over keeps that of the run before it."""
        return next((run.classification for run in reversed(self.runs) if run.classification), None)

    @property
    def phase(self) -> Phase:
        """What the page is about at the moment."""
        run = self.run
        if run is None:
            return Phase.IDLE
        if run.status == RunStatus.COMPLETED:
            return _sent_phase(run.reply)
        return _PHASES[RunStatus(run.status)]

    @property
    def class_by_ai(self) -> bool:
        """Whether something of the ticket's class is the agent's word alone."""
        return self.priority_by_ai or self.category_by_ai

    @property
    def open(self) -> bool:
        """Whether something is left to answer."""
        return self.status not in DONE


_PHASES = {
    RunStatus.CREATED: Phase.QUEUED,
    RunStatus.RETRYING: Phase.QUEUED,
    RunStatus.RUNNING: Phase.RUNNING,
    RunStatus.WAITING_FOR_REVIEW: Phase.REVIEW,
    RunStatus.WAITING_FOR_ESCALATION: Phase.ESCALATED,
    RunStatus.FAILED: Phase.FAILED,
    RunStatus.CANCELLED: Phase.CANCELLED,
    RunStatus.SUPERSEDED: Phase.CANCELLED,
}


def _sent_phase(reply: ReplyView | None) -> Phase:
    if reply is None or reply.state == DeliveryState.SENT:
        return Phase.SENT
    if reply.state == DeliveryState.RECALLED:
        return Phase.RECALLED
    return Phase.SENDING if reply.state in (DeliveryState.HELD, DeliveryState.SENDING) else Phase.NOT_SENT
